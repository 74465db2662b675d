"""A watch from its page to its alarm and on, with a judge on a server that changes its mind on the third day."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

import pytest
from django.conf import LazySettings

from datasets.models import Version
from evalsite.accounts.models import Project, User
from evalsite.models import AuditEntry
from evalsite.tasks import jobs
from evalsite.webhooks.events import JOB as WEBHOOK
from evalsite.webhooks.services import webhook_create
from judging.core.judges.scripted import Received, ScriptedJudge
from judging.core.licensing import Sizes
from judging.core.metric_definition import MetricDefinition
from judging.metrics.models import Metric
from judging.metrics.services import metric_create
from judging.records.models import Run
from judging.reports.services import report_document
from judging.runs.services import ChosenMetric, run_create
from judging.trust.services import sealed_test_close, sealed_test_open, split_draw
from judging.trust.watch.models import Watch
from judging.trust.watch.services import JOB
from judging.trust.watch.steps import watches_due
from tests.conftest import ClientOf
from tests.evalsite.mail.conftest import Sent, confirmed, mail_site, sent
from tests.evalsite.webhooks.conftest import here, receiver
from tests.evalsite.webhooks.receiver import Receiver
from tests.judging.people.make import about, rate_each
from tests.judging.trust.test_watch import HOUR, Days, days
from tests.judging.working import work
from tests.make import a_metric, a_version

__all__ = ["days", "here", "mail_site", "receiver", "sent"]  # fixtures
pytestmark = pytest.mark.django_db(transaction=True)
ROWS = 40
CHANGED = range(1, 15)
"""Lines whose answers the judge passes or fails otherwise from the third day on."""


@dataclass
class Mind:
    """What the judge passes: every second line, and after its change those of `CHANGED` the other way round."""

    changed: bool = False

    def __call__(self, received: Received) -> str:
        line = int(re.findall(r"alpha says (\d+)", received.prompt)[-1])
        passes = (line % 2 == 1) != (self.changed and line in CHANGED)
        return f"Verdict: {'PASS' if passes else 'FAIL'}"


@pytest.fixture
def mind() -> Mind:
    return Mind()


@pytest.fixture
def definition(mind: Mind) -> Iterator[MetricDefinition]:
    with ScriptedJudge(mind) as judge:
        yield a_metric(judge.url, gives="pass_fail")


def run_of(version: Version, metric: Metric) -> Run:
    """A run of the stored metric, judged by a worker that asks the judge's server."""
    stored = metric.versions.get()
    return work(
        run_create(
            project=metric.project,
            name=f"Run {Run.objects.count()}",
            version=version,
            candidates=list(version.candidates.all()),
            metrics=[ChosenMetric(MetricDefinition.from_json(stored.definition), stored)],
            user=None,
        )
    )


def step(watch: Watch) -> None:
    """Do what is due, as a site's workers do: the step, the sitting's run, and the step that closes it."""
    watches_due()
    jobs.run(JOB, watch.pk)
    sitting = watch.sittings.filter(ended_at=None).first()
    if sitting is not None and sitting.run is not None:
        work(sitting.run)
        watches_due()
        jobs.run(JOB, watch.pk)


def test_a_judge_that_changes_its_mind_on_the_third_day_loses_its_licence_until_that_is_lifted(
    project: Project,
    definition: MetricDefinition,
    mind: Mind,
    days: Days,
    alice: User,
    adam: User,
    rita: User,
    client_of: ClientOf,
    settings: LazySettings,
    mail_site: None,
    receiver: Receiver,
    sent: Sent,
) -> None:
    metric = metric_create(project=project, definition=definition, user=None)
    version = a_version(project, rows=ROWS, models=["alpha"])
    run = run_of(version, metric)
    rate_each(about(run, [rita]), rita, lambda item: item.row.line % 2 == 1)
    split = split_draw(version=version, metric=metric, sizes=Sizes(0, 0, ROWS), seed=5)
    licence = sealed_test_open(test=sealed_test_close(test=split.test, run=run), run_metric=run.metrics.get())
    webhook, _secret = webhook_create(project=project, url=receiver.url(), events=["watch.alarm"])
    confirmed(alice, alarms=True)
    client, page = client_of(alice), f"/p/{project.slug}/judges/licences/{licence.pk}/"

    there = client.post(f"{page}watch/", {"sentinels": 30})["Location"]
    watch = Watch.objects.get()
    for _sitting in range(3):
        step(watch)
    assert "3 of 5 sittings" in client.get(there).content.decode()
    days.wait(HOUR)
    for _sitting in range(2):
        step(watch)
    for _day in range(2):
        days.wait(timedelta(days=1))
        run_of(version, metric)
        step(watch)
    checks = watch.sittings.filter(baseline=False).order_by("pk")
    assert [(check.number, check.alarm, check.result["share"]["rate"]) for check in checks] == [
        (1, False, 0),
        (2, False, 0),
    ]
    assert sent() == []

    days.wait(timedelta(days=1))
    mind.changed = True
    later = run_of(version, metric)
    step(watch)
    third = checks.last()
    assert third is not None
    assert (third.number, third.alarm) == (3, True)
    jobs.run(WEBHOOK, webhook.pk)
    (request,) = receiver.requests
    assert b'"watch.alarm"' in request.body
    assert there.encode() in request.body
    (message,) = sent()
    assert (message.to, "has changed" in message.subject) == (["alice@mail.example"], True)
    (entry,) = report_document(later)["licences"]
    assert (entry["state"], "alarm" in entry["reason"]) == ("suspended", True)
    assert "The licence is suspended" in client.get(there).content.decode()
    report = client.get(f"/p/{project.slug}/runs/{later.pk}/report/").content.decode()
    assert "The licence of the judge judge is suspended" in report

    suspension = licence.suspensions.get()
    lift = f"{page}suspensions/{suspension.pk}/lift/"
    assert client.post(lift, {"reason": "known"}).status_code == 403
    assert client_of(adam).post(lift, {"reason": "the vendor's new model"}).status_code == 302
    assert AuditEntry.objects.filter(actor_name="adam", action="licence.lifted").exists()
    days.wait(HOUR)
    step(watch)
    watch.refresh_from_db()
    first = watch.sittings.filter(period=2).earliest("pk")
    assert (watch.state, watch.period, first.baseline, first.number) == ("learning", 2, True, 1)
    assert report_document(later)["licences"][0]["state"] == "valid"
