"""Preliminary result of a human evaluation for its page: leader, differences, and agreement of raters.

All figures come from the report's document.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache

from judging.core.charts.inline import mini_interval
from judging.core.people.criteria import BOTH_BAD, STEPS, Criterion
from judging.people.access import rates_here
from judging.people.labels import value_label
from judging.reports.figures import for_page
from judging.reports.labels import ValueFormat
from judging.reports.selectors import series_of
from judging.reports.services import report_document
from judging.runs.access import get_run
from judging.runs.models import Run

BAR = 120  # width of a distribution bar, in SVG units
RATE = ValueFormat(rate=True)
Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment of a distribution bar; `tone`: 1…5 from low, or A, to high, or B."""

    label: str
    count: int
    share: float
    x: float
    width: float
    tone: int


@dataclass(frozen=True, slots=True)
class CandidateLine:
    """A candidate: its mean or win rate with interval, as numbers, texts and chart, and the counts of its values."""

    name: str
    value: float | None
    text: str
    interval: str
    bar: str
    items: int
    segments: list[Segment]


@dataclass(frozen=True, slots=True)
class CriterionResult:
    """One criterion. `lines`: the candidates, best first. `clear`: whether the first is significantly better than
    the second; None without a second. `steps`: counts of each verdict on two candidates."""

    criterion: Criterion
    lines: list[CandidateLine]
    clear: bool | None
    steps: list[Segment]
    agreement: Mapping[str, Any] | None

    @property
    def scored(self) -> bool:
        return any(line.items for line in self.lines)


@login_required
@never_cache
def people_result(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """The fragment; the page polls for it while people rate."""
    run = get_run(request, slug, pk)
    context: dict[str, Any] = {"run": run, "live": run.by_people and not run.ended and run.not_run > 0}
    if rates_here(request, run):
        return render(request, "reports/_people_result.html", {"run": run, "hidden": True})
    if context["live"] and request.GET.get("seen") == str(run.revision):
        return HttpResponse(status=204)  # nothing to swap in
    kept = for_page(run)
    if kept is not None:
        context["series"] = series_of([run.project_id])[run.project_id]
        context["results"] = results_of(run, report_document(run, kept.figures), context["series"])
    return render(request, "reports/_people_result.html", context)


def results_of(run: Run, document: Document, series: Mapping[str, int]) -> list[CriterionResult]:
    """Results by criterion, except free text. `series`: {candidate: number of its colour}."""
    criteria = [
        Criterion.from_json(text)
        for text in run.metrics.order_by("number").values_list("definition", flat=True)
    ]
    agreement = {one["metric"]: one for one in document["raters"]}
    compared = {one["metric"]: one for one in document["side_by_side"] if one["by"] == "people"}
    found = []
    for one in criteria:
        if one.compares and one.name in compared:
            found.append(_compared(one, compared[one.name], agreement.get(one.name), series))
        elif not one.compares and one.scale != "text":
            found.append(_rated(one, document, agreement.get(one.name), series))
    return found


def _rated(
    criterion: Criterion, document: Document, agreement: Document | None, series: Mapping[str, int]
) -> CriterionResult:
    cells = {
        name: of[criterion.name] for name, of in document["people_candidates"].items() if criterion.name in of
    }
    lines = [_line(name, cell, criterion, series) for name, cell in cells.items()]
    lines.sort(key=lambda line: -(line.value if line.value is not None else -1e9))
    pair = _pair(document["pairs"], [line.name for line in lines], criterion.name)
    clear = None if pair is None else bool(pair["distinguishable"])
    return CriterionResult(criterion, lines, clear, [], agreement)


def _ends(criterion: Criterion) -> tuple[float, float]:
    numbers = [float(one) for one in criterion.choices if not isinstance(one, str)]
    return (min(numbers), max(numbers)) if numbers else (0.0, 1.0)


def _line(name: str, cell: Document, criterion: Criterion, series: Mapping[str, int]) -> CandidateLine:
    ends, values = _ends(criterion), ValueFormat()
    figures = [cell[key] for key in ("mean", "ci_low", "ci_high")]
    if criterion.scale == "yes_no":
        figures, values = [cell.get(key) for key in ("rate", "rate_ci_low", "rate_ci_high")], RATE
    segments = _segments(_counts(criterion, cell))
    return _drawn(name, figures, values, ends, cell["items"], segments, series)


def _drawn(
    name: str,
    figures: Sequence[float | None],
    values: ValueFormat,
    ends: tuple[float, float],
    items: int,
    segments: list[Segment],
    series: Mapping[str, int],
) -> CandidateLine:
    """`figures`: mean or win rate, and the ends of its interval."""
    value, low, high = figures
    bar = "" if value is None else mini_interval(series.get(name, 1), ends, value, low, high)
    text, interval = values.text(value), "" if low is None else values.interval(low, high)
    return CandidateLine(name, value, text, interval, bar, items, segments)


def _counts(criterion: Criterion, cell: Document) -> list[tuple[str, int]]:
    """Counts of people's values, in the scale's order."""
    if criterion.scale == "yes_no":
        yes = round((cell.get("rate") or 0) * cell["items"])
        return [(value_label(criterion, False), cell["items"] - yes), (value_label(criterion, True), yes)]
    if criterion.scale == "categories":
        known = cell.get("categories") or {}
        return [(one, known.get(one, {}).get("count", 0)) for one in criterion.categories]
    return [(f"{one['low']:g}–{one['high']:g}", one["count"]) for one in cell["distribution"]]


def _segments(counts: Sequence[tuple[str, int]]) -> list[Segment]:
    whole, made, x = sum(count for _, count in counts), [], 0.0
    for place, (label, count) in enumerate(counts):
        if count:
            width = BAR * count / whole
            tone = 1 + round(4 * place / max(1, len(counts) - 1))
            made.append(Segment(label, count, count / whole, round(x, 1), round(width, 1), tone))
            x += width
    return made


def _pair(pairs: Sequence[Document], names: Sequence[str], metric: str | None = None) -> Document | None:
    """The pair of the first two `names`, in either order."""
    wanted = set(names[:2])
    of_metric = (one for one in pairs if metric is None or one["metric"] == metric)
    return next((one for one in of_metric if len(wanted) == 2 and {one["a"], one["b"]} == wanted), None)


def _compared(
    criterion: Criterion, figures: Document, agreement: Document | None, series: Mapping[str, int]
) -> CriterionResult:
    lines = []
    for name, cell in figures["candidates"].items():
        counts = [(_("Losses"), cell["losses"]), (_("Ties"), cell["ties"]), (_("Wins"), cell["wins"])]
        rates = [cell[key] for key in ("win_rate", "ci_low", "ci_high")]
        lines.append(_drawn(name, rates, RATE, (0, 1), cell["comparisons"], _segments(counts), series))
    lines.sort(key=lambda line: -(line.value if line.value is not None else -1))
    pair = _pair(figures["pairs"], [line.name for line in lines])
    clear = None
    if pair is not None and pair["ci_low"] is not None:
        clear = pair["ci_low"] > 0.5 or pair["ci_high"] < 0.5
    return CriterionResult(criterion, lines, clear, _steps(criterion, figures), agreement)


def _steps(criterion: Criterion, figures: Document) -> list[Segment]:
    """Counts of each verdict on two candidates, from the first one's win to the other's."""
    if len(figures["pairs"]) != 1:
        return []
    names, said = (figures["pairs"][0]["a"], figures["pairs"][0]["b"]), figures["steps"]
    order = [one for one in STEPS if criterion.scale == "steps" or one in criterion.choices]
    order.insert(order.index("A=B") + 1, BOTH_BAD)
    return _segments([(value_label(criterion, one, names), said.get(one, 0)) for one in order])
