"""Raters who miss the pass mark of gold: the organiser is told, or the rater is paused."""

from __future__ import annotations

from collections import defaultdict

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext as _

from evalsite import clock
from evalsite.accounts.models import User
from evalsite.audit import Action
from judging.core.people.gold import hits_of, misses_mark
from judging.people.assignments import audit, locked, release
from judging.people.labels import values_of
from judging.people.models import Assignment, AssignmentState, Evaluation, EvaluationRater, GoldRule
from judging.people.progress import Hits
from judging.people.quota import promises_store


def gold_items_right(evaluation: Evaluation, rater: EvaluationRater | None = None) -> dict[int, Hits]:
    """{rater: gold items of which all known answers were hit}, since the rater was last let in again; without training
    and qualification."""
    rated = Assignment.objects.counted().filter(evaluation=evaluation, item__gold_removed=False, entry=None)
    rated = rated.exclude(item__gold="")
    if rater is not None:
        rated = rated.filter(rater=rater)
    right: dict[int, Hits] = defaultdict(Hits)
    parts = ("rater", "rated_at", "rater__gold_since", "item__gold", "rating__values")
    for pk, rated_at, since, gold, values in rated.values_list(*parts):
        if since is None or (rated_at is not None and rated_at > since):
            known = values_of(gold)
            hit = hits_of(known, values_of(values)) == len(known)
            right[pk] = Hits(right[pk].hit + hit, right[pk].of + 1)
    return dict(right)


def apply_gold_rule(evaluation: Evaluation, rater: EvaluationRater) -> None:
    """After a rating of gold: note a rater who misses the mark, and pause them if the study says so. Call with the
    evaluation locked."""
    right = gold_items_right(evaluation, rater).get(rater.pk, Hits())
    if rater.gold_failed_at is not None or not misses_mark(right.hit, right.of, evaluation.gold_mark):
        return
    rater.gold_failed_at = clock.now()
    rater.save(update_fields=["gold_failed_at"])
    audit(Action.GOLD_MISSED, evaluation, None, rater=rater.user.username, right=right.hit, of=right.of)
    if evaluation.gold_rule == GoldRule.PAUSE:
        _pause(evaluation, rater, None)


def _pause(evaluation: Evaluation, rater: EvaluationRater, by: User | None) -> None:
    rater.paused_at = clock.now()
    rater.save(update_fields=["paused_at"])
    release(list(Assignment.objects.filter(rater=rater, state=AssignmentState.LEASED)))
    promises_store(evaluation)
    audit(Action.RATER_PAUSED, evaluation, by, rater=rater.user.username)


@transaction.atomic
def rater_pause(*, rater: EvaluationRater, by: User) -> bool:
    """Pause a rater: reserved items are released, drafts and ratings are kept. False if paused already, or gone."""
    evaluation = locked(rater.evaluation_id)
    rater = evaluation.raters.select_related("user").get(pk=rater.pk)
    if rater.paused_at is not None or rater.left_at is not None:
        return False
    _pause(evaluation, rater, by)
    return True


@transaction.atomic
def rater_resume(*, rater: EvaluationRater, by: User) -> bool:
    """Let a rater go on who was paused or missed the mark; the rule then counts gold from now on. False if neither."""
    evaluation = locked(rater.evaluation_id)
    rater = evaluation.raters.select_related("user").get(pk=rater.pk)
    if rater.paused_at is None and rater.gold_failed_at is None:
        return False
    rater.paused_at, rater.gold_failed_at, rater.gold_since = None, None, clock.now()
    rater.save(update_fields=["paused_at", "gold_failed_at", "gold_since"])
    promises_store(evaluation)
    audit(Action.RATER_RESUMED, evaluation, by, rater=rater.user.username)
    return True


@transaction.atomic
def gold_rule_change(*, evaluation: Evaluation, mark: float, rule: str, by: User) -> None:
    """Set the pass mark (0…1) and what happens to who misses it (a GoldRule); it acts at each rater's next gold item.
    Raises ValidationError."""
    if not 0 < mark <= 1 or rule not in GoldRule.values:
        raise ValidationError(_("Enter a pass mark from 1 to 100 %."))
    evaluation = locked(evaluation)
    evaluation.gold_mark, evaluation.gold_rule = mark, rule
    evaluation.save(update_fields=["gold_mark", "gold_rule"])
    audit(Action.GOLD_RULE_CHANGED, evaluation, by, mark=mark, rule=rule)
