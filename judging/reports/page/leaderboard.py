"""The candidates of a run under one metric, best first: rank, mean, interval, spread, and what is missing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from evalsite.names import labelled
from evalsite.templatetags.show import NONE, number, percent, share
from judging.core.charts.axis import Axis, tick_text
from judging.core.charts.inline import Bar, axis_head, interval_bar, shared_axis, spread
from judging.core.statistics.document import bins_of
from judging.core.statistics.ranking import Cells
from judging.reports.labels import ValueFormat, beside
from judging.reports.links import Links, breakable, linked
from judging.reports.page.tables import Series, marked, rank_text, verdict_in, verdict_shares


@dataclass(frozen=True, slots=True)
class BoardColumn:
    """A column: `key` is its name in URLs; `help` explains the header; `head_chart` is shown in the header."""

    key: str
    name: str
    help: str = ""
    num: bool = True
    head_chart: SafeString | str = ""


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """`choices`: all columns that can be shown besides rank and name, and whether they are shown."""

    columns: Sequence[BoardColumn]
    rows: Sequence[Sequence[tuple[BoardColumn, str]]]
    choices: Sequence[tuple[BoardColumn, bool]]


@dataclass(frozen=True, slots=True)
class BoardData:
    """The data of a leaderboard. `pairs`: of raw means; `rank_pairs`: of those that it shows, which may be corrected;
    `corrected`: corrected scores to show beside raw ones."""

    metric: str
    cells: Cells
    pairs: Sequence[Mapping[str, Any]]
    rank_pairs: Sequence[Mapping[str, Any]]
    corrected: Mapping[str, Mapping[str, Any]]
    values: ValueFormat
    series: Series
    links: Links
    top: float
    compares: bool = False  # with the reference: scores stand for verdicts


Show = Callable[[str, Mapping[str, Any]], str]


def leaderboard(data: BoardData, chosen: Collection[str] = ()) -> Leaderboard:
    """With the chosen columns, or by default those with data of interest."""
    parts = _parts(data)
    shown = [key for key in parts if key in ALWAYS or (key in chosen if chosen else parts[key][2])]
    columns = [parts[key][0] for key in shown]
    rows = [
        [(parts[key][0], parts[key][1](name, cell)) for key in shown] for name, cell in data.cells.items()
    ]
    choices = [(parts[key][0], key in shown) for key in parts if key not in ALWAYS]
    return Leaderboard(columns, rows, choices)


ALWAYS = ("rank", "candidate")


def rank_ranges(cells: Cells, pairs: Sequence[Mapping[str, Any]]) -> dict[str, tuple[int, int]]:
    """Range of possible ranks of each candidate with a mean, from best to worst: another candidate counts as better
    or worse only if the pair differs significantly."""
    scored = [name for name, cell in cells.items() if cell["mean"] is not None]
    ahead = dict.fromkeys(scored, 0)
    behind = dict.fromkeys(scored, 0)
    for pair in pairs:
        if pair["distinguishable"]:
            first = pair["difference"] > 0
            winner, loser = (pair["a"], pair["b"]) if first else (pair["b"], pair["a"])
            ahead[loser] = ahead.get(loser, 0) + 1
            behind[winner] = behind.get(winner, 0) + 1
    return {name: (1 + ahead[name], len(scored) - behind[name]) for name in scored}


def win_shares(pairs: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Each candidate's share of wins in all comparisons with others on shared items; ties count half."""
    won: dict[str, float] = {}
    compared_items: dict[str, int] = {}
    for pair in pairs:
        for name, wins in ((pair["a"], pair["wins"]), (pair["b"], pair["losses"])):
            won[name] = won.get(name, 0) + wins + pair["ties"] / 2
            compared_items[name] = compared_items.get(name, 0) + pair["items"]
    return {name: won[name] / compared_items[name] for name in won if compared_items[name]}


def _parts(data: BoardData) -> dict[str, tuple[BoardColumn, Show, bool]]:
    """All columns by key, each with its cell renderer and whether it is shown by default."""
    return {
        column.key: (column, show, default)
        for column, show, default in (
            *_name_parts(data),
            *_mean_parts(data),
            *_comparison_parts(data),
            *_count_parts(data),
        )
    }


Part = tuple[BoardColumn, Show, bool]


def _name_parts(data: BoardData) -> list[Part]:
    ranks = rank_ranges(data.cells, data.rank_pairs)
    help_text = _("A range where the candidates in it do not differ significantly.")
    return [
        (
            BoardColumn("rank", _("Rank"), help_text),
            lambda name, _cell: rank_text(*ranks.get(name, (None, None))),
            True,
        ),
        (BoardColumn("candidate", _("Candidate"), num=False), lambda name, _cell: _name(data, name), True),
    ]


def _name(data: BoardData, name: str) -> str:
    address = data.links.to(name, data.metric)
    return marked(data.series, name, linked(breakable(name), address))


def _mean_parts(data: BoardData) -> list[Part]:
    values, cells, links = data.values, data.cells, data.links
    has_means = any(cell["mean"] is not None for cell in cells.values())
    axis = _axis(cells)
    head = mark_safe(axis_head(axis, values.ticks(axis.ticks)))  # noqa: S308 (escaped there)
    intervals = BoardColumn("interval", _("95 % interval"), _("Student's t over items; Wilson for rates."))
    chart = BoardColumn("chart", _("Interval chart"), num=False, head_chart=head)
    spread_column = BoardColumn("spread", _("Distribution"), num=False)
    several = any(bins_of(cell) for cell in cells.values())
    raw = any("raw_mean" in cell for cell in cells.values())
    carried = any(cell.get("corrected_by") == "licence" for cell in cells.values())
    mean, judges_mean = _mean_columns(corrected=raw, carried=carried, rate=values.rate)
    return [
        (mean, lambda name, cell: _mean(data, name, cell), has_means),
        (judges_mean, lambda _name, cell: values.text(cell.get("raw_mean")), raw),
        (intervals, lambda _name, cell: values.interval(cell["ci_low"], cell["ci_high"]), has_means),
        (chart, lambda name, cell: _interval(data, axis, name, cell), has_means),
        (
            BoardColumn(
                "verdicts", _("Shares of the verdicts"), _("A is the reference, B the answer."), num=False
            ),
            lambda _name, cell: verdict_shares(bins_of(cell)),
            data.compares and several,
        ),
        (spread_column, lambda name, cell: _spread(data, name, cell, links), several and not values.rate),
    ]


def _mean_columns(*, corrected: bool, carried: bool, rate: bool) -> tuple[BoardColumn, BoardColumn]:
    """The columns of the means that candidates are ranked by, and of the judge's means beside corrected ones.
    `carried`: these are corrected with the test of a licence."""
    help_text = _("Over items; missing scores are excluded.")
    judges_mean = BoardColumn("raw_mean", _("Judge's pass rate") if rate else _("Judge's mean"), help_text)
    if corrected:
        help_text = _("The judge's mean, corrected by people's ratings of a random sample.")
        if carried:
            help_text = _("The judge's mean, corrected with the test of its licence.")
        return BoardColumn("mean", _("Corrected by people"), help_text), judges_mean
    return BoardColumn("mean", _("Pass rate") if rate else _("Mean"), help_text), judges_mean


def _axis(cells: Cells) -> Axis:
    ends = [cell[key] for cell in cells.values() for key in ("mean", "ci_low", "ci_high")]
    return shared_axis([end for end in ends if end is not None])


def _mean(data: BoardData, name: str, cell: Mapping[str, Any]) -> str:
    return linked(
        data.values.text(cell["mean"]), data.links.to(name, data.metric, state="scored", sort="score")
    )


def _interval(data: BoardData, axis: Axis, name: str, cell: Mapping[str, Any]) -> str:
    shown = data.values.interval(cell["ci_low"], cell["ci_high"])
    tip = labelled(name, beside(data.values.text(cell["mean"]), shown))
    bar = interval_bar(data.series.get(name, 1), axis, cell["mean"], cell["ci_low"], cell["ci_high"], tip)
    return mark_safe(bar)  # noqa: S308 (escaped there)


def _spread(data: BoardData, name: str, cell: Mapping[str, Any], links: Links) -> str:
    bins = bins_of(cell)
    total = sum(score_bin["count"] for score_bin in bins)
    if not total:
        return NONE
    bars = [
        Bar(
            score_bin["count"] / total,
            _("Score %(score)s: %(n)s (%(share)s)")
            % {
                "score": (data.compares and verdict_in(score_bin)) or bin_name(score_bin),
                "n": number(score_bin["count"]),
                "share": percent(score_bin["count"] / total),
            },
            links.to_bin(name, data.metric, score_bin, last=place == len(bins) - 1)
            if score_bin["count"]
            else "",
        )
        for place, score_bin in enumerate(bins)
    ]
    title = _("%(name)s: score distribution") % {"name": name}
    return mark_safe(spread(data.series.get(name, 1), bars, title))  # noqa: S308 (escaped there)


def bin_name(bar: Mapping[str, Any]) -> str:
    """A bin's score, or both its ends."""
    low, high = tick_text(bar["low"]), tick_text(bar["high"])
    return low if low == high else f"{low}–{high}"


def _comparison_parts(data: BoardData) -> list[Part]:
    wins = win_shares(data.pairs)
    win = BoardColumn(
        "win_share", _("Win share"), _("Against all others on shared items; a tie counts half.")
    )
    people = BoardColumn(
        "corrected",
        _("Corrected by people"),
        _("The judge's mean, corrected by people's ratings of a random sample."),
    )
    return [
        (win, lambda name, _cell: percent(wins.get(name), 0), bool(wins)),
        (people, lambda name, _cell: _corrected(data, name), bool(data.corrected)),
    ]


def _corrected(data: BoardData, name: str) -> str:
    correction = data.corrected.get(name)
    if correction is None or correction["value"] is None:
        return NONE
    half = None if correction["ci_low"] is None else (correction["ci_high"] - correction["ci_low"]) / 2
    value = data.values.text(correction["value"])
    return value if half is None else format_html("{} <small>± {}</small>", value, data.values.text(half))


def _count_parts(data: BoardData) -> list[Part]:
    """Counts of answers and of missing ones; the latter are shown by default only if there are any."""
    cells, links = data.cells, data.links
    counts = (
        ("no_score", _("No score"), "no_score"),
        ("unparsed", _("Unparsed"), "unparsed"),
        ("unsettled", _("Unsettled"), "unsettled"),
        ("errors", _("Errors"), "error"),
        ("not_run", _("Not run"), "not_run"),
    )
    missing = any(cell["coverage"] not in (None, 1.0) for cell in cells.values())
    several = any(cell["responses"] != cell["items"] for cell in cells.values()) and not missing

    def to(name: str, **more: Any) -> str:
        return links.to(name, data.metric, **more)

    def count(key: str, state: str) -> Show:
        return lambda name, cell: linked(number(cell[key]), to(name, state=state)) if cell[key] else "0"

    bounds = _("The mean if all missing scores were the lowest or the highest.")
    return [
        (
            BoardColumn("items", _("Items")),
            lambda name, cell: linked(number(cell["items"]), to(name, state="scored")),
            True,
        ),
        (
            BoardColumn("responses", _("Answers")),
            lambda name, cell: linked(number(cell["responses"]), to(name)),
            several,
        ),
        (
            BoardColumn("coverage", _("Coverage"), _("Scored answers out of all answers to score.")),
            lambda name, cell: linked(share(cell["coverage"]), to(name, state="scored")),
            missing,
        ),
        *(
            (BoardColumn(key, label), count(key, state), any(cell[key] for cell in cells.values()))
            for key, label, state in counts
        ),
        (
            BoardColumn("bounds", _("Bounds"), bounds),
            lambda _name, cell: data.values.interval(cell["low_bound"], cell["high_bound"]),
            missing and any(cell["kind"] != "category" for cell in cells.values()),
        ),
        (
            BoardColumn(
                "top_share", _("Top-score rate"), _("Share of scored answers at the top of the scale.")
            ),
            lambda name, cell: linked(share(cell["top_share"]), to(name, state="scored", least=data.top)),
            False,
        ),
    ]
