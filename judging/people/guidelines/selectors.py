"""Versions of a guideline with their ratings, and how ratings shifted with each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db.models import Count

from judging.core.people.criteria import Criterion
from judging.core.people.guideline_shift import RatedAgain, Shift, guideline_shift
from judging.people.guidelines.models import GuidelineVersion, VersionRepeat
from judging.people.labels import counted_values
from judging.people.models import SENT_ONLY, Assignment, Evaluation
from judging.records.seal import sealed_items


@dataclass(frozen=True, slots=True)
class VersionLine:
    """A version with the ordinary ratings in force that carry it; `shifts`: [(criterion, shift)], without free text;
    `repeats`: (rated, all) of its hidden repeats."""

    version: GuidelineVersion
    ratings: int
    shifts: Sequence[tuple[Criterion, Shift]]
    repeats: tuple[int, int]


def ratings_by_version(evaluation: Evaluation, *, in_figures: bool = False) -> dict[int, int]:
    """{version: ordinary ratings in force}, only versions that have some. `in_figures`: without those of answers that
    only a rule sent."""
    counting = Assignment.objects.counted().filter(evaluation=evaluation, item__needed__gt=0)
    counting = counting.exclude(item__row__in=sealed_items(evaluation.run))
    if in_figures:
        counting = counting.exclude(item__in=evaluation.items.filter(SENT_ONLY))
    counts = counting.order_by().values_list("rating__guideline_version").annotate(count=Count("pk"))
    return dict(sorted(counts))


def mixed_versions(evaluations: Iterable[Evaluation]) -> dict[str, dict[int, int]]:
    """{criterion name: {version: ratings}} of the criteria whose figures hold several versions. Where evaluations share
    a criterion, the first of them that mixes versions is said."""
    mixed: dict[str, dict[int, int]] = {}
    for evaluation in evaluations:
        counts = ratings_by_version(evaluation, in_figures=True) if evaluation.guideline_version > 1 else {}
        if len(counts) > 1:
            for criterion in evaluation.criteria.values():
                mixed.setdefault(criterion.name, counts)
    return mixed


def version_lines(evaluation: Evaluation) -> list[VersionLine]:
    """The stored versions, newest first; empty while the guideline has not been changed."""
    counts, pairs = ratings_by_version(evaluation), _rated_again(evaluation)
    all_repeats = dict(
        VersionRepeat.objects.filter(version__evaluation=evaluation)
        .order_by()
        .values_list("version__number")
        .annotate(count=Count("pk"))
    )
    lines = []
    for version in evaluation.guideline_versions.select_related("by").order_by("-number"):
        own = pairs.get(version.number, {})
        shifts = [
            (criterion, guideline_shift(criterion, own.get(number, ())))
            for number, criterion in evaluation.criteria.items()
            if criterion.scale != "text"
        ]
        rated = max((len(values) for values in own.values()), default=0)
        repeats = rated, all_repeats.get(version.number, 0)
        lines.append(VersionLine(version, counts.get(version.number, 0), shifts, repeats))
    return lines


def _rated_again(evaluation: Evaluation) -> dict[int, dict[int, list[RatedAgain]]]:
    """{version: {criterion number: values before and after}} of repeats rated under their version whose first rating in
    force carries an earlier one."""
    criteria = evaluation.criteria
    again = Assignment.objects.counted().filter(evaluation=evaluation, item__version_repeat__isnull=False)
    again = again.exclude(item__row__in=sealed_items(evaluation.run))
    parts = ("rater", "item__repeat_of", "item__row", "item__version_repeat__version__number")
    repeats = list(again.values_list(*parts, "rating__guideline_version", "rating__values"))
    first = Assignment.objects.counted().filter(
        evaluation=evaluation, item__in=[of for _, of, *_rest in repeats]
    )
    before = {
        (rater, item): (version, counted_values(criteria, text))
        for rater, item, version, text in first.values_list(
            "rater", "item", "rating__guideline_version", "rating__values"
        )
    }
    pairs: dict[int, dict[int, list[RatedAgain]]] = defaultdict(lambda: defaultdict(list))
    for rater, of, row, number, carried, text in repeats:
        earlier, values = before.get((rater, of), (number, {}))
        if carried != number or earlier >= number:
            continue
        for criterion, value in counted_values(criteria, text).items():
            if criterion in values:
                pairs[number][criterion].append(RatedAgain(row, values[criterion], value))
    return pairs
