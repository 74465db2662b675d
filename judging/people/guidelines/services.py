"""Change the guideline of an evaluation: while it runs, each change makes a version that ratings carry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext as _
from msgspec.structs import replace

from evalsite.accounts.models import User
from evalsite.audit import Action
from judging.people.assignments import audit, locked
from judging.people.blindness import refuse_names
from judging.people.guidelines.models import GuidelineVersion
from judging.people.guidelines.repeats import version_repeats_add
from judging.people.judgements import figures_change
from judging.people.models import Evaluation
from judging.records.json_text import storable
from judging.records.models import RunMetric

LONGEST_GUIDELINE = 50_000


@dataclass(frozen=True, slots=True)
class GuidelineTexts:
    """The guideline for all criteria, and each criterion's definition by number; Markdown."""

    guideline: str = ""
    criteria: Mapping[int, str] = field(default_factory=dict)

    @classmethod
    def of(cls, evaluation: Evaluation) -> GuidelineTexts:
        """The current texts."""
        own = {number: criterion.guideline for number, criterion in evaluation.criteria.items()}
        return cls(evaluation.guideline, own)


@dataclass(frozen=True, slots=True)
class GuidelineChange:
    """What a change made: `version` None for a draft, whose raters have seen nothing; `repeats`: added hidden ones."""

    version: GuidelineVersion | None
    repeats: int = 0


@transaction.atomic
def guideline_change(
    *, evaluation: Evaluation, texts: GuidelineTexts, seen: int, by: User | None
) -> GuidelineChange | None:
    """Change the texts. `seen`: the version that the person changed. None if nothing differs.

    Raises ValidationError if somebody else has changed it since, or a text is too long or names a candidate.
    """
    evaluation = locked(evaluation)
    texts = _checked(evaluation, texts, seen)
    before = GuidelineTexts.of(evaluation)
    if texts == before:
        return None
    if evaluation.state == "draft":
        _store_texts(evaluation, texts)
        audit(Action.GUIDELINE_CHANGED, evaluation, by, version=evaluation.guideline_version)
        return GuidelineChange(None)
    if evaluation.guideline_version == 1:
        _version(evaluation, 1, before, evaluation.run.created_by, at=evaluation.run.created_at)
    evaluation.guideline_version += 1
    _store_texts(evaluation, texts)
    version = _version(evaluation, evaluation.guideline_version, texts, by)
    repeats = version_repeats_add(evaluation, version)
    figures_change(evaluation)
    audit(Action.GUIDELINE_CHANGED, evaluation, by, version=version.number, repeats=repeats)
    return GuidelineChange(version, repeats)


def guideline_check(*, evaluation: Evaluation, texts: GuidelineTexts, seen: int) -> bool:
    """Whether these texts would change anything. Raises ValidationError like `guideline_change`."""
    return _checked(evaluation, texts, seen) != GuidelineTexts.of(evaluation)


def _checked(evaluation: Evaluation, texts: GuidelineTexts, seen: int) -> GuidelineTexts:
    """The texts as they can be stored, with the current ones of criteria that are not in `texts`."""
    if evaluation.state == "closed":
        raise ValidationError(_("The evaluation is closed. Reopen it to change the guideline."))
    if seen != evaluation.guideline_version:
        raise ValidationError(
            _("Somebody has changed the guideline in the meantime. Reload the page and change the new text.")
        )
    own = {
        number: _clean(texts.criteria.get(number, criterion.guideline))
        for number, criterion in evaluation.criteria.items()
    }
    texts = GuidelineTexts(_clean(texts.guideline), own)
    if any(len(text) > LONGEST_GUIDELINE for text in (texts.guideline, *own.values())):
        raise ValidationError(_("A text has at most %(n)s characters.") % {"n": LONGEST_GUIDELINE})
    refuse_names(evaluation, [texts.guideline, *own.values()])
    return texts


def _clean(text: str) -> str:
    return (storable(text.replace("\r\n", "\n")) or "").strip()


def _store_texts(evaluation: Evaluation, texts: GuidelineTexts) -> None:
    evaluation.guideline = texts.guideline
    evaluation.save(update_fields=["guideline", "guideline_version"])
    for metric in evaluation.metrics:
        changed = replace(evaluation.criteria[metric.number], guideline=texts.criteria[metric.number])
        RunMetric.objects.filter(pk=metric.pk).update(definition=changed.to_json())


def _version(
    evaluation: Evaluation, number: int, texts: GuidelineTexts, by: User | None, **more: object
) -> GuidelineVersion:
    criteria = {str(place): text for place, text in texts.criteria.items()}
    return GuidelineVersion.objects.create(
        evaluation=evaluation, number=number, guideline=texts.guideline, criteria=criteria, by=by, **more
    )
