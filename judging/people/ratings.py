"""Verdicts: submit, change, skip, undo, save a draft. Each is an appended Rating; the one that counts is stored as
Judgements like any judge's, in the same transaction."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F

from evalsite import clock
from evalsite.accounts.models import User
from judging.core.people.criteria import accepted, active_seconds, as_shown, canonical
from judging.core.values import Value
from judging.people.assignments import free_seat, lease_end, locked, take_seat
from judging.people.gold_rule import apply_gold_rule
from judging.people.item_criteria import criteria_for
from judging.people.judgements import judgements_add, judgements_mark, tell_of_labels
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
from judging.people.qualification.services import is_entry, over, try_conclude
from judging.records.json_text import storable
from judging.records.seal import closed_for_rating


class DeskRefused(Exception):
    """Nothing was stored, except a draft where the code is in KEEPS_DRAFT."""

    def __init__(self, code: str) -> None:
        """`code`: its sentence is `labels.refusal_sentence`."""
        super().__init__(code)
        self.code = code


KEEPS_DRAFT = (
    "closed",
    "paused",
    "left",
    "test_closed",
    "qualification_over",
    "outdated",
    "skip_unexplained",
)
"""Why a verdict, a change or a skip can be refused that its rater entered in good faith: it is saved as a draft."""
LONGEST_COMMENT = 20_000


@contextmanager
def _draft_if_refused(
    assignment: Assignment, values: Mapping[int, Any] | None, comment: str | None
) -> Iterator[None]:
    try:
        with transaction.atomic():
            yield
    except DeskRefused as refused:
        if refused.code in KEEPS_DRAFT:
            with transaction.atomic():
                _draft_store(_lock(assignment), values, comment)
        raise


def _lock(assignment: Assignment) -> Assignment:
    """The assignment and its evaluation, reloaded and locked; a rating in force is loaded where it is used."""
    evaluation = locked(assignment.evaluation_id, run=assignment.evaluation.run)
    parts = ("item__response", "item__other_response", "rater")
    held = Assignment.objects.select_related(*parts).get(pk=assignment.pk)
    held.evaluation = evaluation
    return held


def _earlier_submission(key: UUID, assignment: Assignment, kind: str) -> Rating | None:
    rating = Rating.objects.filter(key=key).first()
    if rating is None:
        return None
    if rating.assignment_id != assignment.pk or rating.kind != kind:
        raise DeskRefused("key_used")
    return _repeated(rating)


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
    shown: int | None = None,
    guideline: int | None = None,
) -> Rating:
    """Submit a verdict. `values`: {criterion number: value} as seen, with the sides that the assignment stores.

    `shown`: the answer on the left, as pages of an earlier release sent it; checked if given. `guideline`: the version
    of the guideline that the page showed; without it the current one.

    A repeated submission (same key, or another tab) returns the first one with `repeated` set; what the other tab sent
    is saved as a draft of a change. A verdict that arrives after its lease ended is stored; if all seats are taken by
    then, it is `extra`. Raises ValuesRefused or a DeskRefused.
    """
    with _draft_if_refused(assignment, values, comment):
        held = _lock(assignment)
        before = _earlier_submission(key, held, RatingKind.VERDICT)
        if before is not None:
            return before
        if (current := _current_verdict(held)) is not None:
            if (dict(values), comment) != (_as_shown(held, current), current.comment):
                _draft_store(held, values, comment)
            return current
        _check_open(held)
        canonical_values = _canonical(held, assignment, values, shown)
        if held.state != AssignmentState.LEASED:
            take_seat(held)
        return _store(held, RatingKind.VERDICT, canonical_values, comment, seconds, key, guideline)


def _current_verdict(assignment: Assignment) -> Rating | None:
    """The current verdict of this assignment, if any."""
    if assignment.state != AssignmentState.RATED or assignment.rating is None:
        return None
    return _repeated(assignment.rating)


def _check_open(held: Assignment) -> None:
    if not held.evaluation.open:
        raise DeskRefused("paused" if held.evaluation.state == "paused" else "closed")
    if held.rater.stopped:
        raise DeskRefused("paused")
    if held.rater.left_at is not None:
        raise DeskRefused("left")
    if held.item.row_id in closed_for_rating(held.evaluation.run):
        raise DeskRefused("test_closed")
    if held.item.gold and over(held):
        raise DeskRefused("qualification_over")


def _canonical(
    held: Assignment, assignment: Assignment, values: Mapping[int, Any], shown: int | None
) -> dict[int, Value]:
    if shown is not None and shown != held.shown_first:
        raise DeskRefused("sides_differ")
    held.evaluation.metrics = assignment.evaluation.metrics  # scales never change; the page has queried them
    criteria = criteria_for(held.evaluation, held.item)
    return canonical(criteria, accepted(criteria, values), held.shown_first, held.order)


def _store(
    assignment: Assignment,
    kind: RatingKind,
    values: dict[int, Value],
    comment: str,
    seconds: Any,
    key: UUID,
    guideline: int | None,
) -> Rating:
    assignment.attempt += 1
    newest = assignment.evaluation.guideline_version
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
        guideline_version=newest if guideline is None else min(max(guideline, 1), newest),
    )
    judgements_add(rating, values)
    if assignment.state != AssignmentState.RATED and not assignment.extra:
        Item.objects.filter(pk=assignment.item_id).update(rated=F("rated") + 1)
    _update(
        assignment,
        state=AssignmentState.RATED,
        rating=rating,
        attempt=rating.attempt,
        draft="",
        rated_at=clock.now(),
        seconds=assignment.seconds + rating.seconds,
    )
    if assignment.item.gold and is_entry(assignment):
        try_conclude(assignment)
    elif assignment.item.gold:
        apply_gold_rule(assignment.evaluation, assignment.rater)
    else:
        tell_of_labels(assignment.evaluation)
    return rating


def change(
    *,
    assignment: Assignment,
    values: Mapping[int, Any],
    comment: str = "",
    seconds: Any = 0,
    key: UUID,
    shown: int | None = None,
    attempt: int | None = None,
    guideline: int | None = None,
) -> Rating:
    """Replace the user's earlier verdict; the earlier one stays in the history.

    `attempt`: the verdict that the rater saw; raises DeskRefused if another tab has changed it since.
    """
    with _draft_if_refused(assignment, values, comment):
        held = _lock(assignment)
        before = _earlier_submission(key, held, RatingKind.CHANGE)
        if before is not None:
            return before
        _check_open(held)
        if held.state != AssignmentState.RATED or held.rating is None:
            raise DeskRefused("not_yet_rated")
        if attempt is not None and attempt != held.rating.attempt:
            raise DeskRefused("outdated")
        canonical_values = _canonical(held, assignment, values, shown)
        judgements_mark(held.evaluation, held.rating, current=False)
        return _store(held, RatingKind.CHANGE, canonical_values, comment, seconds, key, guideline)


def skip(
    *,
    assignment: Assignment,
    reason: str,
    comment: str = "",
    key: UUID,
    seconds: Any = 0,
    values: Mapping[int, Any] | None = None,
) -> Rating:
    """Skip an item with a reason (a SkipReason): it goes to other raters, and this one does not get it again.

    `values`: what was chosen before, saved as a draft with the comment if the skip is refused. A comment on an item
    that another tab has rated or skipped is saved as a draft too.

    Raises DeskRefused without a reason, or for another one without a comment.
    """
    with _draft_if_refused(assignment, values, comment or None):
        if reason not in SkipReason or (reason == SkipReason.OTHER and not comment.strip()):
            raise DeskRefused("skip_unexplained")
        held = _lock(assignment)
        before = _earlier_submission(key, held, RatingKind.SKIP)
        if before is not None:
            return before
        if (earlier := _current_verdict(held) or _current_skip(held)) is not None:
            if comment not in ("", earlier.comment):
                own = _as_shown(held, earlier) if earlier.values else None
                _draft_store(held, own, comment)
            return earlier
        _check_open(held)
        return _skip_store(held, reason, comment, seconds, key)


def _current_skip(held: Assignment) -> Rating | None:
    """The skip in force of this assignment, if any."""
    if held.state != AssignmentState.SKIPPED:
        return None
    return _repeated(held.ratings.filter(kind=RatingKind.SKIP).latest("pk"))


def _skip_store(held: Assignment, reason: str, comment: str, seconds: Any, key: UUID) -> Rating:
    rating = Rating.objects.create(
        assignment=held,
        rater=held.rater,
        kind=RatingKind.SKIP,
        attempt=0,
        key=key,
        reason=reason,
        comment=storable(comment[:LONGEST_COMMENT]) or "",
        seconds=active_seconds(seconds),
    )
    if held.state == AssignmentState.LEASED:
        free_seat(held)
    _update(held, state=AssignmentState.SKIPPED, extra=False)
    if held.item.gold:
        try_conclude(held)
    return rating


@transaction.atomic
def undo(*, evaluation: Evaluation, user: User, key: UUID) -> Rating:
    """Undo the rater's last action (verdict, change or skip) that is not undone yet.

    The item is leased again, with the undone verdict as its draft; undoing a change restores the verdict before it.
    Raises DeskRefused if there is none.
    """
    evaluation = locked(evaluation)
    mine = Rating.objects.filter(rater__evaluation=evaluation, rater__user=user)
    done = mine.filter(key=key, kind=RatingKind.UNDO).first()
    if done is not None:
        return _repeated(done)
    if Rating.objects.filter(key=key).exists():
        raise DeskRefused("key_used")
    last = mine.exclude(kind=RatingKind.UNDO).filter(undone_by=None, imported=False).order_by("-pk").first()
    if last is None:
        raise DeskRefused("nothing_to_undo")
    last.assignment.evaluation = evaluation
    held = _lock(last.assignment)
    _check_open(held)
    _withdraw(held, last)
    return Rating.objects.create(
        assignment=held, rater=last.rater, kind=RatingKind.UNDO, attempt=0, key=key, of=last
    )


def _withdraw(held: Assignment, last: Rating) -> None:
    if last.kind == RatingKind.CHANGE:
        before = _verdict_before(last)
        judgements_mark(held.evaluation, last, current=False)
        judgements_mark(held.evaluation, before, current=True)
        _update(held, rating=before)
        return
    if last.kind == RatingKind.VERDICT:
        judgements_mark(held.evaluation, last, current=False)
        if not held.extra:
            Item.objects.filter(pk=held.item_id).update(rated=F("rated") - 1)
        _update(held, rating=None, rated_at=None, draft=_as_draft(held, last))
    else:
        take_seat(held)
    _update(held, state=AssignmentState.LEASED, lease_until=lease_end(held.evaluation))


def _verdict_before(last: Rating) -> Rating:
    """The verdict that counted before a change."""
    kinds = (RatingKind.VERDICT, RatingKind.CHANGE)
    earlier = Rating.objects.filter(assignment=last.assignment_id, kind__in=kinds, attempt__lt=last.attempt)
    return earlier.filter(undone_by=None).latest("attempt")


def _as_draft(held: Assignment, rating: Rating) -> str:
    """A verdict as a draft, with the sides as its rater saw them."""
    return json.dumps({"values": _as_shown(held, rating), "comment": rating.comment}, ensure_ascii=False)


def _as_shown(held: Assignment, rating: Rating) -> dict[int, Value]:
    return as_shown(held.evaluation.criteria, values_of(rating.values), held.shown_first, held.order)


@transaction.atomic
def draft_save(
    *, assignment: Assignment, values: Mapping[int, Any], comment: str = "", attempt: int = 0
) -> None:
    """Save a draft, with values as seen, and renew the lease if it is still held.

    `attempt`: the verdict that is being changed, 0 for a first one. A draft of an earlier verdict than the current one
    arrives too late and is dropped.
    """
    held = _lock(assignment)
    if attempt != (held.rating.attempt if held.rating else 0):
        return
    _draft_store(held, values, comment)
    if held.state == AssignmentState.LEASED and held.evaluation.open:
        _update(held, lease_until=lease_end(held.evaluation))


def _draft_store(held: Assignment, values: Mapping[int, Any] | None, comment: str | None) -> None:
    """Store a draft; without `values`, or without a comment, those of the earlier draft stay."""
    earlier = json.loads(held.draft or "{}")
    values = earlier.get("values", {}) if values is None else values
    comment = earlier.get("comment", "") if comment is None else comment
    plain_values = {
        str(number): value for number, value in values.items() if isinstance(value, bool | int | float | str)
    }
    draft = json.dumps({"values": plain_values, "comment": comment[:LONGEST_COMMENT]}, ensure_ascii=False)
    _update(held, draft=storable(draft) or "")


def _update(assignment: Assignment, **fields: Any) -> None:
    for name, value in fields.items():
        setattr(assignment, name, value)
    assignment.save(update_fields=list(fields))
