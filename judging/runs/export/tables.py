"""Judgements as rows of a table, for spreadsheets and data frames."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db.models import Count, Max

from datasets.core.variables import reference_in, response_data
from judging.core.metric_definition import MetricDefinition
from judging.runs.counts import overridden_states
from judging.runs.export.records import LoadedJudgement, author_columns, data_of, load, record
from judging.runs.filters import ANYTHING, Filters
from judging.runs.models import JudgeReply, Run
from judging.runs.teamwork.exclusions import exclusions_of

_FIXED = ("line", "model", "response", "metric", "attempt", "state", "value", "reason")
_OF_OVERRIDE = ("own_state", "own_value", "own_reason", "overridden_by", "override_reason")
"""Columns of a run in which a reviewer has overridden something."""
_OF_EXCLUSION = ("excluded_by", "exclusion_reason")
"""Columns of a run in which a reviewer has excluded something from the figures."""


def table_columns(run: Run) -> list[str]:
    """The columns of a table; as many judges as the metric with the most asks for."""
    more = [
        *(_OF_OVERRIDE if overridden_states(run) else ()),
        *(_OF_EXCLUSION if exclusions_of(run).exists() else ()),
        *author_columns(run),
    ]
    asked = [
        f"{name}_{n}"
        for n in range(1, _most_judges(run) + 1)
        for name in ("judge", "verdict", "reply", "reasoning")
    ]
    return [*_FIXED, "flags", "seconds", *more, "question", "answer", "reference", *asked]


def _most_judges(run: Run) -> int:
    metrics = [MetricDefinition.from_json(one.definition) for one in run.metrics.all()]
    most = 1 if run.imported else max((metric.calls for metric in metrics), default=0)
    if any(metric.calls_over(2) > metric.calls for metric in metrics):  # as many as an answer had fields
        counts = JudgeReply.objects.filter(judgement__run=run).values("judgement").annotate(n=Count("pk"))
        return max(most, counts.aggregate(most=Max("n"))["most"] or 0)
    return most


def table_values(run: Run, filters: Filters = ANYTHING) -> Iterator[list[Any]]:
    """The judgements that are meant as rows of `table_columns`, as they are."""
    columns, authors = table_columns(run), author_columns(run)
    width, reviewed = len(columns), {_OF_OVERRIDE[0], _OF_EXCLUSION[0]} & {*columns}
    for one in load(run, filters, texts=True):
        values = list(_row(one, run.version.format, authors, reviewed))[:width]
        yield values + [None] * (width - len(values))


def _row(one: LoadedJudgement, form: str, authors: tuple[str, ...], reviewed: set[str]) -> Iterator[Any]:
    kept, judgement = record(one), one.judgement
    yield from (kept[name] for name in _FIXED)
    yield from (judgement.flags, judgement.seconds)
    if _OF_OVERRIDE[0] in reviewed:
        override = kept.get("override") or {}
        yield from (override.get("own", {}).get(name) for name in ("state", "value", "reason"))
        yield from (override.get("by"), override.get("reason"))
    if _OF_EXCLUSION[0] in reviewed:
        yield from ((kept.get("excluded") or {}).get(name) for name in ("by", "reason"))
    yield from (kept.get(name) for name in authors)
    data = data_of(judgement.row.raw, form)
    yield from (data["question"], response_data(judgement.response.raw)["content"], reference_in(data))
    for judge in kept["judges"]:
        reply = judge["reply"] or {}
        yield from (judge["name"], judge["verdict"], reply.get("content"), reply.get("reasoning_content"))
