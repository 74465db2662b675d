"""Data for an imported run's page: metrics, sources and files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.functional import Promise

from judging.core.metric_definition import MetricDefinition
from judging.runs.models import Run
from judging.runs.results_import.messages import KINDS, source_label
from judging.runs.results_import.models import ResultsImport, ResultsImportState

_MOST_SOURCES = 50


@dataclass(frozen=True, slots=True)
class ImportOutcome:
    """Metrics with the kind of their values, sources as (label, kind), the number of further sources, and the files."""

    metrics: Sequence[tuple[MetricDefinition, str | Promise]]
    sources: Sequence[tuple[str, str]]
    more_sources: int
    files: Sequence[ResultsImport]


def imported_of(run: Run) -> ImportOutcome:
    """The import outcome of an imported run."""
    definitions = [MetricDefinition.from_json(one.definition) for one in run.metrics.order_by("number")]
    sources = list(run.verdict_sources.order_by("pk").values_list("kind", "name"))
    files = run.results_imports.filter(state=ResultsImportState.DONE).select_related("created_by")
    return ImportOutcome(
        metrics=[(one, KINDS[one.values]) for one in definitions],
        sources=[(source_label(kind, name), kind) for kind, name in sources[:_MOST_SOURCES]],
        more_sources=max(0, len(sources) - _MOST_SOURCES),
        files=list(files.order_by("pk")),
    )
