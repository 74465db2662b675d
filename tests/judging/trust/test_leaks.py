"""A metric whose texts hold a text of its test is refused at saving and before a run."""

from __future__ import annotations

import json

import pytest
from django.core.exceptions import ValidationError

from datasets.models import Response, Row, Version
from judging.core.licensing import Sizes
from judging.core.metric_definition import MetricDefinition
from judging.metrics.models import Metric
from judging.metrics.services import metric_edit
from judging.records.models import Run
from judging.trust.answers import row_keys
from judging.trust.drawing import sealed_test_draw
from judging.trust.models import Split
from judging.trust.services import rows_of_test, split_draw
from judging.trust.sources import Source
from tests.judging.judged import JUDGE_URL
from tests.judging.trust.conftest import ROWS
from tests.make import a_metric, a_run, a_version

pytestmark = pytest.mark.django_db
LONG = "The sky looks blue because shorter waves of light are scattered more than longer ones, by day."


@pytest.fixture
def tested(run: Run, metric: Metric) -> Row:
    """A row of the test, with a long answer."""
    split = split_draw(version=run.version, metric=metric, sizes=Sizes(2, 4, 24), seed=5)
    keys, rows = row_keys(run.version)[0], rows_of_test(split.test)
    row = Row.objects.get(version=run.version, line=next(line for line, key in keys.items() if key in rows))
    Response.objects.filter(row=row).update(raw=json.dumps({"content": LONG}))
    return row


def with_text(text: str, field: str = "template") -> MetricDefinition:
    changed = {field: f"Example: {text} {{{{ response.content }}}}"}
    return a_metric(JUDGE_URL, gives="pass_fail", parse="bool", **changed)


@pytest.mark.parametrize(
    ("field", "place"), [("template", "prompt template"), ("system_prompt", "system prompt")]
)
def test_saving_is_refused_with_the_place(tested: Row, metric: Metric, field: str, place: str) -> None:
    with pytest.raises(
        ValidationError, match=f"{place} of judge 1 holds a text of a test row: “the sky looks"
    ):
        metric_edit(metric=metric, definition=with_text(LONG[:60], field), based_on=1, user=None)


def test_a_script_is_refused_too(tested: Row, metric: Metric) -> None:
    script = f'def postprocess(ctx):\n    return "{LONG}" in str(ctx)\n'
    with pytest.raises(ValidationError, match="Script 1 holds"):
        metric_edit(metric=metric, definition=a_metric(JUDGE_URL, postprocess=script), based_on=1, user=None)


def test_a_run_with_a_file_of_the_metrics_name_is_refused(tested: Row, metric: Metric, run: Run) -> None:
    with pytest.raises(ValidationError, match="holds a text of a test row"):
        a_run(run.version, with_text(LONG))


def test_a_text_of_a_test_row_in_a_later_version_is_refused_too(
    tested: Row, metric: Metric, run: Run
) -> None:
    later = a_version(metric.project, rows=ROWS)
    Version.objects.filter(pk=later.pk).update(dataset=run.version.dataset, number=2)
    row = Row.objects.get(version=later, line=tested.line)
    Response.objects.filter(row=row).update(raw=json.dumps({"content": LONG.upper()[::-1]}))
    with pytest.raises(ValidationError, match="holds a text of a test row"):
        metric_edit(metric=metric, definition=with_text(LONG.upper()[::-1]), based_on=1, user=None)


def test_a_test_is_not_drawn_for_a_prompt_that_holds_its_texts(run: Run, metric: Metric) -> None:
    """Before anybody rates: such a version could never judge the test."""
    Response.objects.filter(row__version=run.version).update(raw=json.dumps({"content": LONG}))
    draw = {"metric": metric, "source": Source(run.version, run), "sizes": Sizes(2, 4, 20), "user": None}
    with pytest.raises(ValidationError, match="holds a text of a test row"):
        sealed_test_draw(definition=with_text(LONG), **draw)
    assert not Split.objects.exists()


def test_other_texts_are_saved(tested: Row, metric: Metric) -> None:
    assert metric_edit(metric=metric, definition=with_text(LONG[:59]), based_on=1, user=None).number == 2
