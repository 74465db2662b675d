"""The candidates' means by a field of the rows: a heat table that marks significant differences from the other rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from evalsite.templatetags.show import NONE, number, p_value, percent
from judging.core.statistics.ranking import under
from judging.core.values import scale_level
from judging.reports.labels import ValueFormat, author_name, beside, interval, kappa
from judging.reports.links import Links, linked
from judging.reports.page.pairs import MatrixCell
from judging.reports.page.tables import Table, columns_of

ALPHA = 0.05
FEWEST_ITEMS = 5  # a mean of fewer items is pale
STAR, DAGGER = "*", "†"


@dataclass(frozen=True, slots=True)
class SlicesView:
    """`rows`: a value of the field, each candidate's cell, and the number of items; empty if no value has a mean.
    `without_interval`: whether a mean has so few items that it has no interval. `agreement`: judges against people by
    the same values. `left_out`: number of rarer values."""

    field: str
    names: Sequence[str]
    rows: Sequence[tuple[str, Sequence[MatrixCell], str]]
    differing: int
    left_out: int
    agreement: Table | None = None
    without_interval: bool = False


@dataclass(frozen=True, slots=True)
class SliceLinks:
    """Links to the items of a metric's slices; empty for rows without a value, and for lists and objects, because
    lists can't be filtered by them."""

    links: Links
    metric: str
    field: str

    def to_cell(self, candidate: str, value: str) -> str:
        if not value or value[0] in "[{":
            return ""
        return self.links.to_slice(candidate, self.metric, self.field, value)

    def to_agreement(self, judge: str, value: str) -> str:
        """Answers rated by both the judge and people."""
        if not value:
            return ""
        return self.links.to_agreement(self.metric, judge, field=self.field, value=value)


def slices_of(
    breakdown: Mapping[str, Any] | None,
    metric: str,
    names: Sequence[str],
    values: ValueFormat,
    scale: tuple[float | None, float | None],
    links: SliceLinks,
) -> SlicesView | None:
    """None without a breakdown, or if no value has a mean and no judge is compared with people."""
    if breakdown is None:
        return None
    agreement = agreement_table(breakdown, metric, values, links)
    cells = {
        value: {name: by_name.get(name, {}).get(metric) for name in names}
        for value, by_name in breakdown["values"].items()
    }
    means = [
        cell["mean"]
        for by_name in cells.values()
        for cell in by_name.values()
        if cell and cell["mean"] is not None
    ]
    if not means:
        return SlicesView(breakdown["field"], names, [], 0, 0, agreement) if agreement else None
    low, high = ends_of(means, scale, rate=values.rate)
    deviations = {
        (comparison["value"], comparison["candidate"]): comparison
        for comparison in under(breakdown, "comparisons", metric)
    }
    rows = [
        (
            value,
            [
                slice_cell(value, name, cell, deviations.get((value, name)), values, (low, high), links)
                for name, cell in by_name.items()
            ],
            linked(
                number(max((cell["items"] for cell in by_name.values() if cell), default=0)),
                links.to_cell("", value),
            ),
        )
        for value, by_name in cells.items()
    ]
    differing = sum(significant(deviation) for deviation in deviations.values())
    left_out = breakdown.get("left_out", 0)
    unsure = any(DAGGER in cell.text for _value, row, _items in rows for cell in row)
    return SlicesView(breakdown["field"], names, rows, differing, left_out, agreement, unsure)


def agreement_table(
    breakdown: Mapping[str, Any], metric: str, values: ValueFormat, links: SliceLinks
) -> Table | None:
    """Each judge against people, by value."""
    agreements = under(breakdown, "judges", metric)
    several = len({agreement["judge"] for agreement in agreements}) > 1
    rows = [
        [
            agreement["value"] or NONE,
            *([author_name(agreement["judge"])] if several else []),
            linked(number(agreement["items"]), links.to_agreement(agreement["judge"], agreement["value"])),
            percent(agreement["exact"], 0),
            kappa(agreement["kappa_weighted"])
            if agreement["kappa_weighted"] or agreement["kappa_low"]
            else _("n/a"),
            interval(agreement["kappa_low"], agreement["kappa_high"], 2),
            kappa((agreement["human"] or {}).get("kappa_weighted")),
            kappa(agreement["spearman"]),
            beside(
                values.signed(agreement["bias"]),
                values.interval(agreement["bias_low"], agreement["bias_high"]),
            ),
        ]
        for agreement in agreements
    ]
    texts = [breakdown["field"], *([_("Judge")] if several else [])]
    heads = (_("Answers"), _("Exact agreement"), _("κ, quadratic"), _("95 % interval"))
    columns = columns_of(texts, (*heads, _("κ among people"), "Spearman ρ", _("Bias")))
    return Table(_("Judge and people, by value"), columns, rows) if rows else None


def ends_of(
    means: Sequence[float], scale: tuple[float | None, float | None], *, rate: bool
) -> tuple[float, float]:
    """The range of the shades: the metric's scale if it contains all means, else that of the means."""
    low, high = (0.0, 1.0) if rate else scale
    if low is not None and high is not None and low <= min(means) and max(means) <= high:
        return low, high
    return min(means), max(means)


def slice_cell(
    value: str,
    name: str,
    cell: Mapping[str, Any] | None,
    deviation: Mapping[str, Any] | None,
    values: ValueFormat,
    ends: tuple[float, float],
    links: SliceLinks,
) -> MatrixCell:
    if cell is None or cell["mean"] is None:
        return MatrixCell(NONE, "")
    marks = {
        STAR: deviation is not None and significant(deviation),
        DAGGER: cell["ci_low"] is None,
    }
    text = " ".join([values.text(cell["mean"]), *(mark for mark, holds in marks.items() if holds)])
    pale = " few" if cell["items"] < FEWEST_ITEMS else ""
    return MatrixCell(
        text,
        f"scale{scale_level(cell['mean'], *ends)}{pale}",
        _tip(value, name, cell, deviation, values),
        links.to_cell(name, value),
    )


def significant(deviation: Mapping[str, Any]) -> bool:
    return deviation["p_bh"] is not None and deviation["p_bh"] < ALPHA


def _tip(
    value: str, name: str, cell: Mapping[str, Any], deviation: Mapping[str, Any] | None, values: ValueFormat
) -> str:
    figures = beside(values.text(cell["mean"]), values.interval(cell["ci_low"], cell["ci_high"]))
    tip = _("%(name)s, %(value)s: %(figures)s, %(n)s items") % {
        "name": name,
        "value": value,
        "figures": figures,
        "n": number(cell["items"]),
    }
    if deviation is None or deviation["difference"] is None:
        return tip
    difference = {"tip": tip, "difference": values.signed(deviation["difference"])}
    if deviation["p"] is None:
        return _("%(tip)s; %(difference)s from the rest, too few items for a test") % difference
    difference["p"] = p_value(deviation["p_bh"])
    return _("%(tip)s; %(difference)s from the rest, p (BH) %(p)s") % difference
