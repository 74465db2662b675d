"""The thresholds beyond which raters' figures stand out, as set for an evaluation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext as _

from evalsite.accounts.models import User
from evalsite.audit import Action
from evalsite.rounding import shortest
from judging.core.people.quality import Thresholds
from judging.people.assignments import audit, locked
from judging.people.models import Evaluation

SET = ("time", "side", "value", "agreement", "deviation", "repeats")
"""Those that are set here; that of gold is its pass mark."""
MOST = {"deviation": 4.0}  # the width of 1–5; the others are shares


def thresholds_of(evaluation: Evaluation) -> Thresholds:
    """Those of the evaluation, else the defaults."""
    changed = evaluation.quality_thresholds or {}
    return replace(Thresholds(), gold=evaluation.gold_mark, **changed)


def thresholds_refused(
    values: Mapping[str, float], factors: Mapping[str, float] | None = None
) -> dict[str, str]:
    """{name: why its value is refused}; `factors`: {name: by how much the values are multiplied}, for a form in
    percent."""
    most = {name: MOST.get(name, 1.0) * (factors or {}).get(name, 1.0) for name in values}
    return {
        name: _("Enter a number over 0 and up to %(most)s.") % {"most": shortest(most[name], 1)}
        for name, value in values.items()
        if not 0 < value <= most[name]
    }


@transaction.atomic
def thresholds_change(*, evaluation: Evaluation, values: Mapping[str, float], by: User) -> None:
    """Set thresholds (names of SET). Raises ValidationError with messages by name."""
    if refused := thresholds_refused(values):
        raise ValidationError(refused)
    evaluation = locked(evaluation)
    every = asdict(thresholds_of(evaluation)) | dict(values)
    evaluation.quality_thresholds = {name: every[name] for name in SET}
    evaluation.save(update_fields=["quality_thresholds"])
    audit(Action.THRESHOLDS_OF_RATERS, evaluation, by, **evaluation.quality_thresholds)
