"""Each rater's figures against thresholds, and flags (core/people/quality.py), computed from the stored ratings."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from hashlib import md5
from statistics import median

from django.db.models import Max
from django.utils import timezone

from datasets.core.kinds import turned
from evalsite.derived import Results
from evalsite.models import Derived
from evalsite.tasks import jobs
from evalsite.tasks.jobs import Hold
from judging.core.people.quality import Figure, RatedValue, StudyRatings, Trials, quality
from judging.core.values import Value
from judging.people.gold_rule import gold_items_right
from judging.people.labels import counted_values
from judging.people.models import Assignment, Evaluation, Item, Rating
from judging.people.thresholds import thresholds_of
from judging.records.models import Run
from judging.records.seal import sealed_items

JOB = "rater_figures"
FIGURES = Results(JOB, 2)
AT_ONCE = 1000  # ratings up to which a page computes them itself
RECOMPUTE_FACTOR = 20  # a job waits so many times as long as the last computation took, and
LEAST_WAIT = 15.0  # at least so many seconds
Figures = dict[int, list[Figure]]  # by rater


@dataclass(frozen=True, slots=True)
class _Rated:
    """A rating in force of an ordinary item or a repeat; `values` canonical, by criterion number."""

    rater: int
    item: int
    row: int
    repeat_of: int | None
    shown_first: int | None
    candidate: int
    seconds: float
    values: Mapping[int, Value]


@dataclass(frozen=True, slots=True)
class RaterFigures:
    """`by_rater`: {rater: figures, with flags over all raters}; `medians`: {rater: median active seconds of an ordinary
    item}. `current`: False if a worker is about to compute newer
    ones; `computed_at`: None if there are none yet."""

    by_rater: Figures
    medians: dict[int, float]
    current: bool
    computed_at: datetime | None

    @property
    def flagged(self) -> dict[int, list[Figure]]:
        """{rater: flagged figures} of those who stand out."""
        flags = {pk: [figure for figure in own if figure.flagged] for pk, own in self.by_rater.items()}
        return {pk: own for pk, own in flags.items() if own}


def rater_figures(evaluation: Evaluation) -> RaterFigures:
    """The figures, stored until a rating, gold, a threshold or what is sealed changes. Those of a large evaluation are
    computed by a worker; until then the last ones are returned.

    Rows of a test that is sealed are left out.
    """
    stored = FIGURES.place(evaluation.run_id)
    state = _state(evaluation)
    if _state_in(stored) == state:
        return _read(stored, current=True)
    counted = Assignment.objects.counted().filter(evaluation=evaluation)
    if counted[AT_ONCE : AT_ONCE + 1].exists():
        if _due(stored):
            jobs.request(JOB, stored.pk)
        return _read(stored, current=False)
    _compute(evaluation, stored)
    return _read(stored, current=True)


def flags_of(runs: Collection[Run]) -> dict[int, int]:
    """{run: raters who stand out}, as last computed for the evaluations of these runs. A worker computes those anew in
    which people have rated since."""
    stored = {row.subject: row for row in FIGURES.all().filter(subject__in=[run.pk for run in runs])}
    for run in runs:
        row = stored.get(run.pk)
        if run.revision and (row is None or (row.revision != run.revision and _due(row))):
            jobs.request(JOB, (row or FIGURES.place(run.pk)).pk)
    return {pk: len(_read(row, current=True).flagged) for pk, row in stored.items() if row.computed_at}


@jobs.job(JOB, Derived)
def compute_rater_figures(hold: Hold, stored: Derived) -> None:
    """Compute and store the figures of an evaluation."""
    evaluation = Evaluation.objects.select_related("run").filter(run=stored.subject).first()
    if evaluation is not None:
        _compute(evaluation, stored)
    hold.finish()


def _compute(evaluation: Evaluation, stored: Derived) -> None:
    state, began = _state(evaluation), time.monotonic()
    ratings = study_ratings(evaluation, sealed_items(evaluation.run))
    figures = quality(ratings, thresholds_of(evaluation))
    document = {
        "state": state,
        "figures": [asdict(figure) for own in figures.values() for figure in own],
        "medians": {rater: median(seconds) for rater, seconds in ratings.seconds.items()},
    }
    stored.value = json.dumps(document, ensure_ascii=False).encode()
    stored.computed_at, stored.layout = timezone.now(), FIGURES.layout
    FIGURES.fill(stored, stored.value, evaluation.run.revision, time.monotonic() - began)


def _state_in(stored: Derived) -> str:
    return str(json.loads(bytes(stored.value))["state"]) if stored.computed_at else ""


def _due(stored: Derived) -> bool:
    if stored.computed_at is None:
        return True
    wait = max(LEAST_WAIT, RECOMPUTE_FACTOR * stored.seconds)
    return (timezone.now() - stored.computed_at).total_seconds() >= wait


def _read(stored: Derived, *, current: bool) -> RaterFigures:
    by_rater: Figures = defaultdict(list)
    document = json.loads(bytes(stored.value)) if stored.computed_at else {}
    for values in document.get("figures", ()):
        by_rater[values["rater"]].append(Figure(**values))
    medians = {int(rater): seconds for rater, seconds in document.get("medians", {}).items()}
    return RaterFigures(dict(by_rater), medians, current, stored.computed_at)


def _state(evaluation: Evaluation) -> str:
    """A hash of what the figures depend on, so far as it changes."""
    last = Rating.objects.filter(rater__evaluation=evaluation).aggregate(last=Max("pk"))["last"]
    gold = Item.objects.filter(evaluation=evaluation).exclude(gold="").order_by("pk")
    since = evaluation.raters.exclude(gold_since=None).order_by("pk")
    aside = evaluation.raters.exclude(set_aside_at=None).order_by("pk")
    state = (
        last,
        asdict(thresholds_of(evaluation)),
        list(gold.values_list("pk", "gold", "gold_removed")),
        list(since.values_list("pk", "gold_since")),
        list(aside.values_list("pk", flat=True)),
        sorted(sealed_items(evaluation.run)),
    )
    return md5(repr(state).encode(), usedforsecurity=False).hexdigest()


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
    criteria = evaluation.criteria
    parts = (
        "rater",
        "item",
        "item__row",
        "item__repeat_of",
        "shown_first",
        "item__response__candidate",
        "rating__seconds",
    )
    return [
        _Rated(rater, item, row, repeat_of, shown_first, candidate, seconds, counted_values(criteria, text))
        for rater, item, row, repeat_of, shown_first, candidate, seconds, text in assignments.values_list(
            *parts, "rating__values"
        )
    ]


def _values(evaluation: Evaluation, rating: _Rated) -> Iterable[RatedValue]:
    for number, value in rating.values.items():
        if (criterion := evaluation.criteria.get(number)) is not None:
            shown = turned(value) if criterion.compares and rating.shown_first == 2 else value
            yield RatedValue(rating.rater, rating.item, rating.row, number, value, shown, rating.candidate)


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
