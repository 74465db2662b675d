"""The tables of the report page: texts, linked to the data they were computed from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from evalsite.names import bracketed
from evalsite.templatetags.show import NONE, number, percent, share
from judging.core.charts.axis import tick_text
from judging.core.charts.series import mark
from judging.core.statistics.document import CategoryShare, bins_of
from judging.core.statistics.frame import ScaledMetric
from judging.core.statistics.intervals import rate_interval
from judging.core.statistics.ranking import Cells, comparisons_under, ranked, ranked_by_wins
from judging.core.values import verdict_code
from judging.filters.judgement_filter import meaning_category
from judging.reports.labels import ValueFormat, beside, candidate_label, decimal, share_interval
from judging.reports.links import Links, linked
from judging.reports.verdict_items import ANSWERS

Series = Mapping[str, int]
"""{candidate: number of its colour and mark}."""
_NO_BREAK = "\u00a0"


@dataclass(frozen=True, slots=True)
class Column:
    """A column header; `num`: its cells are numbers."""

    name: str
    num: bool = True


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of texts or safe markup; the first cell is the row's header."""

    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]

    @property
    def lines(self) -> Iterator[list[tuple[Column, str]]]:
        """Each row's cells with their columns."""
        return (list(zip(self.columns, row, strict=True)) for row in self.rows)


def columns_of(texts: Sequence[str], numbers: Sequence[str]) -> list[Column]:
    """The columns of texts, then those of numbers."""
    return [*(Column(name, num=False) for name in texts), *map(Column, numbers)]


def marked(series: Series, name: str, text: str = "") -> SafeString:
    """A candidate's name, or a text about it, after its mark, if the run has a candidate of this name."""
    icon = mark_safe(mark(series[name]) if name in series else "")  # noqa: S308 (paths of ours)
    return format_html("{}{}", icon, text or candidate_label(name))


def kind_of(cells: Cells) -> str | None:
    """What the metric's means are over: numbers, bools or categories; None without scores."""
    return next((cell["kind"] for cell in cells.values() if cell["kind"]), None)


def rank_text(best: int | None, worst: int | None) -> str:
    """A range of possible ranks."""
    if best is None:
        return NONE
    return str(best) if best == worst else f"{best}–{worst}"


def uncertain(cell: Mapping[str, Any]) -> bool:
    """Whether missing scores could change the mean."""
    return cell["kind"] != "category" and bool(cell["unparsed"] or cell["errors"] or cell["not_run"])


def metrics_table(document: Mapping[str, Any], metrics: Sequence[ScaledMetric], series: Series) -> Table:
    """Each candidate's mean or win rate with its interval, for all metrics, ordered by the first."""
    order = ranked(document, metrics[0].name)
    heads, cells = zip(*(_under(document, metric) for metric in metrics), strict=True)
    rows = [[marked(series, name), *(by_name.get(name, NONE) for by_name in cells)] for name in order]
    return Table(_("Mean by metric"), columns_of([_("Candidate")], heads), rows)


def _under(document: Mapping[str, Any], metric: ScaledMetric) -> tuple[str, dict[str, str]]:
    """A metric's header, and {candidate: cell}."""
    if compared := comparisons_under(document, metric.name):
        rate = ValueFormat(rate=True)
        won = ranked_by_wins(compared)
        cells = {name: _figure(rate, cell["win_rate"], cell) for name, cell in won.items()}
        return win_rate_title(metric.name), cells
    scored = ranked(document, metric.name)
    values = ValueFormat.of(kind_of(scored), metric.low, metric.high)
    return metric.name, {name: _figure(values, cell["mean"], cell) for name, cell in scored.items()}


def win_rate_title(metric: str) -> str:
    return _("%(metric)s (win rate)") % {"metric": metric}


def _figure(values: ValueFormat, value: float | None, cell: Mapping[str, Any]) -> str:
    if cell["ci_low"] is None:
        return format_html("<b>{}</b>", values.text(value))
    interval_text = values.interval(cell["ci_low"], cell["ci_high"])
    return format_html("<b>{}</b> <small>{}</small>", values.text(value), interval_text)


def linked_count(count: int, address: str) -> str:
    return linked(number(count), address) if count else "0"


def distribution_table(cells: Cells, metric: str, links: Links, *, compares: bool = False) -> Table | None:
    """The counts of score bins; None if no score is a number. `compares`: with the verdict that a score stands for, and
    each one's share."""
    bars = {name: bins for name, cell in cells.items() if (bins := bins_of(cell))}
    if not bars:
        return None
    rows = []
    bins = next(iter(bars.values()))
    for place, bar in enumerate(bins):
        last = place == len(bins) - 1
        counts = [
            linked_count(mine[place]["count"], links.to_bin(name, metric, mine[place], last=last))
            for name, mine in bars.items()
        ]
        verdict = verdict_in(bar) if compares else ""
        if verdict:
            counts = [
                format_html("{} · {}", count, share(mine[place]["count"] / total_of(mine)))
                for count, mine in zip(counts, bars.values(), strict=True)
            ]
        name = _bin_name(bar, last=last)
        rows.append([bracketed(verdict, name) if verdict else name, *counts])
    return Table(_("Score distribution"), columns_of([_("Score")], [*bars]), rows)


def verdict_in(score_bin: Mapping[str, Any]) -> str:
    """The verdict of a comparison that the bin's only score stands for; '' for a range."""
    return verdict_code(score_bin["low"]) if score_bin["low"] == score_bin["high"] else ""


def total_of(bins: Sequence[Mapping[str, Any]]) -> int:
    """The scores in all bins, at least 1."""
    return sum(score_bin["count"] for score_bin in bins) or 1


def verdict_shares(bins: Sequence[Mapping[str, Any]]) -> str:
    """The share of each verdict that occurs in comparisons with the reference: `A>B 20 % · A=B 80 %`. Lines break only
    between the verdicts."""
    found = [(verdict_in(score_bin), score_bin["count"]) for score_bin in bins if score_bin["count"]]
    if not found or not all(verdict for verdict, _count in found):
        return NONE
    shares = (f"{verdict} {percent(count / total_of(bins), 0)}" for verdict, count in found)
    return f"{_NO_BREAK}· ".join(each.replace(" ", _NO_BREAK) for each in shares)


def _bin_name(bar: Mapping[str, Any], *, last: bool) -> str:
    ends = {"low": tick_text(bar["low"]), "high": tick_text(bar["high"])}
    if bar["low"] == bar["high"]:
        return ends["low"]
    return (_("%(low)s to %(high)s") if last else _("%(low)s to under %(high)s")) % ends


def shares_table(cells: Cells, metric: str, links: Links) -> Table | None:
    """Each category's count, share and interval, most frequent first; None without categories."""
    totals: Counter[str] = Counter()
    for cell in cells.values():
        totals.update({label: category["count"] for label, category in cell.get("categories", {}).items()})
    if not totals:
        return None
    labels = sorted(totals, key=lambda label: (-totals[label], label))
    rows = [
        [label, *(_share(name, cell, metric, label, links) for name, cell in cells.items())]
        for label in labels
    ]
    if any("other_categories" in cell for cell in cells.values()):
        rest = [cell.get("other_categories", {}).get("count", 0) for cell in cells.values()]
        rows.append([_("other categories"), *map(number, rest)])
    return Table(_("Shares of the categories"), columns_of([_("Category")], [*cells]), rows)


def _share(name: str, cell: Mapping[str, Any], metric: str, label: str, links: Links) -> str:
    category = category_share(cell, label)
    address = links.to(name, metric, state="scored", value=meaning_category(label))
    shown = beside(share(category["share"]), share_interval(category["ci_low"], category["ci_high"]))
    return format_html("{} · {}", linked_count(category["count"], address), shown)


def category_share(cell: Mapping[str, Any], label: str) -> CategoryShare:
    """Count, share and interval of a category, also of one that does not occur."""
    category: CategoryShare | None = (cell.get("categories") or {}).get(label)
    if category is not None:
        return category
    low, high = rate_interval(0.0, None, cell["clusters"] or 0, 0)
    return CategoryShare(count=0, share=0.0, ci_low=low, ci_high=high)


def repeats_table(cells: Cells, metric: str, values: ValueFormat, links: Links) -> Table | None:
    """Statistics that need several responses per item; None if no item has several."""
    rows = []
    for name, cell in cells.items():
        passed, all_passed = cell.get("pass_at_k", {}), cell.get("all_pass_at_k", {})
        for k, best in cell.get("best_at_k", {}).items():
            ends = map(values.text, (best, cell["worst_at_k"][k]))
            shares = map(share, (passed.get(k), all_passed.get(k)))
            count = cell["at_k_items"][k]
            address = links.to(name, metric, state="scored")
            if count < cell["items"]:
                address = links.to_verdicts(ANSWERS, metric, candidate=name, least=k)
            rows.append([name, k, *ends, *shares, linked_count(count, address)])
    heads = ("k", _("Best of k"), _("Worst of k"), _("Pass of k"), _("All k pass"), _("Items"))
    return Table(_("Repeated answers"), columns_of([_("Candidate")], heads), rows) if rows else None


def variance_table(cells: Cells) -> Table | None:
    """Each candidate's variance components, and the standard error with twice the items or answers; None if no item
    has several answers."""
    variances = {name: cell["variance"] for name, cell in cells.items() if "variance" in cell}
    rows = [
        [
            name,
            share(variance["share_between"]),
            decimal(cells[name]["se"]),
            decimal(variance["se_twice_items"]),
            decimal(variance["se_twice_responses"]),
            _better_bought(variance["se_twice_items"], variance["se_twice_responses"]),
        ]
        for name, variance in variances.items()
        if variance["share_between"] is not None
    ]
    heads = [_("Between-item variance"), _("Standard error"), _("With twice the items")]
    columns = columns_of([_("Candidate")], [*heads, _("With twice the answers")])
    columns.append(Column(_("More precise"), num=False))
    return Table(_("More items or more answers"), columns, rows) if rows else None


def _better_bought(items: float | None, answers: float | None) -> str:
    """Which option has the smaller error, or that they are equal."""
    if items is None or answers is None or abs(items - answers) <= 0.01 * max(items, answers):
        return _("no difference")
    return _("more items") if items < answers else _("more answers per item")
