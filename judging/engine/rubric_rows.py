"""The rubrics of a version's rows: which rows have one that can be read, and how many criteria they have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from statistics import fmean

import msgspec
from django.core.exceptions import ValidationError
from django.utils.translation import ngettext

from datasets.core.kinds import CHECKLIST
from datasets.core.rubric import Rubric, read_rubric
from datasets.models import Row, Version
from judging.core.metric_definition import MetricDefinition

UNREADABLE = "rubrics_unreadable"
"""The code of the refusal to start a run."""

_LOOKED_AT = 200  # rows for an estimate
_ROWS = 2_000  # read at a time


class _RubricOfRow(msgspec.Struct):
    rubric: object = None


_decode = msgspec.json.Decoder(_RubricOfRow).decode


def rubrics(version: int, most: int | None = None) -> Iterator[tuple[int, Rubric | None]]:
    """(row id, rubric) of each valid row of a version, or of the first `most`; None without one that can be read."""
    rows = Row.objects.filter(version=version, valid=True).order_by("line").values_list("pk", "raw")
    for pk, raw in rows[:most] if most else rows.iterator(_ROWS):
        yield pk, read_rubric(_decode(raw).rubric)[0]


def needs_rubrics(definitions: Iterable[MetricDefinition]) -> bool:
    """Whether any metric judges by the rows' rubrics as uploaded; a preprocess script may make or mend them."""
    return any(metric.gives == CHECKLIST and not metric.scripts_before_judges for metric in definitions)


def mean_criteria(version: Version) -> float:
    """The mean number of criteria over the first rows that have a rubric; 1 without any."""
    counts = [len(rubric.criteria) for _row, rubric in rubrics(version.pk, _LOOKED_AT) if rubric]
    return fmean(counts) if counts else 1.0


def unreadable_rows(version: Version) -> set[int]:
    """Ids of the rows without a rubric that can be read."""
    return {row for row, rubric in rubrics(version.pk) if rubric is None}


def refuse_unreadable(
    version: Version, definitions: Iterable[MetricDefinition], *, leave_out: bool
) -> int | None:
    """The number of rows that a run leaves out, None if it needs no rubrics.

    Raises ValidationError, with the number, unless they may be left out and others remain.
    """
    if not needs_rubrics(definitions):
        return None
    count = len(unreadable_rows(version))
    if count and (not leave_out or count == version.valid_rows):
        sentence = ngettext(
            "%(count)s of %(rows)s rows has no rubric that a checklist can be judged by. Repair it on the version "
            "page, or leave the row out.",
            "%(count)s of %(rows)s rows have no rubric that a checklist can be judged by. Repair them on the version "
            "page, or leave these rows out.",
            count,
        )
        raise ValidationError(sentence % {"count": count, "rows": version.valid_rows}, code=UNREADABLE)
    return count
