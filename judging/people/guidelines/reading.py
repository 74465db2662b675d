"""Reading first: the guideline opens by itself at a rater's first item and after each change."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.safestring import SafeString

from evalsite import clock
from evalsite.accounts.models import User
from judging.markdown import html_of
from judging.people.guidelines.models import GuidelineReading
from judging.people.models import Evaluation, EvaluationRater


@dataclass(frozen=True, slots=True)
class GuidelineText:
    """A part of the guideline: the criterion's name ('' for all of them) and its text as sanitized Markdown."""

    name: str
    html: SafeString


def guideline_texts(evaluation: Evaluation) -> list[GuidelineText]:
    """The current guideline, without empty parts."""
    parts = [("", evaluation.guideline)]
    parts += [(criterion.name, criterion.guideline) for criterion in evaluation.criteria.values()]
    return [GuidelineText(name, html_of(text)) for name, text in parts if text.strip()]


def reading_due(evaluation: Evaluation, user: User, *, opens: bool = True) -> bool:
    """Whether this rater has the current version still to read; never without a text. With `opens` it is opened now,
    which is noted."""
    rater = _rater(evaluation, user)
    if rater is None or not guideline_texts(evaluation):
        return False
    version = evaluation.guideline_version
    reading = GuidelineReading.objects.filter(rater=rater, version=version).first()
    if reading is None and opens:
        GuidelineReading.objects.get_or_create(rater=rater, version=version)
    return reading is None or reading.understood_at is None


def guideline_understood(*, evaluation: Evaluation, user: User, version: int) -> None:
    """Note when a rater closed a version with “Understood”; the first time counts."""
    rater = _rater(evaluation, user)
    if rater is not None and 1 <= version <= evaluation.guideline_version:
        GuidelineReading.objects.get_or_create(rater=rater, version=version)
        readings = GuidelineReading.objects.filter(rater=rater, version=version, understood_at=None)
        readings.update(understood_at=clock.now())


def _rater(evaluation: Evaluation, user: User) -> EvaluationRater | None:
    return EvaluationRater.objects.filter(evaluation=evaluation, user=user, left_at=None).first()


def readings_of(evaluation: Evaluation) -> list[tuple[EvaluationRater, GuidelineReading | None]]:
    """Each active rater with their reading of the current version."""
    readings = {
        reading.rater_id: reading
        for reading in GuidelineReading.objects.filter(
            rater__evaluation=evaluation, version=evaluation.guideline_version
        )
    }
    raters = evaluation.raters.filter(left_at=None).select_related("user").order_by("pk")
    return [(rater, readings.get(rater.pk)) for rater in raters]
