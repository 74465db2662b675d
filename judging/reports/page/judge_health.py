"""Properties of each judge alone: repeatability, order and length bias, use of the scale's ends, and injected
verdicts in answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from evalsite.rounding import rounded
from evalsite.templatetags.show import NONE, number, percent
from judging.core.results import INJECTED_VERDICT
from judging.reports.labels import ValueFormat, author_name, beside, interval, kappa
from judging.reports.links import Links, linked
from judging.reports.page.tables import Series, Table, columns_of, marked
from judging.reports.verdict_items import FIRST, HIGHEST, LOWEST, ORDERS, REPEATS

PARTS = ("repeats", "order", "length", "scale_ends")
HealthParts = Mapping[str, Sequence[Mapping[str, Any]]]
"""{part of the document: its entries under one metric}"""


@dataclass(frozen=True, slots=True)
class JudgeHealth:
    """`judges`: a row per judge; `injected`: the candidates whose answers contain text like a verdict."""

    judges: Table | None
    injected: Table | None

    def __bool__(self) -> bool:
        return bool(self.judges or self.injected)


def judge_health(
    health: HealthParts, metric: str, values: ValueFormat, series: Series, links: Links
) -> JudgeHealth:
    return JudgeHealth(
        judges_table(health, values, links), injected_table(health["planted"], metric, values, series, links)
    )


def judges_table(health: HealthParts, values: ValueFormat, links: Links) -> Table | None:
    """Columns without data are omitted; None without a judge."""
    parts = {part: {entry["judge"]: entry for entry in health.get(part, ())} for part in PARTS}
    judges = dict.fromkeys(judge for part in parts.values() for judge in part)
    rows = [
        [author_name(judge), *_figures({part: parts[part].get(judge) for part in PARTS}, values, links)]
        for judge in judges
    ]
    heads = [_("Repeats that agree"), _("Order flips"), _("First side preferred")]
    heads += [_("Score and length (Spearman)"), _("Score per doubled length")]
    columns = columns_of([_("Judge")], [*heads, _("Lowest score given"), _("Highest score given")])
    filled = [place for place in range(len(columns)) if any(row[place] != NONE for row in rows)]
    shown = [[row[place] for place in filled] for row in rows]
    return Table(_("Judges"), [columns[place] for place in filled], shown) if rows else None


def _figures(figures: Mapping[str, Mapping[str, Any] | None], values: ValueFormat, links: Links) -> list[str]:
    repeats, order, length, ends = (figures[part] for part in PARTS)
    spearman = length["spearman"] if length else None
    return [
        _repeats(repeats, links) if repeats else NONE,
        _flips(order, links) if order and order["pairs"] else NONE,
        _first_side(order, links) if order else NONE,
        beside(kappa(spearman), interval(length["ci_low"], length["ci_high"], 2))
        if length and spearman is not None
        else NONE,
        values.signed(length["slope_per_doubling"]) if length else NONE,
        *(_end(ends, kind, links) if ends else NONE for kind in (LOWEST, HIGHEST)),
    ]


def _repeats(repeats: Mapping[str, Any], links: Links) -> str:
    """Share of agreeing pairs of repeats, linked to the answers."""
    address = links.to_verdicts(REPEATS, repeats["metric"], repeats["judge"])
    items = ngettext("%(n)s answer", "%(n)s answers", repeats["items"]) % {"n": number(repeats["items"])}
    return format_html("{} ({})", percent(repeats["exact"], 0), linked(items, address))


def _flips(order: Mapping[str, Any], links: Links) -> str:
    """Share of pairs whose winner changed with the order, linked to them."""
    counts = f"{number(order['flips'])}/{number(order['pairs'])}"
    return format_html("{} ({})", percent(order["share"], 0), linked(counts, flips_address(order, links)))


def flips_address(order: Mapping[str, Any], links: Links) -> str:
    """The pairs that a judge compared in both orders; if there are flipped ones, only those."""
    return links.to_verdicts(ORDERS, order["metric"], order["judge"], apart="yes" if order["flips"] else "")


def _first_side(order: Mapping[str, Any], links: Links) -> str:
    """Share of comparisons won by the first answer, and their number, linked to them."""
    first_side, address = order["first_side"], links.to_verdicts(FIRST, order["metric"], order["judge"])
    counted = sum(first_side[name] for name in ("first", "second", "ties"))
    return format_html("{} ({})", percent(first_side["share"], 0), linked(number(counted), address))


def _end(ends: Mapping[str, Any], kind: str, links: Links) -> str:
    """Share of scores at this end of the scale, linked to the answers."""
    count = int(rounded(ends[kind] * ends["scores"]))
    address = links.to_verdicts(kind, ends["metric"], ends["judge"]) if count else ""
    return format_html("{} ({})", percent(ends[kind], 0), linked(number(count), address))


def injected_table(
    injected: Sequence[Mapping[str, Any]], metric: str, values: ValueFormat, series: Series, links: Links
) -> Table | None:
    """Each candidate's suspicious answers, linked to their judgements, with their mean next to the other answers'."""
    rows = [
        [
            marked(series, entry["candidate"]),
            linked(number(entry["answers"]), links.to(entry["candidate"], metric, flag=INJECTED_VERDICT)),
            values.text(entry["mean"]),
            values.text(entry["others_mean"]),
        ]
        for entry in injected
    ]
    heads = (_("Answers that contain a verdict"), _("Their mean"), _("Mean of the others"))
    columns = columns_of([_("Candidate")], heads)
    return Table(_("Suspected injected verdicts"), columns, rows) if rows else None
