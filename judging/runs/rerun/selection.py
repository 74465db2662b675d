"""Which judgements are judged again, or read again: by a filter, or one."""

from __future__ import annotations

from dataclasses import dataclass, replace

from judging.runs.filters import ANYTHING, CURRENT, Filters, matching
from judging.runs.models import Judgement, JudgementQuerySet, JudgementState, Run, RunMetric


@dataclass(frozen=True, slots=True)
class Selection:
    """Which judgements: by the list's filter, or `only` the one with this id."""

    filters: Filters
    only: int | None = None

    def of(self, run: Run) -> JudgementQuerySet:
        """The current attempts among them that were made: what was not run yet is still to be asked anyway."""
        found = (
            matching(run, replace(self.filters, attempts=CURRENT))
            if self.only is None
            else Judgement.objects.filter(run=run, pk=self.only)
        )
        return found.by_metrics().filter(current=True).exclude(state=JudgementState.NOT_RUN)

    def metrics(self, run: Run) -> list[RunMetric]:
        of_run = run.metrics.select_related("metric_version").order_by("number")
        if self.only is not None:
            return list(of_run.filter(pk__in=self.of(run).values("run_metric")))
        return list(of_run.filter(name=self.filters.metric) if self.filters.metric else of_run)

    @property
    def whole(self) -> bool:
        """All judgements of the metrics?"""
        return self.only is None and replace(self.filters, metric="", sort=ANYTHING.sort) == ANYTHING
