"""Checking a results file against a version and a run's earlier verdicts, in batches. Writes nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from judging.core.metric_definition import MetricDefinition
from judging.core.results_file.records import RefusedLine, records
from judging.core.results_file.verdicts import FileVerdict, Kind, SeenVerdicts, metric_summaries, verdicts
from judging.runs.models import Run
from judging.runs.results_import.answers import Answers, LocatedVerdict
from judging.runs.results_import.storing import ImportedVerdicts

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
        for one in part.new:
            verdict = one.verdict
            self.metrics[verdict.metric] += 1
            self.sources[verdict.source_kind, verdict.source] += 1
            self.models[verdict.answer.model] += 1
            if verdict.other:
                self.models[verdict.other.model] += 1


def definitions_of(path: Path, run: Run | None) -> dict[str, MetricDefinition]:
    """The metrics of a file; existing metrics of the run keep their definition. Raises NotResults."""
    known = {one.name: MetricDefinition.from_json(one.definition) for one in run.metrics.all()} if run else {}
    found = {
        name: _definition(name, one.kind, one.scale) for name, one in metric_summaries(records(path)).items()
    }
    return found | known


def _definition(name: str, kind: Kind | None, scale: Sequence[float] | None) -> MetricDefinition:
    low, high = scale or (1, 10)
    return MetricDefinition(
        name=name, min_score=low, max_score=high, scale_declared=scale is not None, values=kind or ""
    )


def parts(
    path: Path, answers: Answers, run: Run | None, definitions: Mapping[str, MetricDefinition]
) -> Iterator[CheckedPart]:
    """Yield the file's lines in order, in batches. Raises NotResults."""
    kinds: dict[str, Kind | None] = {name: one.values or None for name, one in definitions.items()}
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
    part.refused += [one for one in batch if isinstance(one, RefusedLine)]
    about = answers.find([one for one in batch if isinstance(one, FileVerdict)])
    part.refused += [one for one in about if isinstance(one, RefusedLine)]
    found = [one for one in about if isinstance(one, LocatedVerdict)]
    said: Mapping[tuple[Any, ...], str] = earlier.said(found) if earlier else {}
    for one in found:
        verdict = one.verdict
        agrees = seen.agrees(one.question, one.said)
        if agrees is None and earlier and (known := said.get(earlier.question(one))) is not None:
            agrees = known == one.said
        if agrees is None:
            part.new.append(one)
        elif agrees:
            part.same += 1
        else:
            part.refused.append(RefusedLine(verdict.line, "contradicts", {"said": verdict.said[:60]}))
    part.refused.sort(key=lambda one: one.line)
    return part
