"""The selection of judgements to re-judge or re-parse."""

from __future__ import annotations

from dataclasses import dataclass, replace

from judging.filters.conditions import matching
from judging.filters.judgement_filter import ANYTHING, CURRENT, Filters
from judging.records.models import Judgement, JudgementQuerySet, JudgementState, Run, RunMetric


@dataclass(frozen=True, slots=True)
class Selection:
    """The matches of a filter, or `only` the judgement with this id."""

    filters: Filters
    only: int | None = None

    def of(self, run: Run) -> JudgementQuerySet:
        """The selected current attempts, except those not run yet, which will be judged anyway."""
        judgements = (
            matching(run, replace(self.filters, attempts=CURRENT))
            if self.only is None
            else Judgement.objects.filter(run=run, pk=self.only)
        )
        return judgements.by_metrics().filter(current=True).exclude(state=JudgementState.NOT_RUN)

    def metrics(self, run: Run) -> list[RunMetric]:
        of_run = run.metrics.select_related("metric_version").order_by("number")
        if self.only is not None:
            return list(of_run.filter(pk__in=self.of(run).values("run_metric")))
        return list(of_run.filter(name=self.filters.metric) if self.filters.metric else of_run)

    @property
    def whole(self) -> bool:
        """Whether all judgements of the metrics are selected."""
        return self.only is None and replace(self.filters, metric="", sort=ANYTHING.sort) == ANYTHING


EVERYTHING = Selection(ANYTHING)
