"""Verdicts: submit, change, skip, undo, save a draft. Each is an appended Rating; the one that counts is stored as
Judgements like any judge's, in the same transaction."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from evalsite.accounts.models import User
from judging.core.people.criteria import accepted, active_seconds, canonical
from judging.core.values import Value
from judging.people.assignments import free_seat, lease_end, locked, take_seat
from judging.people.judgements import judgements_add, judgements_mark
from judging.people.labels import values_of
from judging.people.models import (
    Assignment,
    AssignmentState,
    Evaluation,
    Item,
    Rating,
    RatingKind,
    SkipReason,
)
from judging.runs.json_text import storable


class DeskRefused(Exception):
    """Nothing was stored except, if the subclass says so, a draft."""

    code = "refused"


class EvaluationClosed(DeskRefused):
    code = "closed"


class RaterLeft(DeskRefused):
    code = "left"


class NothingToUndo(DeskRefused):
    code = "nothing_to_undo"


class KeyUsed(DeskRefused):
    code = "key_used"


class SidesDiffer(DeskRefused):
    code = "sides_differ"


class NotYetRated(DeskRefused):
    code = "not_yet_rated"


class Outdated(DeskRefused):
    code = "outdated"


LONGEST_COMMENT = 20_000


def _hold(assignment: Assignment) -> Assignment:
    """The assignment and its evaluation, reloaded and locked."""
    evaluation = locked(assignment.evaluation_id)
    held = Assignment.objects.select_related("item", "rater").get(pk=assignment.pk)
    held.evaluation = evaluation
    return held


def _seen_before(key: UUID, assignment: Assignment, kind: str) -> Rating | None:
    found = Rating.objects.filter(key=key).first()
    if found is None:
        return None
    if found.assignment_id != assignment.pk or found.kind != kind:
        raise KeyUsed
    return _repeated(found)


def _repeated(rating: Rating) -> Rating:
    rating.repeated = True
    return rating


def submit(
    *,
    assignment: Assignment,
    values: Mapping[int, Any],
    comment: str = "",
    seconds: Any = 0,
    key: UUID,
    shown: int | None,
) -> Rating:
    """Submit a verdict. `values`: {criterion number: value} as seen; `shown`: the answer on the left side.

    A repeated submission (same key, or another tab) returns the first one with `repeated` set. A verdict that arrives
    after its lease ended is stored; if all seats are taken by then, it is `extra`. Raises ValuesRefused or a
    DeskRefused: if the evaluation is closed or the rater has left, the values are saved as a draft.
    """
    try:
        with transaction.atomic():
            held = _hold(assignment)
            before = _seen_before(key, held, RatingKind.VERDICT) or _counting(held)
            if before is not None:
                return before
            _check_open(held)
            given = _canonical(held, assignment, values, shown)
            if held.state != AssignmentState.LEASED:
                take_seat(held)
            return _keep(held, RatingKind.VERDICT, given, comment, seconds, key)
    except (EvaluationClosed, RaterLeft):
        draft_save(assignment=assignment, values=values, comment=comment)
        raise


def _counting(assignment: Assignment) -> Rating | None:
    """The current verdict of this assignment, if any."""
    if assignment.state != AssignmentState.GIVEN or assignment.rating is None:
        return None
    return _repeated(assignment.rating)


def _check_open(held: Assignment) -> None:
    if not held.evaluation.open:
        raise EvaluationClosed
    if held.rater.left_at is not None:
        raise RaterLeft


def _canonical(
    held: Assignment, assignment: Assignment, values: Mapping[int, Any], shown: int | None
) -> dict[int, Value]:
    if shown != held.shown_first:
        raise SidesDiffer
    held.evaluation.metrics = assignment.evaluation.metrics  # never change; the page has queried them
    criteria = held.evaluation.criteria
    return canonical(criteria, accepted(criteria, values), shown)


def _keep(
    assignment: Assignment, kind: RatingKind, values: dict[int, Value], comment: str, seconds: Any, key: UUID
) -> Rating:
    assignment.attempt += 1
    rating = Rating.objects.create(
        assignment=assignment,
        rater=assignment.rater,
        kind=kind,
        attempt=assignment.attempt,
        key=key,
        values=storable(json.dumps(values, ensure_ascii=False)) or "",
        comment=storable(comment[:LONGEST_COMMENT]) or "",
        seconds=active_seconds(seconds),
        extra=assignment.extra,
    )
    judgements_add(rating, values)
    if assignment.state != AssignmentState.GIVEN:
        Item.objects.filter(pk=assignment.item_id).update(given=F("given") + 1)
    assignment.state, assignment.rating, assignment.draft = AssignmentState.GIVEN, rating, ""
    assignment.given_at, assignment.seconds = timezone.now(), assignment.seconds + rating.seconds
    assignment.save()
    return rating


@transaction.atomic
def change(
    *,
    assignment: Assignment,
    values: Mapping[int, Any],
    comment: str = "",
    seconds: Any = 0,
    key: UUID,
    shown: int | None,
    attempt: int | None = None,
) -> Rating:
    """Replace the user's earlier verdict; the earlier one stays in the history.

    `attempt`: the verdict that the rater saw; raises Outdated if another tab has changed it since.
    """
    held = _hold(assignment)
    before = _seen_before(key, held, RatingKind.CHANGE)
    if before is not None:
        return before
    _check_open(held)
    if held.state != AssignmentState.GIVEN or held.rating is None:
        raise NotYetRated
    if attempt is not None and attempt != held.rating.attempt:
        raise Outdated
    given = _canonical(held, assignment, values, shown)
    judgements_mark(held.evaluation, held.rating, current=False)
    return _keep(held, RatingKind.CHANGE, given, comment, seconds, key)


@transaction.atomic
def skip(*, assignment: Assignment, reason: str, comment: str = "", key: UUID, seconds: Any = 0) -> Rating:
    """Skip an item with a reason (a SkipReason): it goes to other raters, and this one does not get it again."""
    held = _hold(assignment)
    before = _seen_before(key, held, RatingKind.SKIP) or _counting(held)
    if before is not None:
        return before
    _check_open(held)
    if held.state == AssignmentState.SKIPPED:
        return _repeated(held.ratings.filter(kind=RatingKind.SKIP).latest("pk"))
    made = Rating.objects.create(
        assignment=held,
        rater=held.rater,
        kind=RatingKind.SKIP,
        attempt=0,
        key=key,
        reason=reason if reason in SkipReason else SkipReason.OTHER,
        comment=storable(comment[:LONGEST_COMMENT]) or "",
        seconds=active_seconds(seconds),
    )
    if held.state == AssignmentState.LEASED:
        free_seat(held)
    _update(held, state=AssignmentState.SKIPPED, extra=False)
    return made


@transaction.atomic
def undo(*, evaluation: Evaluation, user: User, key: UUID) -> Rating:
    """Undo the rater's last action (verdict, change or skip) that is not undone yet.

    The item is leased again, with the undone verdict as its draft; undoing a change restores the verdict before it.
    Raises NothingToUndo.
    """
    evaluation = locked(evaluation)
    mine = Rating.objects.filter(rater__evaluation=evaluation, rater__user=user)
    done = mine.filter(key=key, kind=RatingKind.UNDO).first()
    if done is not None:
        return _repeated(done)
    if Rating.objects.filter(key=key).exists():
        raise KeyUsed
    last = mine.exclude(kind=RatingKind.UNDO).filter(undone_by=None, imported=False).order_by("-pk").first()
    if last is None:
        raise NothingToUndo
    held = _hold(last.assignment)
    _check_open(held)
    _take_back(held, last)
    return Rating.objects.create(
        assignment=held, rater=last.rater, kind=RatingKind.UNDO, attempt=0, key=key, of=last
    )


def _take_back(held: Assignment, last: Rating) -> None:
    if last.kind == RatingKind.CHANGE:
        before = _verdict_before(last)
        judgements_mark(held.evaluation, last, current=False)
        judgements_mark(held.evaluation, before, current=True)
        _update(held, rating=before)
        return
    if last.kind == RatingKind.VERDICT:
        judgements_mark(held.evaluation, last, current=False)
        Item.objects.filter(pk=held.item_id).update(given=F("given") - 1)
        _update(held, rating=None, given_at=None, draft=_as_draft(held, last))
    else:
        take_seat(held)
    _update(held, state=AssignmentState.LEASED, lease_until=lease_end(held.evaluation))


def _verdict_before(last: Rating) -> Rating:
    """The verdict that counted before a change."""
    given = (RatingKind.VERDICT, RatingKind.CHANGE)
    earlier = Rating.objects.filter(assignment=last.assignment_id, kind__in=given, attempt__lt=last.attempt)
    return earlier.filter(undone_by=None).latest("attempt")


def _as_draft(held: Assignment, rating: Rating) -> str:
    """A verdict as a draft, with the sides as its rater saw them."""
    shown = canonical(held.evaluation.criteria, values_of(rating.values), held.shown_first)
    return json.dumps({"values": shown, "comment": rating.comment}, ensure_ascii=False)


@transaction.atomic
def draft_save(*, assignment: Assignment, values: Mapping[int, Any], comment: str = "") -> None:
    """Save a draft, with values as seen, and renew the lease if it is still held. Rated items have no draft."""
    held = _hold(assignment)
    if held.state == AssignmentState.GIVEN:
        return
    kept = {
        str(number): value for number, value in values.items() if isinstance(value, bool | int | float | str)
    }
    draft = json.dumps({"values": kept, "comment": comment[:LONGEST_COMMENT]}, ensure_ascii=False)
    _update(held, draft=storable(draft) or "")
    if held.state == AssignmentState.LEASED and held.evaluation.open:
        _update(held, lease_until=lease_end(held.evaluation))


def _update(assignment: Assignment, **fields: Any) -> None:
    for name, value in fields.items():
        setattr(assignment, name, value)
    assignment.save(update_fields=list(fields))
