"""Where a drill's answers come from, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from datasets.models import Candidate, Response
from datasets.selectors import usable_versions
from evalsite.accounts.models import Project
from judging.core.metric_definition import MetricDefinition
from judging.core.statistics.drill import DEFECTS
from judging.engine.rubric_rows import mean_criteria
from judging.metrics.models import MetricVersion
from judging.records.models import Run
from judging.runs.preflight import Preflight, preflight
from judging.runs.selectors import Cost, MetricChoice
from judging.trust.drills import as_drilled
from judging.trust.sources import AnswerSource

USUAL_ROWS = 200
MOST_ROWS = 1_000
SOURCES_OFFERED = 50
JUDGED_TIMES = len(DEFECTS) + 2
"""Judgements of a row, at most: the untouched answer twice, and one with each defect."""


@dataclass(frozen=True)
class DrillSource(AnswerSource):
    """Answers in which defects can be planted."""

    @cached_property
    def candidates(self) -> Sequence[str]:
        """The names of those that have answers, or are to have."""
        if self.run is None:
            offered = Candidate.uploaded.filter(version=self.version)
        else:
            offered = Candidate.objects.filter(pk__in=self.run.run_candidates.values("candidate"))
        return list(offered.order_by("name").values_list("name", flat=True))

    @cached_property
    def rows(self) -> int:
        """How many rows have an answer."""
        answers = Response.objects.filter(row__version=self.version, row__valid=True).exclude(raw="")
        if self.run is None:
            answers = answers.filter(candidate__in=Candidate.uploaded.filter(version=self.version))
        else:
            answers = answers.filter(candidate__in=self.run.run_candidates.values("candidate"))
        return answers.values("row").distinct().count()


def drill_sources(project: Project) -> list[DrillSource]:
    """The newest data sets with answers, and the newest runs that generated theirs."""
    versions = usable_versions(project).filter(candidates__in=Candidate.uploaded.all()).distinct()
    runs = Run.objects.by_workers().with_verdicts().filter(project=project, archived_at=None)
    generating = runs.exclude(run_candidates__definition="").select_related("version__dataset").distinct()
    return [
        *(DrillSource(version) for version in versions[:SOURCES_OFFERED]),
        *(DrillSource(run.version, run) for run in generating.order_by("-pk")[:SOURCES_OFFERED]),
    ]


def source_of_run(run: Run) -> DrillSource:
    """What a drill from a run's page draws from."""
    generates = run.run_candidates.exclude(definition="").exists()
    return DrillSource(run.version, run if generates else None)


def drill_cost(
    metric_version: MetricVersion, source: DrillSource, rows: int
) -> tuple[Cost, Preflight | None]:
    """The most that a drill over so many rows asks for, with an estimate of tokens and price."""
    definition = as_drilled(MetricDefinition.from_json(metric_version.definition))
    rows = min(rows, source.rows)
    judgements = rows * JUDGED_TIMES
    criteria = mean_criteria(source.version) if definition.asks_by_criterion else 1
    calls = round(judgements * definition.calls_over(1, criteria))
    cost = Cost(rows, judgements, calls, about=criteria != 1, criteria=criteria, of_metrics=(judgements,))
    return cost, preflight(source.version, [MetricChoice(metric_version, definition, [])], cost)
