"""Set a rater's ratings aside: they are kept and shown, but count nowhere, and others get their places. Undone as
easily.

Two things leave them out: their judgements aren't current, and `Assignment.objects.counted()`.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import F, OuterRef, Subquery
from django.utils.translation import gettext as _

from evalsite import clock
from evalsite.accounts.models import User
from evalsite.audit import Action
from judging.filters.row_filters import id_subquery
from judging.people.assignments import audit, locked, release
from judging.people.judgements import figures_change, ratings_mark
from judging.people.models import (
    Assignment,
    AssignmentQuerySet,
    AssignmentState,
    Evaluation,
    EvaluationRater,
    Item,
    Rating,
)
from judging.people.quota import promises_store
from judging.records.json_text import storable
from judging.records.seal import closed_for_rating

LONGEST_REASON = 2000


@transaction.atomic
def rater_set_aside(*, rater: EvaluationRater, reason: str, by: User) -> bool:
    """Set a rater's ratings aside; the rater gets no more items. False if they are set aside already.

    Items of a test that was closed take no more ratings, so their places stay taken. Raises ValidationError without a
    reason.
    """
    reason = (storable(reason) or "").strip()
    if not reason:
        raise ValidationError({"reason": _("Say why these ratings are set aside.")})
    if len(reason) > LONGEST_REASON:
        raise ValidationError({"reason": _("At most %(n)s characters.") % {"n": LONGEST_REASON}})
    evaluation = locked(rater.evaluation_id)
    marked = {"set_aside_at": clock.now(), "set_aside_reason": reason}
    if not EvaluationRater.objects.filter(pk=rater.pk, set_aside_at=None).update(**marked):
        return False
    release(list(Assignment.objects.filter(rater=rater, state=AssignmentState.LEASED)))
    rated = _rated(rater)
    ratings_mark(evaluation, _ratings_of(rated), current=False)
    seated = rated.filter(extra=False, item__needed__gt=0)
    seated = seated.exclude(item__row__in=closed_for_rating(evaluation.run))
    _seats_change(seated, free=1)
    _finish(evaluation, rater, Action.RATER_SET_ASIDE, by, reason)
    return True


@transaction.atomic
def rater_count_again(*, rater: EvaluationRater, by: User) -> bool:
    """Count a rater's ratings again. Those whose places were given to others meanwhile are extra. False if they
    count already."""
    evaluation = locked(rater.evaluation_id)
    marked = {"set_aside_at": None, "set_aside_reason": ""}
    if not EvaluationRater.objects.filter(pk=rater.pk).exclude(set_aside_at=None).update(**marked):
        return False
    rated = _rated(rater)
    _seats_change(rated.filter(extra=True, item__needed__gt=0, item__free__gt=0), free=-1)
    ratings = _ratings_of(rated)
    extra = Assignment.objects.filter(rating=OuterRef("pk")).values("extra")[:1]
    Rating.objects.filter(pk__in=id_subquery(ratings)).update(extra=Subquery(extra))
    ratings_mark(evaluation, ratings, current=True)
    _finish(evaluation, rater, Action.RATER_COUNTED, by, rater.set_aside_reason)
    return True


def _rated(rater: EvaluationRater) -> AssignmentQuerySet:
    return Assignment.objects.filter(rater=rater, state=AssignmentState.RATED, rating__isnull=False)


def _ratings_of(assignments: AssignmentQuerySet) -> Sequence[int]:
    return [pk for pk in assignments.values_list("rating", flat=True) if pk is not None]


def _seats_change(assignments: AssignmentQuerySet, *, free: int) -> None:
    """Free (1) or take (-1) the seats of these ratings; a rating without a seat is extra."""
    pairs = list(assignments.values_list("pk", "item"))
    items = id_subquery([item for _pk, item in pairs])
    Item.objects.filter(pk__in=items).update(free=F("free") + free, rated=F("rated") - free)
    pks = id_subquery([pk for pk, _item in pairs])
    Assignment.objects.filter(pk__in=pks).update(extra=free > 0)


def _finish(evaluation: Evaluation, rater: EvaluationRater, action: Action, by: User, reason: str) -> None:
    figures_change(evaluation)
    promises_store(evaluation)
    audit(action, evaluation, by, rater=rater.user.username, reason=reason)
