"""What an organiser sees of an evaluation under way: how far, how fast, how far raters agree, what is left."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
from django.db.models import Avg, Count, Max, Q, QuerySet, Sum
from django.utils import timezone

from judging.core.people.criteria import BOTH_BAD, STEPS, Criterion
from judging.core.statistics.agreement import Level, krippendorff_alpha, percent_agreement
from judging.core.statistics.numeric import Floats
from judging.core.values import Value
from judging.people.labels import values_of
from judging.people.models import Assignment, AssignmentState, Evaluation, EvaluationRater, Item
from judging.people.selectors import criteria_of

Rated = dict[int, dict[int, dict[int, Value]]]  # item → rater → criterion number → value
_RECENT = timedelta(hours=1)
_LEVELS: dict[str, Level] = {"five": "ordinal", "ten": "ordinal", "steps": "ordinal", "gsb": "ordinal"}


@dataclass(frozen=True, slots=True)
class Hits:
    """How many of how many were right, or the same as before."""

    hit: int = 0
    of: int = 0

    @property
    def share(self) -> float | None:
        return self.hit / self.of if self.of else None


@dataclass(frozen=True, slots=True)
class RaterLine:
    """One rater's part. `seconds_each`: active time on an item; gold: right answers; repeats: same verdict again."""

    rater: EvaluationRater
    given: int
    skipped: int
    held: int
    extra: int
    seconds_each: float | None
    last_at: datetime | None
    gold: Hits
    repeats: Hits


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far raters agree on one criterion, over the items that two or more rated."""

    criterion: Criterion
    level: str
    alpha: float | None
    percent: float | None
    items: int


@dataclass(frozen=True, slots=True)
class Overall:
    """All seats: ratings `given` of `needed`; `seconds_left` by the pace of the last hour, None while nobody rates.

    `stuck`: items with a free seat that every rater has had already.
    """

    items: int
    given: int
    needed: int
    held: int
    free: int
    stuck: int
    an_hour: int
    seconds_left: float | None

    @property
    def left(self) -> int:
        return max(0, self.needed - self.given)


def overall(evaluation: Evaluation) -> Overall:
    """The evaluation as a whole; gold and repeats do not count."""
    usual = Item.objects.filter(evaluation=evaluation, needed__gt=0)
    sums = usual.aggregate(given=Sum("given"), needed=Sum("needed"), free=Sum("free"), items=Count("pk"))
    given, needed, free = (sums[name] or 0 for name in ("given", "needed", "free"))
    since = timezone.now() - _RECENT
    held = Assignment.objects.filter(evaluation=evaluation, state=AssignmentState.LEASED, item__needed__gt=0)
    recent = Assignment.objects.filter(
        rater__evaluation=evaluation, state=AssignmentState.GIVEN, item__needed__gt=0, given_at__gte=since
    ).count()
    left = max(0, needed - given)
    return Overall(
        items=sums["items"],
        given=given,
        needed=needed,
        held=held.filter(extra=False).count(),
        free=free,
        stuck=_stuck(evaluation),
        an_hour=recent,
        seconds_left=left * _RECENT.total_seconds() / recent if recent and left else None,
    )


def _stuck(evaluation: Evaluation) -> int:
    raters = EvaluationRater.objects.filter(evaluation=evaluation, left_at=None)
    gone = (AssignmentState.GIVEN, AssignmentState.SKIPPED, AssignmentState.TAKEN_AWAY)
    had = Count("assignments", filter=Q(assignments__rater__left_at=None, assignments__state__in=gone))
    opened = Item.objects.filter(evaluation=evaluation, free__gt=0).annotate(had=had)
    return opened.filter(had__gte=raters.count()).count()


def rater_lines(evaluation: Evaluation) -> list[RaterLine]:
    """Every rater's part, those who have left last."""
    counted = EvaluationRater.objects.filter(evaluation=evaluation).select_related("user")
    counted = counted.annotate(
        given_count=_of_state(AssignmentState.GIVEN),
        skipped_count=_of_state(AssignmentState.SKIPPED),
        held_count=_of_state(AssignmentState.LEASED),
        extra_count=Count("assignments", filter=Q(assignments__state="given", assignments__extra=True)),
        seconds_mean=Avg("assignments__seconds", filter=Q(assignments__seconds__gt=0)),
        last_given=Max("assignments__given_at"),
    )
    gold, repeats = gold_hits(evaluation), repeat_hits(evaluation)
    return [
        RaterLine(
            rater,
            rater.given_count,
            rater.skipped_count,
            rater.held_count,
            rater.extra_count,
            rater.seconds_mean,
            rater.last_given,
            gold.get(rater.pk, Hits()),
            repeats.get(rater.pk, Hits()),
        )
        for rater in sorted(counted, key=lambda one: (one.left_at is not None, one.pk))
    ]


def _of_state(state: str) -> Count:
    return Count("assignments", filter=Q(assignments__state=state))


def gold_hits(evaluation: Evaluation) -> dict[int, Hits]:
    """{rater: how many of the known answers of gold items were given}; each criterion of an item counts."""
    found = _given(evaluation).exclude(item__gold="")
    hits: dict[int, Hits] = defaultdict(Hits)
    for rater, known, given in found.values_list("rater", "item__gold", "rating__values"):
        hits[rater] = _with(hits[rater], values_of(known), values_of(given))
    return dict(hits)


def repeat_hits(evaluation: Evaluation) -> dict[int, Hits]:
    """{rater: how often a silent repeat got the verdict that the item had got from the same rater}."""
    texts = {number for number, one in criteria_of(evaluation).items() if one.scale == "text"}
    again = _given(evaluation).filter(item__repeat_of__isnull=False)
    wanted = list(again.values_list("rater", "item__repeat_of", "rating__values"))
    first = _given(evaluation).filter(item__in=[of for _, of, _ in wanted])
    before = {
        (rater, item): text for rater, item, text in first.values_list("rater", "item", "rating__values")
    }
    hits: dict[int, Hits] = defaultdict(Hits)
    for rater, of, text in wanted:
        if of is not None and (rater, of) in before:
            known = {n: v for n, v in values_of(before[rater, of]).items() if n not in texts}
            hits[rater] = _with(hits[rater], known, values_of(text))
    return dict(hits)


def _with(hits: Hits, known: Mapping[int, Value], given: Mapping[int, Value]) -> Hits:
    right = sum(given.get(number) == value for number, value in known.items())
    return Hits(hits.hit + right, hits.of + len(known))


def _given(evaluation: Evaluation) -> QuerySet[Assignment]:
    return Assignment.objects.filter(
        rater__evaluation=evaluation, state=AssignmentState.GIVEN, rating__isnull=False
    )


def rated(evaluation: Evaluation, items: Sequence[int] | None = None) -> Rated:
    """Every verdict that counts on what the evaluation is about, canonical."""
    found = _given(evaluation).filter(item__needed__gt=0)
    if items is not None:
        found = found.filter(item__in=items)
    said: Rated = defaultdict(dict)
    for item, rater, text in found.order_by("item", "rater").values_list("item", "rater", "rating__values"):
        said[item][rater] = values_of(text)
    return said


def agreements(evaluation: Evaluation) -> list[Agreement]:
    """How far raters agree so far, criterion by criterion; free texts are left out."""
    said = rated(evaluation)
    shared = {item: by for item, by in said.items() if len(by) > 1}
    criteria = criteria_of(evaluation)
    return [_agreement(one, number, shared) for number, one in criteria.items() if one.scale != "text"]


def _agreement(criterion: Criterion, number: int, said: Rated) -> Agreement:
    codes: dict[Value, float] = {}
    raters = sorted({rater for by in said.values() for rater in by})
    table = np.full((len(said), max(1, len(raters))), np.nan)
    for place, by in enumerate(said.values()):
        for rater, values in by.items():
            value = values.get(number)
            if value is not None:
                table[place, raters.index(rater)] = code_of(criterion, value, codes)
    level = _LEVELS.get(criterion.scale, "nominal")
    items = int(((~np.isnan(table)).sum(axis=1) > 1).sum())
    return Agreement(criterion, level, _alpha(table, level), percent_agreement(table), items)


_EQUAL, _BOTH_BAD = 2.0, 2.5  # two labels side by side on the scale from A to B


def _alpha(table: Floats, level: Level) -> float | None:
    """Krippendorff's alpha. "Both bad" is next to "equal", on neither answer's side: the mean of both placements."""
    if level != "ordinal" or not (table == _BOTH_BAD).any():
        return krippendorff_alpha(table, level)
    mirrored = np.where(table == _BOTH_BAD, 2 * _EQUAL - _BOTH_BAD, table)
    found = [
        one for one in (krippendorff_alpha(part, level) for part in (table, mirrored)) if one is not None
    ]
    return sum(found) / len(found) if found else None


def code_of(criterion: Criterion, value: Value, codes: dict[Value, float]) -> float:
    """A value as a number: in its order where the scale has one, else a code of its own."""
    if criterion.compares and isinstance(value, str):
        return _BOTH_BAD if value == BOTH_BAD else float(STEPS.index(value))
    if isinstance(value, str):
        return codes.setdefault(value, float(len(codes)))
    return float(value)
