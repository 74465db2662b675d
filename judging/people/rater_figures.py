"""Each rater's figures against thresholds, and flags (core/people/quality.py), computed from the stored ratings."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.core.cache import cache
from django.db.models import Max

from datasets.core.kinds import turned
from judging.core.people.quality import Figure, RatedValue, StudyRatings, Thresholds, Trials, quality
from judging.core.values import Value
from judging.people.gold_rule import gold_items_right
from judging.people.labels import values_of
from judging.people.models import Assignment, Evaluation, Item, Rating
from judging.records.seal import sealed_items

_CACHE_SECONDS = 86_400
QUICK = 0.3  # seconds; what takes longer is not computed again for each new rating,
RECOMPUTE_FACTOR = 60  # but when this many times as long has passed
Figures = dict[int, list[Figure]]  # by rater


@dataclass(frozen=True, slots=True)
class _Rated:
    """A rating in force of an ordinary item or a repeat; `values` canonical, by criterion number."""

    rater: int
    item: int
    row: int
    repeat_of: int | None
    shown_first: int | None
    seconds: float
    values: Mapping[int, Value]


def rater_figures(evaluation: Evaluation) -> Figures:
    """{rater: figures, with flags over all raters}; stored until a rating, gold, or what is sealed changes.

    Rows of a test that is sealed are left out. In a large evaluation the newest ratings may be missing for a minute.
    """
    sealed = sealed_items(evaluation.run)
    key = f"rater_figures:{evaluation.pk}:{evaluation.run.created_at.timestamp()}"
    state = _state(evaluation, sealed)
    stored: _Stored | None = cache.get(key)
    if stored is not None and (stored.state == state or stored.lasts(state)):
        return stored.figures
    began = time.monotonic()
    thresholds = replace(Thresholds(), gold=evaluation.gold_mark)
    figures = quality(study_ratings(evaluation, sealed), thresholds)
    cache.set(key, _Stored(state, figures, time.time(), time.monotonic() - began), _CACHE_SECONDS)
    return figures


@dataclass(frozen=True, slots=True)
class _Stored:
    """Figures, the state they belong to, when they were computed, and the seconds that took."""

    state: tuple[Any, ...]
    figures: Figures
    computed_at: float
    took: float

    def lasts(self, state: tuple[Any, ...]) -> bool:
        """Whether they are new enough, though there are newer ratings."""
        wait = RECOMPUTE_FACTOR * self.took if self.took > QUICK else 0.0
        return state[1:] == self.state[1:] and time.time() - self.computed_at < wait


def _state(evaluation: Evaluation, sealed: Iterable[int]) -> tuple[Any, ...]:
    """What the figures depend on, so far as it changes; the newest rating first."""
    last = Rating.objects.filter(rater__evaluation=evaluation).aggregate(last=Max("pk"))["last"]
    gold = Item.objects.filter(evaluation=evaluation).exclude(gold="").order_by("pk")
    since = evaluation.raters.exclude(gold_since=None).order_by("pk")
    aside = evaluation.raters.exclude(set_aside_at=None).order_by("pk")
    return (
        last,
        evaluation.gold_mark,
        list(gold.values_list("pk", "gold", "gold_removed")),
        list(since.values_list("pk", "gold_since")),
        list(aside.values_list("pk", flat=True)),
        sorted(sealed),
    )


def study_ratings(evaluation: Evaluation, sealed: Iterable[int] = ()) -> StudyRatings:
    """The ratings in force, without those of `sealed` rows and of repeats under a new guideline version."""
    hidden = set(sealed)
    rated = [rating for rating in _rated(evaluation) if rating.row not in hidden]
    ordinary = [rating for rating in rated if rating.repeat_of is None]
    seconds: dict[int, list[float]] = defaultdict(list)
    for rating in ordinary:
        if rating.seconds > 0:
            seconds[rating.rater].append(rating.seconds)
    gold = {rater: Trials(hits.hit, hits.of) for rater, hits in gold_items_right(evaluation).items()}
    values = [value for rating in ordinary for value in _values(evaluation, rating)]
    return StudyRatings(evaluation.criteria, values, seconds, gold, _repeats(evaluation, rated))


def _rated(evaluation: Evaluation) -> list[_Rated]:
    assignments = Assignment.objects.counted().filter(
        evaluation=evaluation, item__gold="", item__version_repeat=None
    )
    assignments = assignments.order_by("item", "rater")
    parts = ("rater", "item", "item__row", "item__repeat_of", "shown_first", "rating__seconds")
    return [
        _Rated(rater, item, row, repeat_of, shown_first, seconds, values_of(text))
        for rater, item, row, repeat_of, shown_first, seconds, text in assignments.values_list(
            *parts, "rating__values"
        )
    ]


def _values(evaluation: Evaluation, rating: _Rated) -> Iterable[RatedValue]:
    for number, value in rating.values.items():
        if (criterion := evaluation.criteria.get(number)) is not None:
            shown = turned(value) if criterion.compares and rating.shown_first == 2 else value
            yield RatedValue(rating.rater, rating.item, rating.row, number, value, shown)


def _repeats(evaluation: Evaluation, rated: list[_Rated]) -> dict[tuple[int, int], Trials]:
    """{(rater, criterion): repeats with the same value as the first time}, without free text."""
    first = {(rating.rater, rating.item): rating.values for rating in rated if rating.repeat_of is None}
    trials: dict[tuple[int, int], Trials] = defaultdict(lambda: Trials(0, 0))
    for rating in rated:
        before = first.get((rating.rater, rating.repeat_of or 0), {})
        for number, value in before.items():
            criterion = evaluation.criteria.get(number)
            if criterion is not None and criterion.scale != "text":
                key = rating.rater, number
                same = rating.values.get(number) == value
                trials[key] = Trials(trials[key].hits + same, trials[key].of + 1)
    return dict(trials)
