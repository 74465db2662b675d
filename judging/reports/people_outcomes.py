"""What raters' verdicts on each item come to, and the texts that they wrote, for reports and evaluations' pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from django.core.cache import cache

from datasets.core.kinds import PASS_FAIL
from judging.core.people.criteria import Criterion
from judging.core.people.item_outcomes import kind_of_item, undecided_pairs
from judging.core.people.spans import Span, spans_of
from judging.core.values import Value
from judging.people.labels import values_of
from judging.people.models import SENT_ONLY, Adjudication, Assignment, Evaluation, FurtherAnswer, Item
from judging.people.progress import rated
from judging.people.selectors import evaluations_of
from judging.records.models import Run
from judging.records.seal import sealed_items
from judging.reports.selectors import shown_name

CACHE_SECONDS = 3600
MOST_TEXTS = 50
LOOKED_AT = 500  # ratings in which texts are looked for


@dataclass(frozen=True, slots=True)
class ItemOutcomes:
    """One criterion: items by the kind of their outcome; for each candidate, its comparisons that count as ties, and
    its answers that count as half a yes, because no side has a majority; and how often raters marked spans of each
    (candidate, label, severity)."""

    kinds: Counter[str] = field(default_factory=Counter)
    undecided: Counter[str] = field(default_factory=Counter)
    marks: Counter[tuple[str, str, int]] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class RaterText:
    """What a rater wrote about an item under a criterion of free text."""

    text: str
    item: int
    rater: str
    names: str
    run: int  # the evaluation's


@dataclass(frozen=True, slots=True)
class RatedCriterion:
    """A criterion of the human evaluations that a run's report includes; those with the same name count together."""

    criterion: Criterion
    outcomes: ItemOutcomes
    texts: Sequence[RaterText]


def rated_criteria(run: Run) -> list[RatedCriterion]:
    by_name: dict[str, RatedCriterion] = {}
    for evaluation in evaluations_of(run):
        outcomes, texts = item_outcomes(evaluation, evaluation.run.revision), texts_of(evaluation)
        for number, criterion in evaluation.criteria.items():
            new = RatedCriterion(criterion, outcomes.get(number, ItemOutcomes()), texts.get(number, ()))
            earlier = by_name.get(criterion.name)
            if earlier is None:
                by_name[criterion.name] = new
            elif _alike(earlier.criterion, criterion):
                by_name[criterion.name] = _merged(earlier, new)
    return list(by_name.values())


def _alike(a: Criterion, b: Criterion) -> bool:
    """Whether both take the same values."""
    return (a.gives, a.choices, a.categories) == (b.gives, b.choices, b.categories)


def _merged(a: RatedCriterion, b: RatedCriterion) -> RatedCriterion:
    outcomes = ItemOutcomes(
        a.outcomes.kinds + b.outcomes.kinds,
        a.outcomes.undecided + b.outcomes.undecided,
        a.outcomes.marks + b.outcomes.marks,
    )
    return RatedCriterion(a.criterion, outcomes, [*b.texts, *a.texts])


def item_outcomes(evaluation: Evaluation, revision: int) -> dict[int, ItemOutcomes]:
    """{criterion number: outcomes} of all criteria but free text; stored until the run's `revision` changes."""
    key = f"item_outcomes:with_marks:{evaluation.pk}:{evaluation.run.created_at.timestamp()}"
    stored: tuple[int, dict[int, ItemOutcomes]] | None = cache.get(key)
    if stored is not None and stored[0] == revision:
        return stored[1]
    outcomes = _outcomes(evaluation)
    cache.set(key, (revision, outcomes), CACHE_SECONDS)
    return outcomes


def _outcomes(evaluation: Evaluation) -> dict[int, ItemOutcomes]:
    criteria = {
        number: criterion for number, criterion in evaluation.criteria.items() if criterion.scale != "text"
    }
    outcomes = {number: ItemOutcomes() for number in criteria}
    names = _names(evaluation)
    decided = set(Adjudication.objects.filter(item__evaluation=evaluation).values_list("item", flat=True))
    sealed = evaluation.items.filter(row__in=sealed_items(evaluation.run)).values_list("pk", flat=True)
    decided.update(sealed)  # in no candidate's figures
    sent = set(evaluation.items.filter(SENT_ONLY).values_list("pk", flat=True))
    for item, by_rater in rated(evaluation).items():
        if item in sent:
            continue
        for number, criterion in criteria.items():
            values = [values[number] for values in by_rater.values() if number in values]
            if values:
                outcomes[number].kinds[kind_of_item(criterion, values)] += 1
                if item not in decided:
                    for answers in _undecided(criterion, values, len(names[item])):
                        outcomes[number].undecided.update(names[item][answer] for answer in answers)
    for number, item, span in _marks(evaluation):
        outcomes[number].marks[names[item][0], span.label, span.severity] += 1
    return outcomes


def _marks(evaluation: Evaluation) -> Iterator[tuple[int, int, Span]]:
    """(criterion number, item, span) of all marks in force, without those of a sealed test, or of answers that only a
    rule sent."""
    marking = [number for number, criterion in evaluation.criteria.items() if criterion.marks_spans]
    if not marking:
        return
    ratings = Assignment.objects.counted().filter(evaluation=evaluation, item__needed__gt=0)
    ratings = ratings.exclude(item__row__in=sealed_items(evaluation.run))
    ratings = ratings.exclude(item__in=evaluation.items.filter(SENT_ONLY))
    for item, text in ratings.values_list("item", "rating__values"):
        values = values_of(text)
        for number in marking:
            for span in spans_of(values.get(number, "[]")):
                yield number, item, span


def _undecided(criterion: Criterion, values: list[Value], answers: int) -> Sequence[Sequence[int]]:
    """The answers of an item, by position, or the pairs, that no majority decides."""
    if criterion.compares:
        return undecided_pairs(criterion, values)
    return [range(answers)] if criterion.gives == PASS_FAIL and 2 * values.count(True) == len(values) else []


def _names(evaluation: Evaluation) -> dict[int, list[str]]:
    """{item: names of its candidates in figures}."""
    parts = [f"{side}__candidate__{part}" for side in ("response", "other_response") for part in _NAME]
    by_item = {}
    for pk, *names in Item.objects.filter(evaluation=evaluation).values_list("pk", *parts):
        pairs = (names[:2], names[2:])
        by_item[pk] = [shown_name(name, version) for name, version in pairs if name is not None]
    further = FurtherAnswer.objects.filter(item__evaluation=evaluation).order_by("item", "place")
    for item, *pair in further.values_list("item", *(f"response__candidate__{part}" for part in _NAME)):
        by_item[item].append(shown_name(*pair))
    return by_item


_NAME = ("name", "version__number")


def texts_of(evaluation: Evaluation) -> Mapping[int, list[RaterText]]:
    """{criterion number: newest texts} of the criteria of free text."""
    texts: dict[int, list[RaterText]] = {
        number: [] for number, criterion in evaluation.criteria.items() if criterion.scale == "text"
    }
    if not texts:
        return {}
    ratings = Assignment.objects.counted().filter(evaluation=evaluation, item__needed__gt=0)
    ratings = ratings.exclude(item__row__in=sealed_items(evaluation.run))
    ratings = ratings.select_related(
        "item__response__candidate", "item__other_response__candidate", "rater", "rating"
    )
    for assignment in ratings.order_by("-rated_at", "-pk")[:LOOKED_AT]:
        for number, value in values_of(assignment.rating.values if assignment.rating else "").items():
            if number in texts and len(texts[number]) < MOST_TEXTS and str(value).strip():
                names = " · ".join(assignment.item.candidate_names)
                text = RaterText(
                    str(value), assignment.item.number, assignment.rater.pseudonym, names, evaluation.run_id
                )
                texts[number].append(text)
    return texts
