"""The tables of the report page: texts, linked to the data they were computed from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.html import format_html
from django.utils.safestring import mark_safe
from django.utils.translation import gettext as _

from evalsite.templatetags.show import NONE, number, percent
from judging.core.charts.series import mark
from judging.core.statistics.frame import Metric
from judging.reports.labels import ValueFormat, decimal, probability, share_interval, verdict
from judging.reports.links import Links, linked
from judging.reports.verdict_items import ANSWERS
from judging.runs.filters import meaning_category

Cells = Mapping[str, Mapping[str, Any]]
"""{candidate: its figures under one metric}, in display order."""


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


def ranked(document: Mapping[str, Any], metric: str) -> dict[str, Any]:
    """The cells of a metric, highest mean first, those without a mean last, then by name."""
    cells = {name: metrics[metric] for name, metrics in document["candidates"].items()}
    return dict(
        sorted(cells.items(), key=lambda one: (one[1]["mean"] is None, -(one[1]["mean"] or 0), one[0]))
    )


def ranked_by_wins(compared: Mapping[str, Any]) -> dict[str, Any]:
    """The candidates compared in an entry of `side_by_side`, highest win rate first."""
    cells = {name: cell for name, cell in compared["candidates"].items() if cell["win_rate"] is not None}
    return dict(sorted(cells.items(), key=lambda one: (-one[1]["win_rate"], one[0])))


def comparisons_under(document: Mapping[str, Any], metric: str) -> Mapping[str, Any] | None:
    """The comparisons that determine a metric's result if it has no means: of the author with the most, of people in
    a tie."""
    if any(metrics[metric]["mean"] is not None for metrics in document["candidates"].values()):
        return None
    found = [one for one in document.get("side_by_side", ()) if one["metric"] == metric]
    return max(found, key=lambda one: (_comparisons(one), one["by"] == "people"), default=None)


def _comparisons(side: Mapping[str, Any]) -> int:
    return sum(cell["comparisons"] for cell in side["candidates"].values())


def uncertain(cell: Mapping[str, Any]) -> bool:
    """Whether missing scores could change the mean."""
    return cell["kind"] != "category" and bool(cell["unparsed"] or cell["errors"] or cell["not_run"])


def metrics_table(document: Mapping[str, Any], metrics: Sequence[Metric], series: Mapping[str, int]) -> Table:
    """Each candidate's mean or win rate with its interval, for all metrics, ordered by the first."""
    order = ranked(document, metrics[0].name)
    heads, cells = zip(*(_under(document, metric) for metric in metrics), strict=True)
    rows = [
        [
            format_html("{}{}", mark_safe(mark(series[name])), name),  # noqa: S308 (paths of ours)
            *(one.get(name, NONE) for one in cells),
        ]
        for name in order
    ]
    columns = [Column(_("Candidate"), num=False), *map(Column, heads)]
    return Table(_("Mean by metric"), columns, rows)


def _under(document: Mapping[str, Any], metric: Metric) -> tuple[str, dict[str, str]]:
    """A metric's header, and {candidate: cell}."""
    if compared := comparisons_under(document, metric.name):
        rate = ValueFormat(rate=True)
        won = ranked_by_wins(compared)
        cells = {name: _figure(rate, cell["win_rate"], cell) for name, cell in won.items()}
        return win_rate_title(metric.name), cells
    values = ValueFormat.of(_kind(document, metric.name), metric.low, metric.high)
    found = ranked(document, metric.name)
    return metric.name, {name: _figure(values, cell["mean"], cell) for name, cell in found.items()}


def win_rate_title(metric: str) -> str:
    return _("%(metric)s (win rate)") % {"metric": metric}


def with_mark(mark_of: str, name: str) -> str:
    """A candidate's name next to its mark, as a row header."""
    return format_html("{}{}", mark_of, name)


def _kind(document: Mapping[str, Any], metric: str) -> str | None:
    return next((one[metric]["kind"] for one in document["candidates"].values() if one[metric]["kind"]), None)


def _figure(values: ValueFormat, value: float | None, cell: Mapping[str, Any]) -> str:
    interval_text = values.interval(cell["ci_low"], cell["ci_high"])
    return format_html("<b>{}</b> <small>{}</small>", values.text(value), interval_text)


def _count(count: int, address: str) -> str:
    return linked(number(count), address) if count else "0"


def distribution_table(cells: Cells, metric: str, links: Links) -> Table | None:
    """The counts of score bins; None if no score is a number."""
    bars = {name: cell["distribution"] for name, cell in cells.items() if cell["distribution"]}
    if not bars:
        return None
    rows = []
    bins = next(iter(bars.values()))
    for place, bar in enumerate(bins):
        last = place == len(bins) - 1
        counts = [
            _count(mine[place]["count"], links.to_bin(name, metric, mine[place], last=last))
            for name, mine in bars.items()
        ]
        rows.append([_bin_name(bar, last=last), *counts])
    return Table(_("Score distribution"), [Column(_("Score"), num=False), *map(Column, bars)], rows)


def _bin_name(bar: Mapping[str, Any], *, last: bool) -> str:
    if bar["low"] == bar["high"]:
        return f"{bar['low']:g}"
    if last:
        return _("%(low)s to %(high)s") % {"low": f"{bar['low']:g}", "high": f"{bar['high']:g}"}
    return _("%(low)s to under %(high)s") % {"low": f"{bar['low']:g}", "high": f"{bar['high']:g}"}


def shares_table(cells: Cells, metric: str, links: Links) -> Table | None:
    """Each category's count, share and interval, most frequent first; None without categories."""
    totals: Counter[str] = Counter()
    for cell in cells.values():
        totals.update({label: share["count"] for label, share in cell.get("categories", {}).items()})
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
    columns = [Column(_("Category"), num=False), *map(Column, cells)]
    return Table(_("Shares of the categories"), columns, rows)


def _share(name: str, cell: Mapping[str, Any], metric: str, label: str, links: Links) -> str:
    share = cell.get("categories", {}).get(label)
    if share is None:
        return "0"
    count = linked(
        number(share["count"]), links.to(name, metric, state="scored", value=meaning_category(label))
    )
    shown = share_interval(share["ci_low"], share["ci_high"])
    return format_html("{} · {} {}", count, percent(share["share"]), shown)


def repeats_table(cells: Cells, metric: str, values: ValueFormat, links: Links) -> Table | None:
    """Statistics that need several responses per item; None if no item has several."""
    rows = []
    for name, cell in cells.items():
        passed, all_passed = cell.get("pass_at_k", {}), cell.get("all_pass_at_k", {})
        for k, best in cell.get("best_at_k", {}).items():
            ends = map(values.text, (best, cell["worst_at_k"][k]))
            shares = map(percent, (passed.get(k), all_passed.get(k)))
            count = cell["at_k_items"][k]
            address = links.to(name, metric, state="scored")
            if count < cell["items"]:
                address = links.to_verdicts(ANSWERS, metric, candidate=name, least=k)
            rows.append([name, k, *ends, *shares, _count(count, address)])
    columns = [
        Column(_("Candidate"), num=False),
        Column("k"),
        Column(_("Best of k")),
        Column(_("Worst of k")),
    ]
    columns += [Column(_("Pass of k")), Column(_("All k pass")), Column(_("Items"))]
    return Table(_("Repeated answers"), columns, rows) if rows else None


def variance_table(cells: Cells) -> Table | None:
    """Each candidate's variance components, and the standard error with twice the items or answers; None if no item
    has several answers."""
    known = {name: cell["variance"] for name, cell in cells.items() if "variance" in cell}
    rows = [
        [
            name,
            percent(one["share_between"]),
            decimal(cells[name]["se"]),
            decimal(one["se_twice_items"]),
            decimal(one["se_twice_responses"]),
            _better_bought(one["se_twice_items"], one["se_twice_responses"]),
        ]
        for name, one in known.items()
        if one["share_between"] is not None
    ]
    columns = [Column(_("Candidate"), num=False), Column(_("Between-item variance"))]
    columns += [Column(_("Standard error")), Column(_("With twice the items"))]
    columns += [Column(_("With twice the answers")), Column(_("More precise"), num=False)]
    return Table(_("More items or more answers"), columns, rows) if rows else None


def _better_bought(items: float | None, answers: float | None) -> str:
    """Which option has the smaller error, or that they are equal."""
    if items is None or answers is None or abs(items - answers) <= 0.01 * max(items, answers):
        return _("no difference")
    return _("more items") if items < answers else _("more answers per item")


def pairs_table(
    pairs: Sequence[Mapping[str, Any]],
    values: ValueFormat,
    links: Links,
    needed: Sequence[int | None] = (),
) -> Table | None:
    """Differences on shared items; None for a single candidate. `needed`: items that each pair needs to detect the
    requested difference, if there is one."""
    rows = [
        [
            f"{pair['a']} − {pair['b']}",
            verdict(pair),
            *([number(needed[place])] if needed else []),
            linked(values.signed(pair["difference"]), links.to_pair(pair)),
            values.interval(pair["ci_low"], pair["ci_high"]),
            probability(pair["p"]),
            probability(pair["p_holm"]),
            *(_count(pair[name], links.to_pair(pair, name)) for name in ("wins", "ties", "losses")),
            linked(number(pair["items"]), links.to_pair(pair)),
            values.difference(pair["smallest_difference"]),
        ]
        for place, pair in enumerate(pairs)
    ]
    words = (_("Difference"), _("95 % interval"), "p", _("p (Holm)"), _("Wins"), _("Ties"), _("Losses"))
    columns = [
        Column(_("Pair"), num=False),
        Column(_("Conclusion"), num=False),
        *map(Column, [_("Items needed")] if needed else []),
        *map(Column, words),
    ]
    columns += [Column(_("Shared items")), Column(_("Minimum detectable difference (80 % power)"))]
    return Table(_("Pairwise comparison on shared items"), columns, rows) if rows else None
