"""Messages are stored, signed, delivered, and retried until they arrive or the webhook is turned off."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from datetime import timedelta

import pytest
from django.conf import LazySettings
from django.utils import timezone
from standardwebhooks import Webhook as Verifier

from evalsite.accounts.models import Project, User
from evalsite.audit import Action
from evalsite.models import AuditEntry
from evalsite.tasks import jobs
from evalsite.webhooks import delivery
from evalsite.webhooks.events import JOB, emit, emit_test
from evalsite.webhooks.kinds import Event
from evalsite.webhooks.models import Delivery, Webhook
from evalsite.webhooks.sending import Outcome
from evalsite.webhooks.services import (
    delete_old,
    delivery_resend,
    webhook_create,
    webhook_delete,
    webhook_rotate,
    webhook_turn,
)
from tests.evalsite.webhooks.receiver import Receiver

ABOUT = {"pk": 7, "name": "Nightly", "state": "finished", "url": "https://evals.example/p/physics/runs/7/"}


def a_webhook(project: Project, url: str, **more: object) -> tuple[Webhook, str]:
    events = [Event.RUN_FINISHED, Event.MENTION]
    return webhook_create(project=project, url=url, events=events, **more)  # type: ignore[arg-type]


def finished(project: Project) -> None:
    emit(Event.RUN_FINISHED, project, **ABOUT)  # type: ignore[arg-type]


def work(webhook: Webhook) -> None:
    """Do the job, as if the next retry was due."""
    waiting = Delivery.objects.filter(webhook=webhook, state=Delivery.State.WAITING)
    waiting.update(due_at=timezone.now() - timedelta(seconds=1))
    jobs.run(JOB, webhook.pk)


def test_the_body_has_what_the_standard_says_and_nothing_else(project: Project, receiver: Receiver) -> None:
    webhook, secret = a_webhook(project, receiver.url())
    finished(project)
    work(webhook)
    (request,) = receiver.requests
    body = Verifier(secret).verify(request.body, request.headers)
    assert set(body) == {"type", "timestamp", "data"}
    assert body["type"] == "run.finished"
    assert body["data"] == {
        "project": "physics",
        "id": 7,
        "name": "Nightly",
        "state": "finished",
        "url": "https://evals.example/p/physics/runs/7/",
    }
    assert Delivery.objects.get().state == "delivered"
    assert jobs.of(JOB, webhook.pk) is None


def test_only_subscribed_events_of_the_project_are_stored(
    project: Project, charlie: User, here: None
) -> None:
    a_webhook(project, "https://hooks.example/")
    emit(Event.RUN_STOPPED, project, **ABOUT)  # type: ignore[arg-type]
    finished(Project.objects.get(slug="elsewhere"))
    assert not Delivery.objects.exists()


def test_every_message_reaches_a_receiver_that_fails_at_random(project: Project, receiver: Receiver) -> None:
    webhook, secret = a_webhook(project, receiver.url())
    moods, arrived = random.Random(4), []

    def reply(request: object) -> tuple[int, dict[str, str], bytes]:
        if moods.random() < 0.5:
            return moods.choice([500, 429, 302, 404]), {}, b"not now"
        arrived.append(request)
        return 204, {}, b""

    receiver.reply = reply
    for _ in range(12):
        finished(project)
    for _ in range(6):
        work(webhook)
    states = Delivery.objects.values_list("state", flat=True)
    delivered = [delivery.uid for delivery in Delivery.objects.filter(state="delivered")]
    assert set(states) <= {"delivered", "failed"}
    assert sorted(request.headers["webhook-id"] for request in arrived) == sorted(delivered)
    assert len(delivered) >= 10
    for request in receiver.requests:
        Verifier(secret).verify(request.body, request.headers)


def test_retries_come_after_5_s_1_min_10_min_1_h_and_6_h(project: Project, receiver: Receiver) -> None:
    receiver.reply = lambda _request: (503, {}, b"later")
    webhook, _secret = a_webhook(project, receiver.url())
    finished(project)
    waits = []
    for _ in range(5):
        work(webhook)
        delivery, job = Delivery.objects.get(), jobs.of(JOB, webhook.pk)
        assert job
        assert job.not_before
        assert abs(job.not_before - delivery.due_at) < timedelta(seconds=2)
        waits.append(round((delivery.due_at - timezone.now()).total_seconds() / 5) * 5)
    assert waits == [5, 60, 600, 3600, 21600]
    work(webhook)
    delivery = Delivery.objects.get()
    assert (delivery.state, len(delivery.tries), jobs.of(JOB, webhook.pk)) == ("failed", 6, None)
    assert (delivery.tries[0]["status"], delivery.tries[0]["reply"]) == (503, "later")


def test_a_message_that_is_not_due_yet_waits_beside_a_new_one(project: Project, receiver: Receiver) -> None:
    receiver.reply = lambda _request: (500, {}, b"")
    webhook, _secret = a_webhook(project, receiver.url())
    finished(project)
    work(webhook)
    finished(project)
    jobs.run(JOB, webhook.pk)
    ids = [request.headers["webhook-id"] for request in receiver.requests]
    assert len(set(ids)) == len(ids) == 2


def test_an_inside_address_is_refused_at_each_delivery(
    project: Project, receiver: Receiver, settings: LazySettings
) -> None:

    webhook, _secret = a_webhook(project, receiver.url())
    settings.CONFIG = replace(settings.CONFIG, webhooks_allowed_networks=())
    finished(project)
    work(webhook)
    assert receiver.requests == []
    assert Delivery.objects.get().tries[0]["problem"] == "refused_address"


def test_after_three_days_of_failures_it_is_turned_off(project: Project, receiver: Receiver) -> None:
    receiver.reply = lambda _request: (500, {}, b"")
    webhook, _secret = a_webhook(project, receiver.url())
    finished(project)
    finished(project)
    for _ in range(5):
        work(webhook)
    Webhook.objects.update(failing_since=timezone.now() - timedelta(days=3, minutes=1))
    finished(project)
    work(webhook)
    webhook.refresh_from_db()
    assert webhook.off_at
    assert webhook.off_by_failures
    assert set(Delivery.objects.values_list("state", flat=True)) == {"failed"}
    assert AuditEntry.objects.filter(action=Action.WEBHOOK_OFF).count() == 1
    finished(project)
    assert Delivery.objects.count() == 3


def test_a_message_that_arrives_ends_the_time_of_failures(project: Project, receiver: Receiver) -> None:
    webhook, _secret = a_webhook(project, receiver.url())
    Webhook.objects.update(failing_since=timezone.now() - timedelta(days=9))
    finished(project)
    work(webhook)
    webhook.refresh_from_db()
    assert (webhook.failing_since, webhook.off_at) == (None, None)


def test_for_a_day_after_a_rotation_both_secrets_sign(project: Project, receiver: Receiver) -> None:
    webhook, old = a_webhook(project, receiver.url())
    new = webhook_rotate(webhook=webhook)
    finished(project)
    work(webhook)
    Webhook.objects.update(old_secret_until=timezone.now() - timedelta(seconds=1))
    delete_old()
    finished(project)
    work(webhook)
    during, after = receiver.requests
    for secret in (old, new):
        Verifier(secret).verify(during.body, during.headers)
    Verifier(new).verify(after.body, after.headers)
    assert " " not in after.headers["webhook-signature"]
    webhook.refresh_from_db()
    assert webhook.old_secret_encrypted == ""


def test_sent_again_it_has_the_same_id(project: Project, receiver: Receiver) -> None:
    webhook, _secret = a_webhook(project, receiver.url())
    emit_test(webhook)
    work(webhook)
    delivery_resend(delivery=Delivery.objects.get())
    work(webhook)
    first, second = receiver.requests
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert json.loads(first.body)["type"] == "test"


def test_what_waits_is_not_sent_when_it_is_turned_off_or_deleted(
    project: Project, receiver: Receiver
) -> None:
    webhook, _secret = a_webhook(project, receiver.url())
    finished(project)
    webhook_turn(webhook=webhook, on=False)
    work(webhook)
    webhook_delete(webhook=webhook)
    assert receiver.requests == []
    assert jobs.of(JOB, webhook.pk) is None


def test_deliveries_are_kept_for_30_days(project: Project, here: None) -> None:
    a_webhook(project, "https://hooks.example/")
    finished(project)
    finished(project)
    first = Delivery.objects.earliest("pk")
    Delivery.objects.filter(pk=first.pk).update(created_at=timezone.now() - timedelta(days=30, minutes=1))
    delete_old()
    assert Delivery.objects.count() == 1


@pytest.mark.parametrize("preset", ["slack", "feishu", "dingtalk", "wecom", "teams"])
def test_a_preset_says_it_in_a_sentence_that_mentions_nobody(
    preset: str, project: Project, here: None
) -> None:
    a_webhook(project, "https://hooks.example/", preset=preset)
    emit(Event.RUN_FINISHED, project, **{**ABOUT, "name": '<!channel> <at user_id="all"> @all'})  # type: ignore[arg-type]
    text = Delivery.objects.get().body
    assert "evalsite: Run finished" in text
    assert ABOUT["url"] in text  # type: ignore[operator]
    assert not any(mark in text for mark in ("<", "@"))


def test_a_worker_that_dies_while_it_sends_loses_nothing(project: Project, receiver: Receiver) -> None:
    webhook, _secret = a_webhook(project, receiver.url())
    finished(project)
    assert jobs.claim(JOB, webhook.pk, owner="elsewhere:1:1")
    jobs.reconcile()
    work(webhook)
    assert Delivery.objects.get().state == "delivered"


def test_a_webhook_that_is_deleted_while_a_message_is_sent_leaves_nothing(
    project: Project, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    webhook, _secret = a_webhook(project, receiver.url())
    finished(project)

    def delete_meanwhile(*_more: object) -> list[Outcome]:
        webhook_delete(webhook=Webhook.objects.get())
        return [Outcome(200, "")]

    monkeypatch.setattr(delivery, "send_all", delete_meanwhile)
    work(webhook)
    assert not Delivery.objects.exists()
    assert jobs.of(JOB, webhook.pk) is None
