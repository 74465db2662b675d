"""What the page of an imported run shows besides that of any run."""

from __future__ import annotations

from typing import Any

from datasets.messages import translated
from judging.core.metric_definition import MetricDefinition
from judging.core.results_file.records import VALUE_KINDS
from judging.messages import source_label
from judging.records.models import Run
from judging.transfer.results_import.models import ResultsImportState
from judging.transfer.results_import.opened import evidence_of, evidence_sentences, is_doubtful

MOST_SOURCES = 50  # shown


def imported_facts(run: Run) -> dict[str, Any]:
    """What an imported run's page shows: its metrics with the kind of their values, its sources, its files, and the
    evidence file that it was opened from."""
    definitions = [MetricDefinition.from_json(metric.definition) for metric in run.metrics.order_by("number")]
    sources = list(run.verdict_sources.order_by("pk").values_list("kind", "name"))
    evidence = evidence_of(run)
    files = run.results_imports.filter(state=ResultsImportState.DONE).select_related("created_by")
    return {
        "metrics": [(definition, translated(VALUE_KINDS[definition.gives])) for definition in definitions],
        "sources": [(source_label(kind, name), kind) for kind, name in sources[:MOST_SOURCES]],
        "more_sources": max(0, len(sources) - MOST_SOURCES),
        "evidence": evidence_sentences(evidence) if evidence else [],
        "doubtful": is_doubtful(evidence) if evidence else False,
        "files": files.order_by("pk"),
    }
