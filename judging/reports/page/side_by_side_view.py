"""Side-by-side comparisons: ratings, win matrix, and position bias."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.html import format_html
from django.utils.safestring import mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from evalsite.templatetags.show import NONE, number, percent
from judging.core.charts.inline import mini_interval
from judging.core.people.criteria import STEPS
from judging.reports.labels import author_name, share_interval, step_names
from judging.reports.links import Links, linked
from judging.reports.page.pairs import MatrixCell, PairMatrix
from judging.reports.page.result_card import Stat, names_of
from judging.reports.page.tables import Series, Table, columns_of, linked_count, marked, rank_text, under
from judging.reports.pairing import OUTCOMES
from judging.reports.verdict_items import FIRST

POINTS = 400 / math.log(10)
MIDDLE = 1000
Z = 1.959964  # of a 95 % interval


@dataclass(frozen=True, slots=True)
class Step:
    """One verdict and its count; `x`, `width`: its segment of a bar of width 100."""

    name: str
    count: str
    share: str
    x: str
    width: str
    tone: str
    address: str = ""


@dataclass(frozen=True, slots=True)
class SideView:
    """One author's comparisons under one metric. `style`: effect of the answers' style; `warnings`: why a rating is
    missing or unreliable."""

    by: str
    table: Table
    matrix: PairMatrix | None
    steps: Sequence[Step]
    stats: Sequence[Stat]
    style: Table | None
    warnings: Sequence[str]


def rating_points(rating: float | None) -> str:
    """Convert a rating in log-odds to the Elo scale: 1000 + 400 · rating / ln 10."""
    return NONE if rating is None else f"{MIDDLE + POINTS * rating:.0f}"


def side_views(
    document: Mapping[str, Any], metric: str, series: Series, links: Links | None = None
) -> list[SideView]:
    links = links or Links.none()
    return [_view(one, series, links) for one in under(document, "side_by_side", metric)]


def _view(one: Mapping[str, Any], series: Series, links: Links) -> SideView:
    cells = one["candidates"]
    names = sorted(cells, key=lambda name: (-(cells[name]["win_rate"] or 0), name))
    about = {"metric": one["metric"], "by": one["by"]}
    return SideView(
        by=author_name(one["by"]),
        table=_table(names, one, series, links),
        matrix=win_matrix(names, [{**pair, **about} for pair in one["pairs"]], links),
        steps=steps_of(one["steps"], {**one["pairs"][0], **about}, links) if len(one["pairs"]) == 1 else [],
        stats=_first_side(one, links),
        style=style_table(one.get("style")),
        warnings=_warnings(one),
    )


def _table(names: Sequence[str], one: Mapping[str, Any], series: Series, links: Links) -> Table:
    cells = one["candidates"]
    styled = any(cell.get("style_rating") is not None for cell in cells.values())
    rows = [
        [
            marked(series, name),
            rank_text(cells[name]["rank_low"], cells[name]["rank_high"]),
            rating_points(cells[name]["rating"]),
            _range(cells[name]),
            *([rating_points(cells[name]["style_rating"])] if styled else []),
            percent(cells[name]["win_rate"]),
            _win_interval(cells[name], series.get(name, 1)),
            *(_count(one, names, name, key, links) for key in (*OUTCOMES, "both_bad", "comparisons")),
        ]
        for name in names
    ]
    heads = [_("Rank"), _("Rating"), _("95 % interval"), *([_("Style-controlled rating")] if styled else [])]
    heads += [_("Win rate"), _("95 % interval"), _("Wins"), _("Ties"), _("Losses"), _("Both bad")]
    columns = columns_of([_("Candidate")], [*heads, _("Comparisons")])
    return Table(_("Comparisons by candidate"), columns, rows)


def _win_interval(cell: Mapping[str, Any], series: int) -> str:
    shown = share_interval(cell["ci_low"], cell["ci_high"])
    if cell["ci_low"] is None:
        return shown
    bar = mini_interval(series, (0, 1), cell["win_rate"], cell["ci_low"], cell["ci_high"])
    return format_html("{}{}", mark_safe(bar), shown)  # noqa: S308 (escaped there)


def _count(one: Mapping[str, Any], names: Sequence[str], name: str, key: str, links: Links) -> str:
    """A count, linked to its items: with two candidates to those of the pair."""
    count = one["candidates"][name][key]
    other = next((other for other in names if other != name), "") if len(names) == 2 else ""
    pair = {"metric": one["metric"], "by": one["by"], "a": name, "b": other}
    address = links.to_pair(pair, "" if key == "comparisons" else key)
    return linked_count(count, address)


def style_table(style: Mapping[str, Mapping[str, float]] | None) -> Table | None:
    """Effect of one standard deviation of each feature in rating points, with its 95 % interval."""
    names = {"length": _("Length"), "headers": _("Headings"), "lists": _("Lists"), "bold": _("Bold text")}
    rows = [
        [
            names[feature],
            _points(one["coefficient"]),
            f"[{_points(one['coefficient'] - Z * one['se'])}, {_points(one['coefficient'] + Z * one['se'])}]",
        ]
        for feature, one in (style or {}).items()
    ]
    columns = columns_of([_("Feature")], [_("Rating points"), _("95 % interval")])
    return Table(_("Style of the answers"), columns, rows) if rows else None


def _points(log_odds: float) -> str:
    return f"{POINTS * log_odds:+.0f}".replace("-", "−")


def _range(cell: Mapping[str, Any]) -> str:
    if cell["rating_low"] is None:
        return NONE
    return f"[{rating_points(cell['rating_low'])}, {rating_points(cell['rating_high'])}]"


def win_matrix(
    names: Sequence[str], pairs: Sequence[Mapping[str, Any]], links: Links | None = None
) -> PairMatrix | None:
    """Win rates of row against column, ties count half; faint if the interval contains one half."""
    if len(names) < 3:
        return None
    known = {(pair["a"], pair["b"]): pair for pair in pairs}

    def cell(row: str, column: str) -> MatrixCell | None:
        if (row, column) in known:
            return _win_cell(known[row, column], row, column, links, turned=False)
        if (column, row) in known:
            return _win_cell(known[column, row], row, column, links, turned=True)
        return None

    return PairMatrix(names, [(row, [cell(row, column) for column in names]) for row in names])


def _win_cell(
    pair: Mapping[str, Any], row: str, column: str, links: Links | None, *, turned: bool
) -> MatrixCell | None:
    if pair["win_rate"] is None:
        return None
    rate = 1 - pair["win_rate"] if turned else pair["win_rate"]
    wins, losses = (pair["losses"], pair["wins"]) if turned else (pair["wins"], pair["losses"])
    tip = _("%(a)s against %(b)s: %(wins)s wins, %(ties)s ties, %(losses)s losses") % {
        "a": row,
        "b": column,
        "wins": number(wins),
        "ties": number(pair["ties"]),
        "losses": number(losses),
    }
    address = links.to_pair({**pair, "a": row, "b": column}) if links else ""
    return MatrixCell(percent(rate, 0), _tone(pair, rate), tip, address)


def _tone(pair: Mapping[str, Any], rate: float) -> str:
    low, high = pair["ci_low"], pair["ci_high"]
    if low is None or low <= 0.5 <= high:
        return "tie"
    return f"{'up' if rate > 0.5 else 'down'}{min(3, 1 + int(6 * abs(rate - 0.5)))}"


def steps_of(counts: Mapping[str, int], pair: Mapping[str, Any], links: Links | None = None) -> list[Step]:
    """The verdicts on a pair, from A's best to B's best, as segments of one bar; [] if there are none."""
    total = sum(counts.get(step, 0) for step in STEPS)
    names, found, x = step_names(pair["a"], pair["b"]), [], 0.0
    tones = dict(zip(STEPS, ("up3", "up1", "tie", "down1", "down3"), strict=True))
    for step in STEPS if total else ():
        share = counts.get(step, 0) / total
        width = 100 * share
        found.append(
            Step(
                names[step],
                number(counts.get(step, 0)),
                percent(share, 0),
                f"{x:.2f}",
                f"{width:.2f}",
                tones[step],
                links.to_pair(pair, step) if links and counts.get(step, 0) else "",
            )
        )
        x += width
    return found


def _first_side(one: Mapping[str, Any], links: Links) -> list[Stat]:
    first = one["first_side"]
    if first["share"] is None:
        return []
    interval = (
        "" if first["ci_low"] is None else f"[{100 * first['ci_low']:.0f}, {100 * first['ci_high']:.0f}]"
    )
    count = sum(first[name] for name in ("first", "second", "ties"))
    text = ngettext("%(n)s comparison", "%(n)s comparisons", count) % {"n": number(count)}
    more = format_html("{} {}", interval, linked(text, links.to_verdicts(FIRST, one["metric"], one["by"])))
    return [Stat(_("First side preferred"), percent(first["share"], 0), more)]


def _warnings(one: Mapping[str, Any]) -> list[str]:
    found = []
    if not one["connected"]:
        found.append(_("The comparisons do not connect all candidates, so there is no common rating."))
    if one.get("perfect"):
        names = names_of(one["perfect"])
        found.append(
            _("%(names)s won or lost every comparison, so no finite rating exists.") % {"names": names}
        )
    return found
