"""Results of runs, stored so that lists of runs, home pages and leaderboards don't have to compute them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, NamedTuple

import msgspec
from django.db.models import OuterRef, Subquery
from django.utils.translation import gettext as _

from evalsite.templatetags.show import percent
from judging.core.charts.inline import mini_interval, trend
from judging.core.statistics.headline import Headline, headline_of
from judging.core.statistics.ranking import comparisons_under, ranked, ranked_by_wins
from judging.records.models import Run
from judging.reports.headline import sentence, short_sentence
from judging.reports.labels import ValueFormat
from judging.reports.page.order_view import first_share, short_order
from judging.reports.page.tables import kind_of, win_rate_title
from judging.reports.selectors import metrics_of, series_of
from judging.reports.stored import OUTCOMES
from judging.reports.verdict_shares import verdicts_of

MOST_EARLIER = 200  # outcomes of a project that a trend considers
TREND_RUNS = 12
COMPARED = "comparisons"


class CandidateOutcome(msgspec.Struct, frozen=True):
    """One candidate under one metric: its mean, or its win rate in comparisons. `shares`: of each verdict of
    comparisons with the reference; empty for other metrics, and in earlier results."""

    name: str
    mean: float | None
    low: float | None
    high: float | None
    items: int
    shares: dict[str, float] = {}

    @property
    def verdicts(self) -> str:
        """The share of each verdict that occurs: `A>B 20 % · A=B 80 %`."""
        return " · ".join(f"{code} {percent(share, 0)}" for code, share in self.shares.items() if share)


class MetricOutcome(msgspec.Struct, frozen=True):
    """One metric of a run, best candidate first. `version`: of the metric, or a hash of its definition; results of
    equal versions can be compared. `kind`: type of its values, COMPARED for comparisons. `headline`: None in results
    stored before there were headlines. `first`: as in order_view.first_share, None also in earlier results."""

    metric: str
    version: str
    kind: str
    scale: tuple[float | None, float | None]
    candidates: list[CandidateOutcome]
    headline: Headline | None = None
    first: tuple[str, float] | None = None

    @property
    def leader(self) -> CandidateOutcome | None:
        first = self.candidates[0] if self.candidates else None
        return first if first and first.mean is not None else None

    def of(self, name: str) -> CandidateOutcome | None:
        return next((candidate for candidate in self.candidates if candidate.name == name), None)

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
    """A run's result in a list of runs: the headline of its first metric with scores, and the number of other metrics.

    `text`: the headline in short; `sentence`: in full; `series`: of the candidate that it is about, 0 if it is about
    several; `mean`, `interval`, `bar`: of the first of them, or empty where people contradict the judge. `outdated`: it
    was stored by an earlier release, and lacks what is shown now. `order`: in how many resamplings the first is first.
    `verdicts`: the first one's, of comparisons with the reference.
    """

    metric: str
    text: str
    sentence: str
    series: int
    mean: str
    interval: str
    bar: str
    trend: str
    more: int
    outdated: bool = False
    order: str = ""
    verdicts: str = ""


def metric_outcomes(
    report: Mapping[str, Any],
    versions: Mapping[str, tuple[str, Any, Any]],
    with_reference: Collection[str] = (),
) -> list[MetricOutcome]:
    """Outcomes of a report; `versions`: each metric's version and the ends of its scale, in the run's order;
    `with_reference`: the metrics that compare answers with the reference."""
    results = []
    for metric, (version, low, high) in versions.items():
        if compared := comparisons_under(report, metric):
            results.append(_of_comparisons(report, metric, version, compared))
            continue
        cells = ranked(report, metric)
        kind = kind_of(cells) or ""
        candidates = [
            CandidateOutcome(
                name,
                cell["mean"],
                cell["ci_low"],
                cell["ci_high"],
                cell["items"],
                _shares(cell) if metric in with_reference else {},
            )
            for name, cell in cells.items()
        ]
        headline = headline_of(report, metric)
        if headline.value == "corrected":
            version += " corrected"  # never compared with raw means
        first = first_share(report, metric)
        results.append(MetricOutcome(metric, version, kind, (low, high), candidates, headline, first))
    return results


def _shares(cell: Mapping[str, Any]) -> dict[str, float]:
    return {code: verdict["share"] for code, verdict in verdicts_of(cell).items()}


def _of_comparisons(
    report: Mapping[str, Any], metric: str, version: str, compared: Mapping[str, Any]
) -> MetricOutcome:
    """Win rates. They depend on who judged and which candidates were compared, so both are part of the version."""
    cells = ranked_by_wins(compared)
    met = sha256("\n".join([compared["by"], *sorted(cells)]).encode()).hexdigest()[:16]
    return MetricOutcome(
        metric=metric,
        version=f"{version} {met}",
        kind=COMPARED,
        scale=(None, None),
        headline=headline_of(report, metric),
        first=first_share(report, metric),
        candidates=[
            CandidateOutcome(name, cell["win_rate"], cell["ci_low"], cell["ci_high"], cell["comparisons"])
            for name, cell in cells.items()
        ],
    )


def outcome_store(run: Run, report: Mapping[str, Any], revision: int) -> None:
    """Store a run's result."""
    scales = {metric.name: metric for metric in metrics_of(run).values()}
    versions = {
        name: (version, scales[name].low, scales[name].high)
        for name, version in versions_of_metrics(run).items()
    }
    stored = metric_outcomes(report, versions, [name for name, scale in scales.items() if scale.compares])
    OUTCOMES.put(run.pk, value=msgspec.json.encode(stored), revision=revision)


def versions_of_metrics(run: Run) -> dict[str, str]:
    """{name: its version, or a hash of its definition} of the run's metrics, in the run's order."""
    frozen = run.metrics.order_by("number").values_list("name", "metric_version_id", "definition")
    return {
        name: str(version or sha256(definition.encode()).hexdigest()[:16])
        for name, version, definition in frozen
    }


class RunOutcomes(NamedTuple):
    """A run's stored result. `outdated`: it was stored by an earlier release."""

    version: int
    metrics: list[MetricOutcome]
    outdated: bool


def outcomes(projects: Iterable[int]) -> dict[int, RunOutcomes]:
    """{run: result} of the newest runs of these projects, newest first."""
    stored = OUTCOMES.of_any_layout().filter(subject=OuterRef("pk"))
    runs = Run.objects.filter(project__in=list(projects), archived_at=None).annotate(
        outcome=Subquery(stored.values("value")), layout=Subquery(stored.values("layout"))
    )
    rows = runs.exclude(outcome=None).order_by("-pk").values_list("pk", "version_id", "outcome", "layout")
    return {
        run: RunOutcomes(version, _OUTCOMES.decode(value), layout != OUTCOMES.layout)
        for run, version, value, layout in rows[:MOST_EARLIER]
    }


def stored_outcomes(runs: Iterable[int]) -> dict[int, list[MetricOutcome]]:
    """{run: its stored result} of these runs."""
    rows = OUTCOMES.of_any_layout().filter(subject__in=list(runs)).values_list("subject", "value")
    return {run: _OUTCOMES.decode(value) for run, value in rows}


def outcome_views(runs: Sequence[Run]) -> dict[int, OutcomeView]:
    """{run: result} of runs that have a result, in two queries."""
    projects = {run.project_id for run in runs}
    results = outcomes(projects) if runs else {}
    series = series_of(projects) if results else {}
    views = {run.pk: _view(run.pk, results, series[run.project_id]) for run in runs if run.pk in results}
    return {run: view for run, view in views.items() if view is not None}


def _view(run: int, results: Mapping[int, RunOutcomes], series: Mapping[str, int]) -> OutcomeView | None:
    metrics = results[run].metrics
    first = next((metric for metric in metrics if metric.leader), None)
    if first is None or first.leader is None:
        return None
    leader, values, headline = first.leader, first.values, first.headline
    number = series.get(leader.name, 1)
    means = earlier_means(run, first, leader.name, results)
    shown = headline is not None and headline.gap is None
    return OutcomeView(
        metric=first.title,
        text=short_sentence(headline) if headline else _("The result is being updated"),
        sentence=sentence(headline, values) if headline else "",
        series=number if headline and headline.code in ("leads", "nothing") else 0,
        mean=values.text(leader.mean) if shown else "",
        interval=values.interval(leader.low, leader.high) if shown and leader.low is not None else "",
        bar=mini_interval(number, bar_ends(first), leader.mean, leader.low, leader.high) if shown else "",
        trend=trend(number, means, " → ".join(values.text(mean) for mean in means)),
        more=len(metrics) - 1,
        outdated=results[run].outdated,
        order=short_order(*first.first) if first.first and shown else "",
        verdicts=leader.verdicts if shown else "",
    )


def bar_ends(metric: MetricOutcome) -> tuple[float, float]:
    """The range of an inline chart: the metric's scale, or the range of the intervals."""
    low, high = (0.0, 1.0) if metric.values.rate else metric.scale
    if low is not None and high is not None:
        return low, high
    ends = [
        end
        for candidate in metric.candidates
        for end in (candidate.mean, candidate.low, candidate.high)
        if end is not None
    ]
    return min(ends), max(ends)


def earlier_means(
    run: int, metric: MetricOutcome, name: str, results: Mapping[int, RunOutcomes]
) -> list[float]:
    """A candidate's means in this and earlier runs over the same data with the same version of the metric."""
    mine = {
        pk: result.metrics
        for pk, result in results.items()
        if pk <= run and result.version == results[run].version
    }
    candidates = (
        candidate
        for each in comparable(metric, mine).values()
        for candidate in each.candidates
        if candidate.name == name
    )
    return [candidate.mean for candidate in candidates if candidate.mean is not None][-TREND_RUNS:]


def comparable(
    metric: MetricOutcome, mine: Mapping[int, Sequence[MetricOutcome]]
) -> dict[int, MetricOutcome]:
    """{run: outcome} of runs that used the same version of the metric, oldest first."""
    return {
        run: outcome
        for run in sorted(mine)
        for outcome in mine[run]
        if (outcome.metric, outcome.version) == (metric.metric, metric.version)
    }
