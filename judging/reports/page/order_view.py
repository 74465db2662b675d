"""How sure a metric's order is, as a sentence and a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from evalsite.rounding import fixed_percent
from evalsite.templatetags.show import number
from judging.core.statistics.ranking import under
from judging.reports.labels import author_name, names_of
from judging.reports.page.tables import Column, Series, Table, marked, rank_text


@dataclass(frozen=True, slots=True)
class OrderView:
    """`sentence`: how often the first is first; '' without shares, and `lacking` says why there are none. `corrected`:
    whether corrected scores are resampled. `orders`: (judge or repeat, candidates) of those whose order is another one;
    `versions`: the same of other versions of the metric, in their newest runs over the same data."""

    sentence: str
    lacking: str
    table: Table
    draws: str
    corrected: bool
    orders: Sequence[tuple[str, str]]
    versions: Sequence[tuple[int, str]] = ()


def order_view(
    document: Mapping[str, Any],
    metric: str,
    series: Series,
    *,
    with_versions: bool = True,
) -> OrderView | None:
    """The order of a metric; None without two candidates. `with_versions`: also those of other runs."""
    ranking = next(iter(under(document, "ranking", metric)), None)
    if ranking is None:
        return None
    first = ranking["first"]
    columns = [Column(_("Candidate"), num=False), Column(_("Possible ranks"))]
    if first:
        columns.append(Column(_("First in … of 100 resamplings")))
    rows = [
        [
            marked(series, name),
            rank_text(rank["low"], rank["high"]),
            *([_of_100(first[name])] if first else []),
        ]
        for name, rank in ranking["ranks"].items()
    ]
    names = list(ranking["ranks"])
    return OrderView(
        sentence=_sentence(first, names),
        lacking="" if first else _("Below ten independent rows, the order is not resampled."),
        corrected=ranking["value"] == "corrected",
        table=Table(_("How sure is the order?"), columns, rows),
        draws=number(ranking["draws"]) if first else "",
        orders=[
            (author_name(single["by"]), names_of(single["names"]))
            for single in ranking["orders"]
            if "version" not in single and single["names"] != names
        ],
        versions=[
            (single["version"], names_of(single["names"]))
            for single in ranking["orders"]
            if "version" in single and single["names"] != [name for name in names if name in single["names"]]
        ]
        if with_versions
        else [],
    )


def _sentence(first: Mapping[str, float], names: Sequence[str]) -> str:
    if not first:
        return ""
    text = _("%(candidate)s is first in %(n)s of 100 resamplings of the questions.")
    return text % {"candidate": names[0], "n": _of_100(first[names[0]])}


def first_share(document: Mapping[str, Any], metric: str) -> tuple[str, float] | None:
    """The candidate that stands first, and the share of resamplings in which it does; None without shares."""
    ranking = next(iter(under(document, "ranking", metric)), None)
    if ranking is None or not ranking["first"]:
        return None
    name = next(iter(ranking["ranks"]))
    return name, ranking["first"][name]


def short_order(candidate: str, share: float) -> str:
    """The sentence for lists."""
    return _("%(candidate)s first in %(n)s of 100 resamplings") % {
        "candidate": candidate,
        "n": _of_100(share),
    }


def _of_100(share: float) -> str:
    """A share as a number of 100; never rounded to 0 or 100 unless exact."""
    text = fixed_percent(share, 0)
    if share not in (0, 1) and text in ("0", "100"):
        return _("under %(n)s") % {"n": 1} if text == "0" else _("over %(n)s") % {"n": 99}
    return text
