"""Progress of an evaluation for organisers: done, rate, remaining."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import timedelta

from django.db.models import Avg, Count, Max, Q, QuerySet, Sum

from evalsite import clock
from evalsite.accounts.models import Project
from judging.core.people.gold import hits_of
from judging.core.values import Value
from judging.people.labels import counted_values, values_of
from judging.people.models import Assignment, AssignmentState, Evaluation, EvaluationRater, Item

Rated = dict[int, dict[int, dict[int, Value]]]  # item → rater → criterion number → value
_RECENT = timedelta(hours=1)
_PACED, _LATEST = 10, 20  # ratings


@dataclass(frozen=True, slots=True)
class Hits:
    """How many of `of` were correct, or equal to the earlier verdict."""

    hit: int = 0
    of: int = 0

    @property
    def share(self) -> float | None:
        return self.hit / self.of if self.of else None


@dataclass(frozen=True, slots=True)
class Seats:
    """`ratings` of `needed`, on so many items."""

    items: int = 0
    ratings: int = 0
    needed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Overall(Seats):
    """All seats, with `an_hour` ratings in the last hour.

    `stuck`: items with a free seat that every rater has had already; 0 without raters.
    """

    held: int
    stuck: int
    an_hour: int

    @property
    def left(self) -> int:
        return max(0, self.needed - self.ratings)

    @property
    def seconds_left(self) -> float | None:
        """From the rate of the last hour; None if nobody rated in it."""
        return self.left * _RECENT.total_seconds() / self.an_hour if self.an_hour and self.left else None


def seats_of(evaluations: Iterable[Evaluation]) -> dict[int, Seats]:
    """{evaluation: its seats}, without gold and repeats."""
    usual = Item.objects.filter(evaluation__in=[row.pk for row in evaluations], needed__gt=0).order_by()
    sums = usual.values_list("evaluation").annotate(Count("pk"), Sum("rated"), Sum("needed"))
    return {pk: Seats(items, ratings, needed) for pk, items, ratings, needed in sums}


def overall(evaluation: Evaluation) -> Overall:
    """Progress of the whole evaluation, without gold and repeats."""
    seats = seats_of([evaluation]).get(evaluation.pk, Seats())
    since = clock.now() - _RECENT
    held = Assignment.objects.filter(evaluation=evaluation, state=AssignmentState.LEASED, item__needed__gt=0)
    recent = Assignment.objects.counted().filter(
        evaluation=evaluation, extra=False, item__needed__gt=0, rated_at__gte=since
    )
    return Overall(
        **asdict(seats),
        held=held.filter(extra=False).count(),
        stuck=_stuck(evaluation),
        an_hour=recent.count(),
    )


def _stuck(evaluation: Evaluation) -> int:
    here = {"left_at": None, "set_aside_at": None}  # who is paused, or not in the pilot, may rate later
    raters = EvaluationRater.objects.filter(evaluation=evaluation, **here)
    gone = (AssignmentState.RATED, AssignmentState.SKIPPED, AssignmentState.REASSIGNED)
    of_these = Q(**{f"assignments__rater__{name}": value for name, value in here.items()})
    had = Count("assignments", filter=of_these & Q(assignments__state__in=gone))
    opened = Item.objects.filter(evaluation=evaluation, free__gt=0).annotate(had=had)
    count = raters.count()
    return opened.filter(had__gte=count).count() if count else 0


def pace_of(project: Project) -> float | None:
    """Mean seconds of the project's latest ratings; None until there are ten."""
    rated = Assignment.objects.filter(
        evaluation__run__project=project, state=AssignmentState.RATED, seconds__gt=0
    )
    seconds = list(rated.order_by("-rated_at").values_list("seconds", flat=True)[:_LATEST])
    return sum(seconds) / len(seconds) if len(seconds) >= _PACED else None


def rater_lines(evaluation: Evaluation) -> list[tuple[EvaluationRater, Hits, Hits]]:
    """Each rater with their gold answers given correctly and repeats with the same verdict; former raters come last.

    The raters have the numbers of their items as `rated` (of them `gold_rated` and `repeats_rated`), `skipped`, `held`
    and `extra`, and `seconds_each`: the mean active time per ordinary item, without gold and repeats, as in the report.
    """
    usual = Q(assignments__state=AssignmentState.RATED, assignments__item__gold="")
    usual &= Q(assignments__item__repeat_of=None, assignments__rating__seconds__gt=0)
    raters = EvaluationRater.objects.filter(evaluation=evaluation).select_related("user")
    raters = raters.annotate(
        rated=_of_state(AssignmentState.RATED),
        gold_rated=_of_state(AssignmentState.RATED, assignments__item__gold__gt=""),
        repeats_rated=_of_state(AssignmentState.RATED, assignments__item__repeat_of__isnull=False),
        skipped=_of_state(AssignmentState.SKIPPED),
        held=_of_state(AssignmentState.LEASED),
        extra=_of_state(AssignmentState.RATED, assignments__extra=True),
        seconds_each=Avg("assignments__rating__seconds", filter=usual),
        last_at=Max("assignments__rated_at"),
    )
    gold, repeats = gold_hits(evaluation), repeat_hits(evaluation)
    return [
        (rater, gold.get(rater.pk, Hits()), repeats.get(rater.pk, Hits()))
        for rater in sorted(raters, key=lambda rater: (rater.left_at is not None, rater.pk))
    ]


def _of_state(state: str, **more: bool | str) -> Count:
    return Count("assignments", filter=Q(assignments__state=state, assignments__entry=None, **more))


def gold_counts(evaluation: Evaluation) -> dict[str, int]:
    """The number of gold items that are in use, and of those that were removed."""
    removed = Q(gold_removed=True)
    items = Item.objects.filter(evaluation=evaluation, needed=0).exclude(gold="")
    return items.aggregate(removed=Count("pk", filter=removed), in_use=Count("pk", filter=~removed))


def gold_hits(evaluation: Evaluation) -> dict[int, Hits]:
    """{rater: gold answers given correctly}; each criterion of an item counts, removed gold, training and qualification
    do not."""
    rated_gold = _rated_besides(evaluation).filter(item__gold_removed=False, entry=None)
    assignments = rated_gold.exclude(item__gold="")
    hits: dict[int, Hits] = defaultdict(Hits)
    for rater, gold, text in assignments.values_list("rater", "item__gold", "rating__values"):
        known, earlier = values_of(gold), hits[rater]
        hits[rater] = Hits(earlier.hit + hits_of(known, values_of(text)), earlier.of + len(known))
    return dict(hits)


def repeat_hits(evaluation: Evaluation) -> dict[int, Hits]:
    """{rater: hidden repeats with the same verdict as the first time}, without those of a new guideline version."""
    texts = {number for number, criterion in evaluation.criteria.items() if criterion.scale == "text"}
    again = _rated_besides(evaluation).filter(item__repeat_of__isnull=False, item__version_repeat=None)
    criteria = evaluation.criteria
    repeats = list(again.values_list("rater", "item__repeat_of", "rating__values"))
    originals = {of for _, of, _ in repeats}
    first = Assignment.objects.filter(item__in=originals, state=AssignmentState.RATED, rating__isnull=False)
    before = {
        (rater, item): text for rater, item, text in first.values_list("rater", "item", "rating__values")
    }
    hits: dict[int, Hits] = defaultdict(Hits)
    for rater, of, text in repeats:
        if of is not None and (rater, of) in before:
            first_values = counted_values(criteria, before[rater, of])
            expected = {number: value for number, value in first_values.items() if number not in texts}
            hits[rater] = _add_hits(hits[rater], expected, counted_values(criteria, text))
    return dict(hits)


def _add_hits(hits: Hits, expected: Mapping[int, Value], values: Mapping[int, Value]) -> Hits:
    right = sum(values.get(number) == value for number, value in expected.items())
    return Hits(hits.hit + right, hits.of + len(expected))


def _rated_besides(evaluation: Evaluation) -> QuerySet[Assignment]:
    """The rated assignments of gold and repeats: by their few items, not by all ratings."""
    rated = Assignment.objects.filter(state=AssignmentState.RATED, rating__isnull=False)
    return rated.filter(item__evaluation=evaluation, item__needed=0)


def rated(evaluation: Evaluation, items: Collection[int] | None = None) -> Rated:
    """All current verdicts on ordinary items, canonical, as they count; with `items` only on these."""
    assignments = Assignment.objects.counted().filter(evaluation=evaluation, item__needed__gt=0)
    if items is not None:
        assignments = assignments.filter(item__in=items)
    values: Rated = defaultdict(dict)
    criteria = evaluation.criteria
    for item, rater, text in assignments.order_by("item", "rater").values_list(
        "item", "rater", "rating__values"
    ):
        values[item][rater] = counted_values(criteria, text)
    return values
