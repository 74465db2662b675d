"""People's results by criterion, for the page of a human evaluation and for the reports that include it.

All figures come from the report's document.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _

from datasets.core.kinds import BOTH_BAD, CATEGORY, COMPARISON_CODES, PASS_FAIL, TIE
from evalsite.templatetags.show import share
from judging.core.charts.axis import tick_text
from judging.core.charts.inline import mini_interval
from judging.core.people.criteria import Criterion
from judging.core.people.item_outcomes import ItemKind
from judging.core.people.spans import SEVERITIES
from judging.core.statistics.document import bins_of
from judging.core.statistics.frame import ScaledMetric
from judging.core.statistics.headline import headline_of
from judging.core.statistics.ranking import ranked_by_wins
from judging.people.access import rates_here
from judging.people.labels import kind_names, signed, value_label
from judging.records.access import get_run
from judging.records.models import Run
from judging.reports.figures import for_page
from judging.reports.guideline_notes import version_sentences
from judging.reports.headline import sentence_html, values_of
from judging.reports.labels import ValueFormat, beside, share_interval
from judging.reports.page.tables import category_share
from judging.reports.people_outcomes import ItemOutcomes, RaterText, rated_criteria
from judging.reports.selectors import metrics_of, series_of
from judging.reports.services import report_document

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
    """A candidate: its mean or win rate with interval, as numbers, texts and chart, and the counts of its values.
    `shares`: (category, count, share with its interval) of all categories; of spans (label, count, count of each
    severity)."""

    name: str
    value: float | None
    text: str
    interval: str
    bar: str
    items: int
    segments: list[Segment]
    shares: list[tuple[str, int, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class CriterionResult:
    """One criterion. `lines`: the candidates, best first. `lead`: the report's headline; '' without values. `steps`:
    counts of each verdict on two candidates. `kinds`: (name, number of items, code) of each kind of outcome that
    occurs, if several people rated an item. `texts`: the newest ones of a criterion of free text. `versions`: a
    sentence if the figures mix versions of the guideline.
    """

    criterion: Criterion
    lines: list[CandidateLine]
    lead: str
    steps: list[Segment]
    agreement: Mapping[str, Any] | None
    kinds: list[tuple[str, int, ItemKind]] = field(default_factory=list)
    texts: Sequence[RaterText] = ()
    versions: Sequence[str] = ()

    @property
    def rated(self) -> bool:
        """Also where raters split on every item, so that none has a value."""
        return bool(self.kinds) or any(line.items for line in self.lines)

    @property
    def in_categories(self) -> bool:
        return self.criterion.gives == CATEGORY


@login_required
def people_result(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """The fragment; the page polls for it while people rate."""
    run = get_run(request, slug, pk)
    if not run.by_people:
        raise Http404
    context: dict[str, Any] = {"run": run, "live": run.by_people and not run.ended and run.not_run > 0}
    if rates_here(request, run):
        return render(request, "reports/_people_result.html", {"run": run, "hidden": True})
    if context["live"] and request.GET.get("seen") == str(run.revision):
        return HttpResponse(status=204)  # nothing to swap in
    stored = for_page(run, polled=context["live"])
    if stored is not None:
        context["revision"] = stored.revision
        context["series"] = series_of([run.project_id])[run.project_id]
        context["results"] = results_of(run, report_document(run, stored.figures), context["series"])
    return render(request, "reports/_people_result.html", context)


def results_of(run: Run, document: Document, series: Mapping[str, int]) -> list[CriterionResult]:
    """Results by criterion of the run's human evaluations. `series`: {candidate: number of its colour}. Leads are only
    stated for an evaluation's own run; those of other runs are about their judges."""
    metrics = {metric.name: metric for metric in metrics_of(run).values()} if run.by_people else {}
    agreement = {raters["metric"]: raters for raters in document["raters"]}
    compared = {
        comparisons["metric"]: comparisons
        for comparisons in document["side_by_side"]
        if comparisons["by"] == "people"
    }
    results = []
    for rated in rated_criteria(run):
        criterion, name = rated.criterion, rated.criterion.name
        if criterion.scale == "text":
            results.append(CriterionResult(criterion, [], "", [], None, texts=rated.texts))
            continue
        if criterion.compares and name in compared:
            lines = _compared(compared[name], rated.outcomes.undecided, series)
            steps = _steps(criterion, compared[name])
        elif not criterion.compares:
            lines, steps = _rated(criterion, document, rated.outcomes, series), []
        else:
            continue
        lead = _lead(document, metrics[name], series) if name in metrics else ""
        kinds = _kinds(criterion, rated.outcomes.kinds)
        versions = version_sentences(document, name)
        results.append(
            CriterionResult(criterion, lines, lead, steps, agreement.get(name), kinds, versions=versions)
        )
    return results


def _kinds(criterion: Criterion, counts: Mapping[str, int]) -> list[tuple[str, int, ItemKind]]:
    """The kinds of outcome that occur, with names; none if every item has one rating."""
    shown = [(name, counts[kind], kind) for kind, name in kind_names(criterion).items() if counts.get(kind)]
    return shown if set(counts) - {"single"} else []


def _lead(document: Document, metric: ScaledMetric, series: Mapping[str, int]) -> str:
    headline = headline_of(document, metric.name)
    if headline.mean is None:
        return ""
    return sentence_html(headline, values_of(headline, metric.low, metric.high), series)


def _rated(
    criterion: Criterion, document: Document, outcomes: ItemOutcomes, series: Mapping[str, int]
) -> list[CandidateLine]:
    cells = {
        name: of[criterion.name] for name, of in document["people_candidates"].items() if criterion.name in of
    }
    ends = _ends(criterion, cells.values())
    lines = [
        _line(name, cell, criterion, ends, outcomes.undecided.get(name, 0), series)
        for name, cell in cells.items()
    ]
    if criterion.marks_spans:
        lines = [replace(line, shares=_marks(criterion, outcomes, line.name)) for line in lines]
    lines.sort(key=lambda line: -(line.value if line.value is not None else -1e9))
    return lines


def _ends(criterion: Criterion, cells: Iterable[Document]) -> tuple[float, float]:
    """The ends of the chart's axis: of the scale, without one from the lowest figure to 0."""
    if criterion.marks_spans:
        figures = [cell[key] for cell in cells for key in ("mean", "ci_low", "ci_high")]
        drawn = [figure for figure in figures if figure is not None]
        return min([float(max(SEVERITIES)), *drawn]), max([0.0, *drawn])
    numbers = [float(choice) for choice in criterion.choices if not isinstance(choice, str)]
    return (min(numbers), max(numbers)) if numbers else (0.0, 1.0)


def _line(
    name: str,
    cell: Document,
    criterion: Criterion,
    ends: tuple[float, float],
    undecided: int,
    series: Mapping[str, int],
) -> CandidateLine:
    values = ValueFormat()
    figures = [cell[key] for key in ("mean", "ci_low", "ci_high")]
    if criterion.gives == PASS_FAIL:
        figures, values = [cell.get(key) for key in ("rate", "rate_ci_low", "rate_ci_high")], RATE
    segments = _segments(_counts(criterion, cell, undecided))
    line = _drawn(name, figures, values, ends, cell["items"], segments, series)
    return replace(line, shares=_shares(criterion, cell)) if criterion.gives == CATEGORY else line


def _marks(criterion: Criterion, outcomes: ItemOutcomes, candidate: str) -> list[tuple[str, int, str]]:
    marks = []
    for label in criterion.categories:
        counts = {severity: outcomes.marks[candidate, label, severity] for severity in SEVERITIES}
        severities = [f"{signed(severity)} × {count}" for severity, count in counts.items() if count]
        marks.append((label, sum(counts.values()), ", ".join(severities)))
    return [mark for mark in marks if mark[1]]


def _shares(criterion: Criterion, cell: Document) -> list[tuple[str, int, str]]:
    shares = ((label, category_share(cell, label)) for label in criterion.categories)
    return [
        (
            label,
            category["count"],
            beside(share(category["share"]), share_interval(category["ci_low"], category["ci_high"])),
        )
        for label, category in shares
    ]


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


def _counts(criterion: Criterion, cell: Document, undecided: int) -> list[tuple[str, int]]:
    """Counts of people's values, in the scale's order; `undecided`: of answers without a majority."""
    if criterion.gives == PASS_FAIL:
        no = cell["distribution"]["false"]
        neither = min(undecided, cell["scored"] - no)
        names = value_label(criterion, False), _("No majority"), value_label(criterion, True)
        return list(zip(names, (no, neither, cell["scored"] - no - neither), strict=True))
    if criterion.gives == CATEGORY:
        categories = cell.get("categories") or {}
        return [(category, categories.get(category, {}).get("count", 0)) for category in criterion.categories]
    return [
        (f"{tick_text(score_bin['low'])}–{tick_text(score_bin['high'])}", score_bin["count"])
        for score_bin in bins_of(cell)
    ]


def _segments(counts: Sequence[tuple[str, int]]) -> list[Segment]:
    whole, segments, x = sum(count for _, count in counts), [], 0.0
    for place, (label, count) in enumerate(counts):
        if count:
            width = BAR * count / whole
            tone = 1 + round(4 * place / max(1, len(counts) - 1))
            segments.append(Segment(label, count, count / whole, round(x, 1), round(width, 1), tone))
            x += width
    return segments


def _compared(
    figures: Document, undecided: Mapping[str, int], series: Mapping[str, int]
) -> list[CandidateLine]:
    """`undecided`: by candidate, comparisons among the ties on which raters have no majority."""
    lines = []
    for name, cell in ranked_by_wins(figures).items():
        open_ones = min(undecided.get(name, 0), cell["ties"])
        counts = [(_("Losses"), cell["losses"]), (_("Ties"), cell["ties"] - open_ones)]
        counts += [(_("No majority"), open_ones), (_("Wins"), cell["wins"])]
        rates = [cell[key] for key in ("win_rate", "ci_low", "ci_high")]
        lines.append(_drawn(name, rates, RATE, (0, 1), cell["comparisons"], _segments(counts), series))
    return lines


def _steps(criterion: Criterion, figures: Document) -> list[Segment]:
    """Counts of each verdict on two candidates, from the first one's win to the other's."""
    if len(figures["pairs"]) != 1:
        return []
    names, said = (figures["pairs"][0]["a"], figures["pairs"][0]["b"]), figures["steps"]
    order = [step for step in COMPARISON_CODES if criterion.scale == "steps" or step in criterion.choices]
    order.insert(order.index(TIE) + 1, BOTH_BAD)
    return _segments([(value_label(criterion, step, names), said.get(step, 0)) for step in order])
