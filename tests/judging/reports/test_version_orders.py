"""The order under other versions of a metric, beside the resampled one."""

from __future__ import annotations

import pytest

from datasets.models import Version
from evalsite.accounts.models import Project, User
from judging.core.metric_definition import MetricDefinition
from judging.metrics.models import Metric, MetricVersion
from judging.metrics.services import metric_create
from judging.records.models import Run
from judging.reports.figures import for_page
from judging.reports.page.report_view import report_view
from judging.reports.version_orders import means_under_versions
from tests.judging.people.make import about
from tests.judging.reports.cast import SCRIPT, a_judged_run, by_name
from tests.make import a_version

pytestmark = pytest.mark.django_db
DEFINITION = MetricDefinition(name="quality", scripts=(SCRIPT,))


@pytest.fixture
def metric(project: Project) -> Metric:
    return metric_create(project=project, definition=DEFINITION, user=None)


@pytest.fixture
def version(project: Project) -> Version:
    return a_version(project, rows=4)


def judged(version: Version, used: MetricVersion, **values: int) -> Run:
    run = a_judged_run(version, by_name(**values))
    run.metrics.update(metric_version=used)
    for_page(run)
    return run


def second_of(metric: Metric) -> MetricVersion:
    return MetricVersion.objects.create(metric=metric, number=2, definition=DEFINITION.to_json())


def test_the_newest_run_of_each_other_version_counts(metric: Metric, version: Version) -> None:
    second = second_of(metric)
    judged(version, second, alpha=9, beta=1)
    judged(version, second, alpha=3, beta=5)
    run = judged(version, metric.versions.get(number=1), alpha=7, beta=4)
    assert means_under_versions(run) == {"quality": [(2, {"beta": 5, "alpha": 3})]}


def test_the_report_tells_another_order(metric: Metric, version: Version) -> None:
    judged(version, second_of(metric), alpha=3, beta=5)
    view = report_view(judged(version, metric.versions.get(number=1), alpha=7, beta=4))
    assert view is not None
    assert view.metrics[0].order is not None
    assert list(view.metrics[0].order.versions) == [(2, "beta and alpha")]
    (ranking,) = view.document["ranking"]
    assert ranking["orders"] == [{"by": "v2", "version": 2, "names": ["beta", "alpha"]}]


def test_other_data_and_blind_ratings_tell_nothing(
    metric: Metric, version: Version, project: Project, rita: User
) -> None:
    second = second_of(metric)
    judged(a_version(project, rows=4), second, alpha=3, beta=5)
    about(judged(version, second, alpha=3, beta=5), [rita])
    assert means_under_versions(judged(version, metric.versions.get(number=1), alpha=7, beta=4)) == {}
