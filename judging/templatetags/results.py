"""Template tags for candidates and results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django import template
from django.utils.safestring import SafeString, mark_safe

from datasets.models import Version
from judging.core.charts.series import mark
from judging.core.statistics.document import bins_of
from judging.people.access import hidden_among, rates_here
from judging.records.models import Run
from judging.reports.figures import request_results
from judging.reports.labels import ValueFormat, candidate_label
from judging.reports.links import breakable
from judging.reports.outcomes import OutcomeView, outcome_views
from judging.reports.page.tables import verdict_shares
from judging.reports.selectors import series_of as project_series
from judging.reports.views import figures_context

register = template.Library()


@register.filter
def candidate_mark(name: str, series: Mapping[str, int]) -> SafeString:
    """The candidate's color and shape; '' if it is not in `series`."""
    return mark_safe(mark(series[name]) if name in series else "")  # noqa: S308 (paths of ours)


register.filter(breakable)
register.filter(candidate_label)


@register.simple_tag
def series_of(version: Version) -> dict[str, int]:
    """{candidate name: color number}, the same on all pages of the version's project."""
    return project_series([version.dataset.project_id])[version.dataset.project_id]


@register.simple_tag(takes_context=True)
def outcomes_of(
    context: template.Context, runs: Iterable[Run | tuple[Run, object]]
) -> dict[int, OutcomeView]:
    """{run id: result} for the runs of a list: `{% outcomes_of runs as outcomes %}`. Outdated ones are requested."""
    shown = [entry if isinstance(entry, Run) else entry[0] for entry in runs]
    hidden = hidden_among(context["request"], shown)
    views = outcome_views([run for run in shown if run not in hidden])
    if outdated := [run for run in shown if run.pk in views and views[run.pk].outdated]:
        request_results(outdated)
    return views


@register.inclusion_tag("reports/_summary.html", takes_context=True)
def run_summary(context: template.Context, run: Run) -> dict[str, object]:
    """A run's result on its page. Hidden from users who are still rating its answers."""
    if rates_here(context["request"], run):
        return {"hidden": True}
    return {**context.flatten(), **figures_context(run)}  # type: ignore[dict-item]


@register.filter
def formatted(value: float | None, values: ValueFormat) -> str:
    """A value of a metric, with the decimals of its column."""
    return values.text(value)


@register.filter
def interval_of(values: ValueFormat, cell: Mapping[str, float | None]) -> str:
    """The interval of a cell's mean."""
    return values.interval(cell["ci_low"], cell["ci_high"])


@register.filter
def difference(value: float | None, values: ValueFormat) -> str:
    """A difference of a metric's values with its sign."""
    return values.signed(value)


@register.filter
def of(outcomes: Mapping[int, OutcomeView], key: int) -> OutcomeView | None:
    """The result of the run with this id; None if there is none."""
    return outcomes.get(key)


@register.filter
def number_mark(number: int) -> SafeString:
    """The color and shape of the series with this number."""
    return mark_safe(mark(number))  # noqa: S308 (paths of ours)


@register.filter
def drawn(chart: str) -> SafeString:
    """Mark a chart of `core.charts` as safe; these escape all texts."""
    return mark_safe(chart)  # noqa: S308 (see above)


@register.filter
def verdict_shares_of(cell: Mapping[str, Any]) -> str:
    """The share of each verdict of a cell of comparisons with the reference: A>B 20 % · A=B 80 %."""
    return verdict_shares(bins_of(cell))
