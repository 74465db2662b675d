"""What happens is told to webhooks where it happens, with nothing but its name, state and address."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from django.conf import LazySettings
from django.utils import timezone

from datasets.models import Version
from evalsite.accounts.models import Project, User
from evalsite.webhooks import turned_off
from evalsite.webhooks.kinds import Event
from evalsite.webhooks.models import Delivery, Webhook
from evalsite.webhooks.services import webhook_create
from judging.core.metric_definition import MetricDefinition
from judging.core.statistics.licence import licence_figures
from judging.core.statistics.uses import Thresholds
from judging.engine import stopping
from judging.metrics.models import MetricVersion
from judging.metrics.services import metric_create, metric_edit, renamed
from judging.people import states
from judging.people.assignments import raters_add
from judging.people.models import Evaluation
from judging.people.services import evaluation_close, evaluation_reopen
from judging.records.models import RunState
from judging.teamwork.comments import comment_add, comment_edit
from judging.trust.events import tell_of_dates
from judging.trust.models import Licence
from judging.trust.services import licence_suspend
from tests.conftest import ClientOf
from tests.datasets.conftest import answers, jsonl, question, upload
from tests.judging.judged import JUDGE_URL, a_judged_run, first_of
from tests.judging.people.make import make_evaluation
from tests.make import a_metric, a_run, a_version

__all__ = ["upload"]  # a fixture


@pytest.fixture(autouse=True)
def webhook(project: Project, settings: LazySettings) -> Webhook:
    """A webhook for every event."""
    settings.CONFIG = replace(settings.CONFIG, site_url="https://evals.example")
    return webhook_create(project=project, url="https://hooks.example/", events=Event.values)[0]


def told() -> list[dict[str, Any]]:
    """The messages, oldest first; they are forgotten."""
    bodies = [json.loads(body) for body in Delivery.objects.order_by("pk").values_list("body", flat=True)]
    Delivery.objects.all().delete()
    return bodies


def of(bodies: list[dict[str, Any]], event: str) -> list[dict[str, Any]]:
    return [body["data"] for body in bodies if body["type"] == event]


def test_a_run_that_ends_is_told_once_with_its_page(project: Project) -> None:
    run = a_judged_run(project)
    (finished,) = of(told(), "run.finished")
    assert finished == {
        "project": "physics",
        "id": run.pk,
        "name": run.name,
        "state": "finished",
        "url": f"https://evals.example/p/physics/runs/{run.pk}/",
    }


@pytest.mark.parametrize(
    ("stop", "event", "state"),
    [
        (stopping.run_pause, "run.stopped", "paused"),
        (stopping.run_cancel, "run.stopped", "cancelled"),
        (lambda run: stopping.run_stop_at_budget(run, "budget_calls"), "run.budget_reached", "paused"),
        (lambda run: stopping.run_refuse(run, "sandbox_broken", ""), "run.stopped", "failed"),
    ],
)
def test_a_run_that_stops_is_told_with_its_state(
    project: Project, stop: Callable[..., object], event: str, state: str
) -> None:
    run = a_run(a_version(project), a_metric(JUDGE_URL))
    run.state = RunState.RUNNING
    run.save()
    told()
    stop(run)
    stop(run)
    (body,) = told()
    assert (body["type"], body["data"]["state"]) == (event, state)


def test_a_version_that_is_read_is_told(upload: Callable[..., Version], alice: User) -> None:
    version = upload(jsonl(question("1+1?", model_outputs=answers(alpha="2"))), read=True, user=alice)
    (ready,) = of(told(), "version.ready")
    assert (ready["id"], ready["name"], ready["state"]) == (version.pk, version.dataset.name, "ready")
    assert ready["url"].endswith(f"/datasets/{version.dataset_id}/v1/")


def test_raters_and_the_end_of_an_evaluation_are_told_without_names(
    project: Project, rita: User, adam: User
) -> None:
    evaluation = make_evaluation(project, [rita])
    raters_add(evaluation=evaluation, users=[rita, adam])
    bodies = told()
    assert len(of(bodies, "rating.assigned")) == 2
    evaluation_close(evaluation=evaluation, by=adam)
    evaluation_close(evaluation=evaluation, by=adam)
    bodies += told()
    assert [data["state"] for data in of(bodies, "evaluation.finished")] == ["finished"]
    text = json.dumps(bodies)
    assert not any(name in text for name in ("alpha", "beta", "rita", "adam"))
    evaluation_reopen(evaluation=evaluation, by=adam)
    assert told() == []


def test_raters_of_a_draft_are_told_when_it_opens_and_those_beside_a_pilot_at_its_end(
    project: Project, rita: User, adam: User
) -> None:
    evaluation = make_evaluation(project, [rita, adam])
    told()
    evaluation.raters.update(work_told=False)
    evaluation.raters.filter(user=rita).update(in_pilot=True)
    Evaluation.objects.update(draft=True, pilot_items=1, pilot_below=1)
    states.study_open(evaluation=evaluation, by=adam)
    assert len(of(told(), "rating.assigned")) == 1
    states.pilot_end(evaluation=evaluation, by=adam)
    assert len(of(told(), "rating.assigned")) == 1


def test_a_mention_is_told_once_for_each_and_without_the_comment(
    project: Project, alice: User, bob: User, adam: User
) -> None:
    run = a_judged_run(project)
    told()
    comment = comment_add(judgement=first_of(run), text="@bob and @adam: hush", by=alice)
    comment_edit(comment=comment, text="@bob and @adam: hush, hush", version=1)
    bodies = told()
    assert [data["id"] for data in of(bodies, "mention")] == [comment.pk, comment.pk]
    assert "hush" not in json.dumps(bodies)


def a_licence(version: MetricVersion) -> Licence:
    return Licence.objects.create(
        metric_version=version,
        definition_hash="x",
        judge="m",
        opening_number=1,
        figures=asdict(licence_figures(np.zeros(1), np.zeros(1), np.zeros(1, int), "passes")),
        answers=[],
        thresholds=asdict(Thresholds()),
        tier="one",
        labels_before=False,
        dataset_name="x",
        dataset_version=1,
        opened_at=timezone.now(),
    )


def test_a_licence_that_lapses_by_its_date_is_told_once(project: Project) -> None:
    metric = metric_create(project=project, definition=a_metric(JUDGE_URL), user=None)
    licence = a_licence(metric.versions.get())
    tell_of_dates()
    assert told() == []
    Licence.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    tell_of_dates()
    tell_of_dates()
    (lapsed,) = of(told(), "licence.lapsed")
    assert (lapsed["id"], lapsed["name"], lapsed["state"]) == (licence.pk, metric.name, "lapsed")


def test_a_licence_that_lapses_by_a_change_is_told_and_a_new_name_is_no_change(project: Project) -> None:
    definition: MetricDefinition = a_metric(JUDGE_URL)
    metric = metric_create(project=project, definition=definition, user=None)
    a_licence(metric.versions.get())
    metric_edit(metric=metric, definition=renamed(definition, "other"), based_on=1, user=None)
    assert told() == []
    a_licence(metric.versions.get(number=2))
    changed = renamed(a_metric("http://127.0.0.1:9/v2", gives="pass_fail", parse="bool"), "other")
    metric_edit(metric=metric, definition=changed, based_on=2, user=None)
    assert [data["state"] for data in of(told(), "licence.lapsed")] == ["lapsed"]


def test_a_suspended_licence_is_told_once(project: Project) -> None:
    metric = metric_create(project=project, definition=a_metric(JUDGE_URL), user=None)
    licence = a_licence(metric.versions.get())
    licence_suspend(licence=licence, reason="secret reason")
    licence_suspend(licence=licence, reason="secret reason")
    (body,) = told()
    assert (body["type"], body["data"]["state"]) == ("licence.suspended", "suspended")


def test_administrators_find_a_notice_when_a_webhook_was_turned_off(
    webhook: Webhook, adam: User, alice: User, client_of: ClientOf
) -> None:
    for tell in turned_off:
        tell(webhook)
    assert "was turned off" in client_of(adam).get("/inbox/").content.decode()
    assert "was turned off" not in client_of(alice).get("/inbox/").content.decode()
