"""Hidden repeats under a new version of the guideline: each rater gets up to ten own items again."""

from __future__ import annotations

import random

from django.db.models import Max, QuerySet

from judging.core.people.assignment import Twin
from judging.core.people.guideline_shift import MOST_REPEATS
from judging.people.dealt import items_dealt
from judging.people.further_answers import repeats_create
from judging.people.guidelines.models import GuidelineVersion, VersionRepeat
from judging.people.models import Assignment, AssignmentState, Evaluation, EvaluationRater, Item
from judging.records.seal import in_split

REPEAT_SHARE = 0.2  # of a rater's items, until they have had all repeats of the new version


def version_twins(evaluation: Evaluation, rater: EvaluationRater) -> list[Twin]:
    """The current version's repeats that this rater has not had, each with the number of items since the first time."""
    if evaluation.guideline_version == 1:
        return []
    waiting = list(_waiting(evaluation, rater).values_list("item", "item__repeat_of"))
    places = dict(
        Assignment.objects.filter(rater=rater, item__in=[of for _, of in waiting]).values_list(
            "item", "place"
        )
    )
    return [Twin(pk, rater.place - places[of]) for pk, of in waiting if of in places]


def version_repeats_to_come(evaluation: Evaluation, rater: EvaluationRater) -> int:
    """How many of the current version's repeats this rater has not had."""
    return _waiting(evaluation, rater).count() if evaluation.guideline_version > 1 else 0


def _waiting(evaluation: Evaluation, rater: EvaluationRater) -> QuerySet[VersionRepeat]:
    of_version = VersionRepeat.objects.filter(rater=rater, version__number=evaluation.guideline_version)
    return of_version.exclude(item__in=items_dealt(rater))


def version_repeats_expected(evaluation: Evaluation) -> int:
    """How many repeats a new version would bring now, over all raters."""
    return sum(len(_chosen(evaluation, rater, 0)) for rater in evaluation.raters.filter(left_at=None))


def version_repeats_add(evaluation: Evaluation, version: GuidelineVersion) -> int:
    """Add the repeats of a new version and delete earlier versions' that nobody has had. Returns how many were added.
    Call with the evaluation locked."""
    Item.objects.filter(
        evaluation=evaluation, version_repeat__version__number__lt=version.number, assignments=None
    ).delete()
    last = Item.objects.filter(evaluation=evaluation).aggregate(last=Max("number"))["last"] or 0
    pairs = [
        (rater, item)
        for rater in evaluation.raters.filter(left_at=None).order_by("pk")
        for item in _chosen(evaluation, rater, version.number)
    ]
    twins = repeats_create((item for _, item in pairs), after=last)
    VersionRepeat.objects.bulk_create(
        VersionRepeat(version=version, rater=rater, item=twin)
        for (rater, _), twin in zip(pairs, twins, strict=True)
    )
    return len(twins)


def _chosen(evaluation: Evaluation, rater: EvaluationRater, version: int) -> list[Item]:
    """Up to ten ordinary items that the rater has rated, drawn by the seed, those of the newest version first. Rows of
    a judge's split have no repeats."""
    rated = Assignment.objects.filter(
        rater=rater, state=AssignmentState.RATED, rating__isnull=False, item__needed__gt=0
    ).exclude(item__row__in=in_split(evaluation.run.version))
    own = list(rated.select_related("item", "rating").order_by("pk"))
    random.Random(f"version:{evaluation.seed}:{rater.pk}:{version}").shuffle(own)
    own.sort(key=lambda held: -held.rating.guideline_version if held.rating else 0)
    return [held.item for held in own[:MOST_REPEATS]]
