"""Checking a results file against a version and a run's earlier verdicts, in batches. Writes nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from datasets.core.kinds import CHECKLIST, COMPARISON
from judging.core.metric_definition import MetricDefinition
from judging.core.results_file.records import RefusedLine, records
from judging.core.results_file.verdicts import FileVerdict, SeenVerdicts, metric_summaries, verdicts
from judging.records.models import Run
from judging.transfer.results_import.answers import Answers, LocatedVerdict
from judging.transfer.results_import.checklists import known_criteria
from judging.transfer.results_import.storing import ImportedVerdicts

BATCH = 1_000  # lines


@dataclass(slots=True)
class CheckedPart:
    """The result of a batch of lines up to `line`: new verdicts, the number of repeated ones, and refused lines."""

    line: int
    new: list[LocatedVerdict] = field(default_factory=list)
    same: int = 0
    refused: list[RefusedLine] = field(default_factory=list)


@dataclass(slots=True)
class VerdictSummary:
    """Counts of new verdicts by metric, source and model, for the report before the import."""

    metrics: Counter[str] = field(default_factory=Counter)
    sources: Counter[tuple[str, str]] = field(default_factory=Counter)
    models: Counter[str] = field(default_factory=Counter)

    def add(self, part: CheckedPart) -> None:
        for located in part.new:
            verdict = located.verdict
            self.metrics[verdict.metric] += 1
            self.sources[verdict.source_kind, verdict.source] += 1
            self.models[verdict.answer.model] += 1
            if verdict.other:
                self.models[verdict.other.model] += 1


def definitions_of(path: Path, run: Run | None) -> dict[str, MetricDefinition]:
    """The metrics of a file; existing metrics of the run keep their definition. Raises NotResults."""
    existing = (
        {metric.name: MetricDefinition.from_json(metric.definition) for metric in run.metrics.all()}
        if run
        else {}
    )
    definitions = {
        name: _definition(name, summary.kind, summary.scale)
        for name, summary in metric_summaries(records(path)).items()
    }
    return definitions | existing


def _definition(name: str, kind: str | None, scale: Sequence[float] | None) -> MetricDefinition:
    low, high = scale or ((0, 1) if kind == CHECKLIST else (1, 10))
    return MetricDefinition(
        name=name,
        min_score=low,
        max_score=high,
        scale_declared=scale is not None,
        gives=kind or "",
        compares="all" if kind == COMPARISON else "reference",
    )


def parts(
    path: Path, answers: Answers, run: Run | None, definitions: Mapping[str, MetricDefinition]
) -> Iterator[CheckedPart]:
    """Yield the file's lines in order, in batches. Raises NotResults."""
    kinds: dict[str, str | None] = {name: metric.gives or None for name, metric in definitions.items()}
    earlier, seen = ImportedVerdicts(run) if run else None, SeenVerdicts()
    lines = verdicts(records(path), kinds)
    try:
        while batch := list(islice(lines, BATCH)):
            yield _part(batch, answers, earlier, seen)
    finally:
        seen.close()


def _part(
    batch: Sequence[FileVerdict | RefusedLine],
    answers: Answers,
    earlier: ImportedVerdicts | None,
    seen: SeenVerdicts,
) -> CheckedPart:
    part = CheckedPart(batch[-1].line)
    part.refused += [entry for entry in batch if isinstance(entry, RefusedLine)]
    entries = answers.locate([entry for entry in batch if isinstance(entry, FileVerdict)])
    part.refused += [entry for entry in entries if isinstance(entry, RefusedLine)]
    located, unknown = known_criteria([entry for entry in entries if isinstance(entry, LocatedVerdict)])
    part.refused += unknown
    stored: Mapping[tuple[Any, ...], str] = earlier.stored_verdicts(located) if earlier else {}
    for verdict in located:
        agrees = seen.agrees(verdict.question, verdict.said)
        if agrees is None and earlier and (earlier_said := stored.get(earlier.question(verdict))) is not None:
            agrees = earlier_said == verdict.said
        if agrees is None:
            part.new.append(verdict)
        elif agrees:
            part.same += 1
        else:
            said = verdict.verdict.said[:60]
            part.refused.append(RefusedLine(verdict.verdict.line, "contradicts", {"said": said}))
    part.refused.sort(key=lambda refused: refused.line)
    return part
