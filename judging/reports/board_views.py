"""A project's leaderboard: candidates by metric over its runs, and each candidate's scores over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from datasets.models import Version
from evalsite import access
from evalsite.access import May
from evalsite.accounts.models import Project
from judging.core.charts.inline import mini_interval, trend
from judging.people.access import hidden_among
from judging.records.models import Run
from judging.records.servers import changes_among
from judging.reports.figures import request_results
from judging.reports.outcomes import (
    CandidateOutcome,
    MetricOutcome,
    RunOutcomes,
    bar_ends,
    comparable,
    outcomes,
)
from judging.reports.selectors import series_of


@dataclass(frozen=True, slots=True)
class BoardScore:
    """A candidate's score under a metric in one run. `trend`: over the runs with the same data and metric version;
    `verdicts`: their shares in comparisons with the reference; `run`: in its list of results over time."""

    metric: str
    mean: str
    interval: str
    items: int
    bar: str
    address: str
    trend: str = ""
    verdicts: str = ""
    run: Run | None = None


CHANGES_SHOWN = 5


@login_required
def leaderboard(request: HttpRequest, slug: str) -> HttpResponse:
    """Scores that can be compared: over one data version, each metric in one version."""
    project = access.get_project(request, slug, May.READ_JUDGEMENTS)
    results = outcomes([project.pk])
    runs = list(Run.objects.filter(pk__in=results).select_related("project"))
    for run in hidden_among(request, runs):
        del results[run.pk]
    if outdated := [run for run in runs if run.pk in results and results[run.pk].outdated]:
        request_results(outdated)
    versions = _versions(project, results)
    version = _chosen(request.GET.get("version", ""), versions)
    mine = {
        run: result.metrics for run, result in results.items() if version and result.version == version.pk
    }
    columns = newest_versions(mine)
    names = _names(mine, columns)
    series = series_of([project.pk])[project.pk]
    candidate = request.GET.get("candidate", "")
    if candidate and candidate not in names:
        raise Http404
    metrics = [metric.title for metric in columns.values()]
    rows = [
        (
            name,
            [
                (metric.title, _newest(project, name, comparable(metric, mine), series.get(name, 1)))
                for metric in columns.values()
            ],
        )
        for name in names
    ]
    context = {
        "versions": versions,
        "version": version,
        "metrics": metrics,
        "series": series,
        "rows": rows,
        "candidate": candidate,
        "entries": _over_time(project, candidate, mine, columns, series.get(candidate, 1))
        if candidate
        else [],
        "left_out": _left_out(mine, columns),
        "server_changes": changes_among(mine)[-CHANGES_SHOWN:],
    }
    return render(request, "reports/leaderboard.html", context)


def _versions(project: Project, results: Mapping[int, RunOutcomes]) -> list[Version]:
    version_ids = {result.version for result in results.values()}
    return list(
        Version.objects.filter(pk__in=version_ids, dataset__project=project)
        .select_related("dataset")
        .order_by("-pk")
    )


def _chosen(wanted: str, versions: Sequence[Version]) -> Version | None:
    if not wanted:
        return versions[0] if versions else None
    version = next((version for version in versions if str(version.pk) == wanted), None)
    if version is None:
        raise Http404
    return version


def newest_versions(mine: Mapping[int, Sequence[MetricOutcome]]) -> dict[str, MetricOutcome]:
    """{name: outcome of its newest run} of each metric with means."""
    newest: dict[str, MetricOutcome] = {}
    for run in sorted(mine, reverse=True):
        for metric in mine[run]:
            if metric.leader is not None:
                newest.setdefault(metric.metric, metric)
    return dict(sorted(newest.items()))


def _names(mine: Mapping[int, Sequence[MetricOutcome]], columns: Mapping[str, MetricOutcome]) -> list[str]:
    """The candidates, best under the first metric first."""
    sort_keys: dict[str, float] = {}
    for place, metric in enumerate(columns.values()):
        for run in reversed(comparable(metric, mine).values()):
            for candidate in run.candidates:
                if candidate.mean is not None:
                    sort_keys.setdefault(candidate.name, place - candidate.mean / 1e9)
    return sorted(sort_keys, key=lambda name: (sort_keys[name], name))


def _newest(project: Project, name: str, runs: Mapping[int, MetricOutcome], number: int) -> BoardScore | None:
    """A candidate's newest score with its trend, from the runs that can be compared."""
    by_run = {
        run: outcome
        for run, metric in runs.items()
        if (outcome := metric.of(name)) and outcome.mean is not None
    }
    if not by_run:
        return None
    newest = max(by_run)
    means = [each.mean for each in by_run.values()]
    words = " → ".join(runs[newest].values.text(mean) for mean in means)
    return _score(project, newest, runs[newest], by_run[newest], number, trend(number, means, words))


def _score(
    project: Project, run: int, metric: MetricOutcome, outcome: CandidateOutcome, number: int, trend: str = ""
) -> BoardScore:
    return BoardScore(
        metric=metric.title,
        mean=metric.values.text(outcome.mean),
        interval="" if outcome.low is None else metric.values.interval(outcome.low, outcome.high),
        items=outcome.items,
        bar=mini_interval(number, bar_ends(metric), outcome.mean, outcome.low, outcome.high),
        address=reverse("runs:report", args=[project.slug, run]),
        trend=trend,
        verdicts=outcome.verdicts,
    )


def _over_time(
    project: Project,
    name: str,
    mine: Mapping[int, Sequence[MetricOutcome]],
    columns: Mapping[str, MetricOutcome],
    number: int,
) -> list[BoardScore]:
    """A candidate's comparable scores by metric, newest first."""
    runs = Run.objects.filter(project=project, pk__in=mine).in_bulk()
    return [
        replace(_score(project, run, metric, outcome, number), run=runs[run])
        for column in columns.values()
        for run, metric in reversed(comparable(column, mine).items())
        if (outcome := metric.of(name)) and outcome.mean is not None
    ]


def _left_out(mine: Mapping[int, Sequence[MetricOutcome]], columns: Mapping[str, MetricOutcome]) -> int:
    """Number of runs with only older versions of a metric, whose scores are not shown next to the newest."""
    shown = {run for metric in columns.values() for run in comparable(metric, mine)}
    return len(mine.keys() - shown)
