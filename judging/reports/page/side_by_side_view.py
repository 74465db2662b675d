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

from datasets.core.kinds import COMPARISON_CODES
from evalsite.rounding import fixed, fixed_percent
from evalsite.templatetags.show import NONE, number, percent, share
from judging.core.charts.inline import mini_interval
from judging.core.statistics.ranking import ranked_by_wins, under
from judging.reports.labels import author_name, names_of, share_interval, step_names
from judging.reports.links import Links, linked
from judging.reports.page.pairs import MatrixCell, PairMatrix
from judging.reports.page.result_card import Stat
from judging.reports.page.tables import Series, Table, columns_of, linked_count, marked, rank_text
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
    return NONE if rating is None else fixed(MIDDLE + POINTS * rating)


def side_views(
    document: Mapping[str, Any], metric: str, series: Series, links: Links | None = None
) -> list[SideView]:
    links = links or Links.none()
    return [_view(comparisons, series, links) for comparisons in under(document, "side_by_side", metric)]


def _view(comparisons: Mapping[str, Any], series: Series, links: Links) -> SideView:
    cells = comparisons["candidates"]
    names = [*dict.fromkeys([*ranked_by_wins(comparisons), *sorted(cells)])]
    about = {"metric": comparisons["metric"], "by": comparisons["by"]}
    return SideView(
        by=author_name(comparisons["by"]),
        table=_table(names, comparisons, series, links),
        matrix=win_matrix(names, [{**pair, **about} for pair in comparisons["pairs"]], links),
        steps=steps_of(comparisons["steps"], {**comparisons["pairs"][0], **about}, links)
        if len(comparisons["pairs"]) == 1
        else [],
        stats=_first_side(comparisons, links),
        style=style_table(comparisons.get("style")),
        warnings=_warnings(comparisons),
    )


def _table(names: Sequence[str], comparisons: Mapping[str, Any], series: Series, links: Links) -> Table:
    cells = comparisons["candidates"]
    styled = any(cell.get("style_rating") is not None for cell in cells.values())
    unsettled = any(cell["unsettled"] for cell in cells.values())
    counts = [*OUTCOMES, "both_bad", *(["unsettled"] if unsettled else []), "comparisons"]
    rows = [
        [
            marked(series, name),
            rank_text(cells[name]["rank_low"], cells[name]["rank_high"]),
            rating_points(cells[name]["rating"]),
            _range(cells[name]),
            *([rating_points(cells[name]["style_rating"])] if styled else []),
            share(cells[name]["win_rate"]),
            _win_interval(cells[name], series.get(name, 1)),
            *([share_interval(cells[name]["low_bound"], cells[name]["high_bound"])] if unsettled else []),
            *(_count(comparisons, names, name, key, links) for key in counts),
        ]
        for name in names
    ]
    heads = [_("Rank"), _("Rating"), _("95 % interval"), *([_("Style-controlled rating")] if styled else [])]
    heads += [_("Win rate"), _("95 % interval"), *([_("Bounds")] if unsettled else [])]
    heads += [_("Wins"), _("Ties"), _("Losses"), _("Both bad"), *([_("Unsettled")] if unsettled else [])]
    columns = columns_of([_("Candidate")], [*heads, _("Comparisons")])
    return Table(_("Comparisons by candidate"), columns, rows)


def _win_interval(cell: Mapping[str, Any], series: int) -> str:
    shown = share_interval(cell["ci_low"], cell["ci_high"])
    if cell["ci_low"] is None:
        return shown
    bar = mini_interval(series, (0, 1), cell["win_rate"], cell["ci_low"], cell["ci_high"])
    return format_html("{}{}", mark_safe(bar), shown)  # noqa: S308 (escaped there)


def _count(comparisons: Mapping[str, Any], names: Sequence[str], name: str, key: str, links: Links) -> str:
    """A count, linked to its items: with two candidates to those of the pair."""
    count = comparisons["candidates"][name][key]
    other = next((other for other in names if other != name), "") if len(names) == 2 else ""
    pair = {"metric": comparisons["metric"], "by": comparisons["by"], "a": name, "b": other}
    address = links.to_pair(pair, "" if key == "comparisons" else key)
    return linked_count(count, address)


def style_table(style: Mapping[str, Mapping[str, float]] | None) -> Table | None:
    """Effect of one standard deviation of each feature in rating points, with its 95 % interval."""
    names = {"length": _("Length"), "headers": _("Headings"), "lists": _("Lists"), "bold": _("Bold text")}
    rows = [
        [
            names[feature],
            _points(term["coefficient"]),
            f"[{_points(term['coefficient'] - Z * term['se'])}, {_points(term['coefficient'] + Z * term['se'])}]",
        ]
        for feature, term in (style or {}).items()
    ]
    columns = columns_of([_("Feature")], [_("Rating points"), _("95 % interval")])
    return Table(_("Style of the answers"), columns, rows) if rows else None


def _points(log_odds: float) -> str:
    text = fixed(POINTS * log_odds).replace("-", "−")
    return text if text.startswith("−") else f"+{text}"


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
    by_names = {(pair["a"], pair["b"]): pair for pair in pairs}

    def cell(row: str, column: str) -> MatrixCell | None:
        if (row, column) in by_names:
            return _win_cell(by_names[row, column], row, column, links, turned=False)
        if (column, row) in by_names:
            return _win_cell(by_names[column, row], row, column, links, turned=True)
        return None

    return PairMatrix(names, [(row, [cell(row, column) for column in names]) for row in names])


def _win_cell(
    pair: Mapping[str, Any], row: str, column: str, links: Links | None, *, turned: bool
) -> MatrixCell | None:
    if pair["win_rate"] is None:
        return None
    rate = 1 - pair["win_rate"] if turned else pair["win_rate"]
    wins, losses = (pair["losses"], pair["wins"]) if turned else (pair["wins"], pair["losses"])
    tip = _(
        "%(a)s against %(b)s: %(wins)s wins, %(ties)s ties, %(losses)s losses, %(unsettled)s unsettled"
    ) % {
        "a": row,
        "b": column,
        "wins": number(wins),
        "ties": number(pair["ties"]),
        "losses": number(losses),
        "unsettled": number(pair["unsettled"]),
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
    total = sum(counts.get(step, 0) for step in COMPARISON_CODES)
    names, segments, x = step_names(pair["a"], pair["b"]), [], 0.0
    tones = dict(zip(COMPARISON_CODES, ("up3", "up1", "tie", "down1", "down3"), strict=True))
    for step in COMPARISON_CODES if total else ():
        part = counts.get(step, 0) / total
        width = 100 * part
        segments.append(
            Step(
                names[step],
                number(counts.get(step, 0)),
                percent(part, 0),
                f"{x:.2f}",
                f"{width:.2f}",
                tones[step],
                links.to_pair(pair, step) if links and counts.get(step, 0) else "",
            )
        )
        x += width
    return segments


def _first_side(comparisons: Mapping[str, Any], links: Links) -> list[Stat]:
    first = comparisons["first_side"]
    if first["share"] is None:
        return []
    interval = (
        ""
        if first["ci_low"] is None
        else f"[{fixed_percent(first['ci_low'])}, {fixed_percent(first['ci_high'])}]"
    )
    count = sum(first[name] for name in ("first", "second", "ties"))
    text = ngettext("%(n)s comparison", "%(n)s comparisons", count) % {"n": number(count)}
    more = format_html(
        "{} {}", interval, linked(text, links.to_verdicts(FIRST, comparisons["metric"], comparisons["by"]))
    )
    return [Stat(_("First side preferred"), percent(first["share"], 0), more)]


def _warnings(comparisons: Mapping[str, Any]) -> list[str]:
    warnings = []
    unsettled = sum(pair["unsettled"] for pair in comparisons["pairs"])
    if unsettled:
        compared = sum(cell["comparisons"] for cell in comparisons["candidates"].values()) // 2
        warnings.append(
            _(
                "%(unsettled)s of %(compared)s comparisons are unsettled: asked in both orders, the judge did not name "
                "the same side, or the judges have no majority. They count half to each; the bounds say what the win "
                "rate would be if all of them were lost or won."
            )
            % {"unsettled": number(unsettled), "compared": number(compared)}
        )
    if comparisons["one_order"]:
        warnings.append(
            _(
                "The judge saw each pair in one order only, so position was not balanced within a pair: a preference "
                "for the first side does not show as unsettled, but as noise."
            )
        )
    if not comparisons["connected"]:
        warnings.append(_("The comparisons do not connect all candidates, so there is no common rating."))
    if comparisons.get("perfect"):
        names = names_of(comparisons["perfect"])
        warnings.append(
            _("%(names)s won or lost every comparison, so no finite rating exists.") % {"names": names}
        )
    return warnings
