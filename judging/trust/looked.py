"""Answers that were looked at before a judge was written: their labels are for training only."""

from __future__ import annotations

from typing import NamedTuple

from datasets.models import Version
from judging.core.licensing import TRAIN
from judging.look.models import TrainLabel
from judging.trust.answers import Answer, row_keys
from judging.trust.models import Split


class LookedLabel(NamedTuple):
    """Whether the answer passes, and what was noted on it."""

    passed: bool
    note: str


def looked_labels(split: Split) -> dict[Answer, LookedLabel]:
    """The labels from looks on the split's train rows."""
    labels = TrainLabel.objects.filter(metric=split.metric_id, version__dataset=split.dataset_id)
    if not labels.exists():
        return {}
    trained = set(split.rows.filter(part=TRAIN).values_list("key", flat=True))
    looked: dict[Answer, LookedLabel] = {}
    versions = Version.objects.filter(pk__in=labels.order_by().values("version").distinct())
    for version in versions.order_by("number"):
        keys = row_keys(version, by_id=split.by_id)[0]
        parts = ("row__line", "response__candidate__name", "response__number", "passed", "note")
        for line, candidate, number, passed, note in labels.filter(version=version).values_list(*parts):
            if keys.get(line) in trained:
                looked[Answer(keys[line], candidate, number, "", 0)] = LookedLabel(passed, note)
    return looked
