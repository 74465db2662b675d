"""Results of runs, stored so that lists of runs, home pages and leaderboards don't have to compute them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import msgspec

from judging.core.charts.inline import mini_interval, trend
from judging.reports.labels import ValueFormat
from judging.reports.models import RunOutcome
from judging.reports.page.tables import (
    comparisons_under,
    kind_of,
    ranked,
    ranked_by_wins,
    under,
    win_rate_title,
)
from judging.reports.selectors import metrics_of, series_of
from judging.runs.models import Run

MOST_EARLIER = 200  # outcomes of a project that a trend considers
TREND_RUNS = 12
COMPARED = "comparisons"


class CandidateOutcome(msgspec.Struct, frozen=True):
    """One candidate under one metric: its mean, or its win rate in comparisons."""

    name: str
    mean: float | None
    low: float | None
    high: float | None
    items: int


class MetricOutcome(msgspec.Struct, frozen=True):
    """One metric of a run, best candidate first. `version`: of the metric, or a hash of its definition; results of
    equal versions can be compared. `kind`: type of its values, COMPARED for comparisons. `alike`: number of candidates
    that don't differ significantly from the leader."""

    metric: str
    version: str
    kind: str
    scale: tuple[float | None, float | None]
    alike: int
    candidates: list[CandidateOutcome]

    @property
    def leader(self) -> CandidateOutcome | None:
        first = self.candidates[0] if self.candidates else None
        return first if first and first.mean is not None else None

    def of(self, name: str) -> CandidateOutcome | None:
        return next((one for one in self.candidates if one.name == name), None)

    @property
    def values(self) -> ValueFormat:
        return ValueFormat(rate=True) if self.compared else ValueFormat.of(self.kind, *self.scale)

    @property
    def title(self) -> str:
        return win_rate_title(self.metric) if self.compared else self.metric

    @property
    def compared(self) -> bool:
        return self.kind == COMPARED


_OUTCOMES = msgspec.json.Decoder(list[MetricOutcome])


@dataclass(frozen=True, slots=True)
class OutcomeView:
    """A run's result in a list of runs: the leader under its first metric, and the number of other metrics."""

    metric: str
    name: str
    series: int
    mean: str
    interval: str
    bar: str
    trend: str
    alike: int
    more: int


def metric_outcomes(
    report: Mapping[str, Any], versions: Mapping[str, tuple[str, Any, Any]]
) -> list[MetricOutcome]:
    """Outcomes of a report; `versions`: each metric's version and the ends of its scale, in the run's order."""
    found = []
    for metric, (version, low, high) in versions.items():
        if compared := comparisons_under(report, metric):
            found.append(_of_comparisons(metric, version, compared))
            continue
        cells = ranked(report, metric)
        kind = kind_of(cells) or ""
        candidates = [
            CandidateOutcome(name, cell["mean"], cell["ci_low"], cell["ci_high"], cell["items"])
            for name, cell in cells.items()
        ]
        found.append(
            MetricOutcome(metric, version, kind, (low, high), _alike(report, metric, cells), candidates)
        )
    return found


def _of_comparisons(metric: str, version: str, compared: Mapping[str, Any]) -> MetricOutcome:
    """Win rates. They depend on who judged and which candidates were compared, so both are part of the version."""
    cells = ranked_by_wins(compared)
    leader = next(iter(cells), "")
    met = sha256("\n".join([compared["by"], *sorted(cells)]).encode()).hexdigest()[:16]
    return MetricOutcome(
        metric=metric,
        version=f"{version} {met}",
        kind=COMPARED,
        scale=(None, None),
        alike=sum(cell["rank_low"] == 1 for name, cell in cells.items() if name != leader),
        candidates=[
            CandidateOutcome(name, cell["win_rate"], cell["ci_low"], cell["ci_high"], cell["comparisons"])
            for name, cell in cells.items()
        ],
    )


def _alike(report: Mapping[str, Any], metric: str, cells: Mapping[str, Any]) -> int:
    leader = next(iter(cells), "")
    mine = [one for one in under(report, "pairs", metric) if leader in (one["a"], one["b"])]
    return sum(one["distinguishable"] is False for one in mine)


def outcome_keep(run: Run, report: Mapping[str, Any], revision: int) -> None:
    """Store a run's result."""
    scales = metrics_of(run)
    frozen = run.metrics.order_by("number").values_list("pk", "name", "metric_version_id", "definition")
    versions = {
        name: (str(version or sha256(definition.encode()).hexdigest()[:16]), scales[pk].low, scales[pk].high)
        for pk, name, version, definition in frozen
    }
    metrics = msgspec.to_builtins(metric_outcomes(report, versions))
    RunOutcome.objects.update_or_create(run=run, defaults={"revision": revision, "metrics": metrics})


def outcomes(projects: Iterable[int]) -> dict[int, tuple[int, list[MetricOutcome]]]:
    """{run: (data version, metrics)} of the newest runs of these projects, newest first."""
    found = RunOutcome.objects.filter(run__project__in=list(projects), run__archived_at=None).order_by(
        "-run_id"
    )
    rows = found.values_list("run_id", "run__version_id", "metrics")[:MOST_EARLIER]
    return {run: (version, msgspec.convert(metrics, _OUTCOMES.type)) for run, version, metrics in rows}


def outcome_views(runs: Sequence[Run]) -> dict[int, OutcomeView]:
    """{run: result} of runs that have a result, in two queries."""
    projects = {run.project_id for run in runs}
    known = outcomes(projects) if runs else {}
    series = series_of(projects) if known else {}
    views = {run.pk: _view(run.pk, known, series[run.project_id]) for run in runs if run.pk in known}
    return {run: view for run, view in views.items() if view is not None}


def _view(
    run: int, known: Mapping[int, tuple[int, list[MetricOutcome]]], series: Mapping[str, int]
) -> OutcomeView | None:
    metrics = known[run][1]
    first = next((one for one in metrics if one.leader), None)
    if first is None or first.leader is None:
        return None
    leader, values = first.leader, first.values
    number = series.get(leader.name, 1)
    means = earlier_means(run, first, leader.name, known)
    return OutcomeView(
        metric=first.title,
        name=leader.name,
        series=number,
        mean=values.text(leader.mean),
        interval=values.interval(leader.low, leader.high),
        bar=mini_interval(number, bar_ends(first), leader.mean, leader.low, leader.high),
        trend=trend(number, means, " → ".join(values.text(mean) for mean in means)),
        alike=first.alike,
        more=len(metrics) - 1,
    )


def bar_ends(metric: MetricOutcome) -> tuple[float, float]:
    """The range of an inline chart: the metric's scale, or the range of the intervals."""
    low, high = (0.0, 1.0) if metric.values.rate else metric.scale
    if low is not None and high is not None:
        return low, high
    ends = [end for one in metric.candidates for end in (one.mean, one.low, one.high) if end is not None]
    return min(ends), max(ends)


def earlier_means(
    run: int, metric: MetricOutcome, name: str, known: Mapping[int, tuple[int, list[MetricOutcome]]]
) -> list[float]:
    """A candidate's means in this and earlier runs over the same data with the same version of the metric."""
    mine = {pk: metrics for pk, (data, metrics) in known.items() if pk <= run and data == known[run][0]}
    found = (one for each in comparable(metric, mine).values() for one in each.candidates if one.name == name)
    return [one.mean for one in found if one.mean is not None][-TREND_RUNS:]


def comparable(
    metric: MetricOutcome, mine: Mapping[int, Sequence[MetricOutcome]]
) -> dict[int, MetricOutcome]:
    """{run: outcome} of runs that used the same version of the metric, oldest first."""
    return {
        run: one
        for run in sorted(mine)
        for one in mine[run]
        if (one.metric, one.version) == (metric.metric, metric.version)
    }
