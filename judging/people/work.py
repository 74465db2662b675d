"""Raters' work by day, from everything that they did (core/people/work.py)."""

from __future__ import annotations

from collections import defaultdict

from django.utils import timezone

from judging.core.people.gold import hits_of
from judging.core.people.work import Action, Category, WorkDay, work_by_day
from judging.people.labels import values_of
from judging.people.models import Evaluation, EvaluationRater, Rating, RatingKind


def work_of(evaluation: Evaluation, rater: EvaluationRater | None = None) -> dict[int, list[WorkDay]]:
    """{rater: days in the site's time zone, oldest first}, of all who did something, or of one rater."""
    actions = _actions(evaluation, rater)
    zone = timezone.get_default_timezone()
    return {pk: work_by_day(own, zone) for pk, own in actions.items()}


def _actions(evaluation: Evaluation, rater: EvaluationRater | None) -> dict[int, list[Action]]:
    ratings = Rating.objects.filter(rater__evaluation=evaluation)
    if rater is not None:
        ratings = ratings.filter(rater=rater)
    undone = set(ratings.exclude(of=None).values_list("of", flat=True))
    parts = ("pk", "rater", "at", "seconds", "kind", "extra", "imported", "values")
    about = ("rater__set_aside_at", "assignment__item__gold", "assignment__item__repeat_of")
    entry = "assignment__entry"  # training or qualification
    actions: dict[int, list[Action]] = defaultdict(list)
    for (
        pk,
        by,
        at,
        seconds,
        kind,
        extra,
        imported,
        values,
        aside,
        gold,
        repeat_of,
        entered,
    ) in ratings.order_by("at", "pk").values_list(*parts, *about, entry):
        category: Category
        if kind == RatingKind.UNDO or pk in undone:
            category = "undone"
        elif kind != RatingKind.VERDICT:
            category = "skips" if kind == RatingKind.SKIP else "changes"
        elif imported:
            category = "imported"
        elif entered:
            category = "training"
        elif gold or repeat_of:
            category = "gold" if gold else "repeats"
        else:
            category = "set_aside" if aside else "extra" if extra else "items"
        known = values_of(gold) if category == "gold" else {}
        hit = bool(known) and hits_of(known, values_of(values)) == len(known)
        actions[by].append(Action(at, seconds, category, hit))
    return actions
