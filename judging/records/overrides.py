"""Overrides: a reviewer's value for an answer and a metric.

`Override` is the history. Its newest entry is in force, whichever attempt it was made on, until another entry withdraws
it. The value in force is also stored on the current attempt, where lists and figures read it. Code that makes another
attempt current must copy it in the same transaction.

Locking: code that overrides, or changes which attempt is current, locks the run's metrics before the run or its
judgements. Workers that store judgements don't need that lock, because they only change an attempt's original value.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db import transaction
from django.db.models import F, QuerySet

from evalsite.accounts.models import User
from evalsite.audit import Action, record
from judging.core.values import Outcome, Value
from judging.records.json_text import storable
from judging.records.models import Judgement, Override, Run, RunMetric


class OverrideConflict(Exception):
    """Another entry was added since the reviewer opened the page."""


def metrics_lock(run_id: int) -> None:
    """Lock the run's metrics until the end of the transaction, which prevents overrides in the run meanwhile."""
    list(RunMetric.objects.select_for_update(no_key=True).filter(run=run_id).order_by("pk").values_list("pk"))


def run_lock(run_id: int) -> Run:
    """Lock the run and its metrics, and return the run. Required before creating new attempts."""
    metrics_lock(run_id)
    return Run.objects.select_for_update().get(pk=run_id)


def attempts_of(judgement: Judgement) -> QuerySet[Judgement]:
    """All attempts of this metric, rater or source for this answer (or pair of answers) in the run."""
    return Judgement.objects.filter(**_item(judgement))


def history_of(judgement: Judgement) -> QuerySet[Override]:
    """The override history of this answer and metric, over all attempts, newest first."""
    named = {f"judgement__{name}": value for name, value in _item(judgement).items()}
    return Override.objects.filter(**named).order_by("-pk")


def _item(judgement: Judgement) -> dict[str, Any]:
    return {
        "run": judgement.run_id,
        "run_metric": judgement.run_metric_id,
        "response": judgement.response_id,
        "other_response": judgement.other_response_id,
        "rater": judgement.rater_id,
        "source": judgement.source_id,
        "repeat": judgement.repeat,
    } | ({"shown_first": judgement.shown_first} if judgement.source_id else {})


def in_force_of(judgements: Iterable[Judgement]) -> dict[int, Override]:
    """{judgement id: override in force} of the overridden judgements."""
    overridden = [judgement for judgement in judgements if judgement.overridden]
    if not overridden:
        return {}
    history = Override.objects.filter(
        judgement__response__in={judgement.response_id for judgement in overridden},
        judgement__run_metric__in={judgement.run_metric_id for judgement in overridden},
    )
    newest = {
        _key(override.judgement): override
        for override in history.select_related("judgement", "by").order_by("pk")
    }
    return {judgement.pk: newest[_key(judgement)] for judgement in overridden if _key(judgement) in newest}


def _key(judgement: Judgement) -> tuple[Any, ...]:
    return tuple(_item(judgement).values())


@transaction.atomic
def override_add(
    *, judgement: Judgement, value: Value, reason: str, by: User, seen: int | None = None
) -> Override:
    """Override the value of an answer and metric.

    `seen`: id of the newest entry that the reviewer saw, 0 for none. Raises OverrideConflict if there is a newer one.
    """
    _lock(judgement, seen)
    outcome = Outcome("scored", value)
    override = Override.objects.create(
        judgement=judgement,
        value=storable(outcome.value_json) or "",
        score=outcome.score,
        reason=storable(reason) or "",
        by=by,
    )
    _apply(judgement, override, Action.OVERRIDE_ADDED)
    return override


@transaction.atomic
def override_withdraw(*, judgement: Judgement, reason: str, by: User, seen: int | None = None) -> Override:
    """Withdraw the override; the original value counts again. Also raises OverrideConflict if none is in force."""
    newest = _lock(judgement, seen)
    if newest is None or newest.value is None:
        raise OverrideConflict
    override = Override.objects.create(judgement=judgement, reason=storable(reason) or "", by=by)
    _apply(judgement, override, Action.OVERRIDE_WITHDRAWN)
    return override


def _lock(judgement: Judgement, seen: int | None) -> Override | None:
    metrics_lock(judgement.run_id)
    newest = history_of(judgement).first()
    if seen is not None and seen != (newest.pk if newest else 0):
        raise OverrideConflict
    return newest


def _apply(judgement: Judgement, override: Override, action: Action) -> None:
    current = attempts_of(judgement).filter(current=True)
    current.update(
        override_value=override.value, override_score=override.score, override_at=override.at.timestamp()
    )
    run = judgement.run
    record(
        action,
        project=run.project,
        thing=judgement,
        name=run.name,
        by=override.by,
        run=run.pk,
        row=judgement.row.line,
        value=override.value,
        reason=override.reason,
    )
    Run.objects.filter(pk=judgement.run_id).update(revision=F("revision") + 1)


def carry_over(run_id: int, judgements: QuerySet[Judgement]) -> None:
    """Copy the override in force to those of a rater's judgements that are current now, and remove it from the others.

    Call with the run's metrics locked.
    """
    if not Override.objects.filter(judgement__run=run_id).exists():
        return
    for judgement in judgements:
        newest = history_of(judgement).first() if judgement.current else None
        value, score, at = (
            (newest.value, newest.score, newest.at.timestamp()) if newest else (None, None, None)
        )
        Judgement.objects.filter(pk=judgement.pk).update(
            override_value=value, override_score=score, override_at=at
        )
