"""The tables of a checklist: its criteria and tags by candidate, and the criteria that say little or are disputed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.html import format_html
from django.utils.translation import gettext as _

from evalsite.templatetags.show import NONE, number
from judging.core.statistics.ranking import Cells
from judging.filters.criteria import MET, NOT_MET, OPEN, criterion_filter
from judging.reports.disputed_criteria import JUDGE, PEOPLE
from judging.reports.labels import ValueFormat, kappa
from judging.reports.links import Links, linked
from judging.reports.page.tables import Table, columns_of

MOST = 100
_RATE = ValueFormat(rate=True)


@dataclass(frozen=True, slots=True)
class ChecklistTables:
    """Tables without rows are None; `left_out`: how many criteria are not shown."""

    criteria: Table | None
    tags: Table | None
    health: Table | None
    agreement: Table | None
    left_out: int = 0


def checklist_tables(document: Mapping[str, Any], metric: str, cells: Cells, links: Links) -> ChecklistTables:
    """The tables of one metric; all None if it is no checklist."""
    keys = list(dict.fromkeys(entry["key"] for cell in cells.values() for entry in cell.get("criteria", ())))
    health = next((entry for entry in document.get("checklists", ()) if entry["metric"] == metric), None)
    return ChecklistTables(
        _criteria_table(keys[:MOST], metric, cells, links),
        _tags_table(cells),
        _health_table(health["health"][:MOST], metric, links) if health else None,
        _agreement_table(health["agreement"][:MOST]) if health else None,
        max(0, len(keys) - MOST),
    )


def _linked_to(links: Links, candidate: str, metric: str, outcome: str, key: str, text: str) -> str:
    return linked(text, links.to(candidate, metric, further={"criterion": criterion_filter(outcome, key)}))


def _criteria_table(keys: Sequence[str], metric: str, cells: Cells, links: Links) -> Table | None:
    """How often each candidate meets each criterion, linked to the answers that do not."""
    if not keys:
        return None
    by_key = {name: {entry["key"]: entry for entry in cell["criteria"]} for name, cell in cells.items()}
    entries = {key: next(own[key] for own in by_key.values() if key in own) for key in keys}
    rows = []
    for key in keys:
        own = {name: entries_of[key] for name, entries_of in by_key.items() if key in entries_of}
        rates = [
            _linked_to(links, name, metric, NOT_MET, key, _figure(own[name]["rate"], own[name]))
            if name in own
            else NONE
            for name in cells
        ]
        unread = sum(entry["unparsed"] for entry in own.values())
        opened = _linked_to(links, "", metric, OPEN, key, number(unread)) if unread else "0"
        rows.append([entries[key]["criterion"], number(entries[key]["items"]), opened, *rates])
    heads = (_("Rows"), _("Can't tell"), *cells)
    return Table(_("Criteria met"), columns_of([_("Criterion")], heads), rows)


def _figure(rate: float | None, interval: Mapping[str, Any]) -> str:
    if rate is None:
        return NONE
    shown = _RATE.interval(interval["ci_low"], interval["ci_high"])
    return format_html("<b>{}</b> <small>{}</small>", _RATE.text(rate), shown)


def _tags_table(cells: Cells) -> Table | None:
    """The share of points of each tag's criteria."""
    tags = sorted({tag for cell in cells.values() for tag in cell.get("tags", ())})
    if not tags:
        return None
    rows = [[tag, *(_tag_figure(cell.get("tags", {}).get(tag)) for cell in cells.values())] for tag in tags]
    return Table(_("Share of points by tag"), columns_of([_("Tag")], list(cells)), rows)


def _tag_figure(cell: Mapping[str, Any] | None) -> str:
    return _figure(cell["mean"], cell) if cell else NONE


def _agreement_table(agreement: Sequence[Mapping[str, Any]]) -> Table | None:
    """How well raters agree on each criterion."""
    if not agreement:
        return None
    rows = [
        [
            entry["criterion"],
            number(entry["answers"]),
            _RATE.text(entry["percent"]),
            kappa(entry["alpha"]),
            kappa(entry["ac1"]),
        ]
        for entry in agreement
    ]
    heads = (_("Answers"), _("Same verdict"), _("Krippendorff's α"), "AC1")
    return Table(_("Agreement by criterion"), columns_of([_("Criterion")], heads), rows)


def _health_table(health: Sequence[Mapping[str, Any]], metric: str, links: Links) -> Table | None:
    if not health:
        return None
    rows = []
    for entry in health:
        key = entry["key"]
        always = _linked_to(links, "", metric, MET, key, _("always met")) if entry["always_met"] else ""
        never = _linked_to(links, "", metric, NOT_MET, key, _("never met")) if entry["never_met"] else ""
        disputed = [
            linked(
                number(entry[name]),
                links.to("", metric, further={"disputed": criterion_filter(dispute, key)}),
            )
            if entry[name]
            else "0"
            for name, dispute in (("people_disagree", PEOPLE), ("judge_disagrees", JUDGE))
        ]
        rows.append([entry["criterion"], always or never or NONE, number(entry["answers"]), *disputed])
    heads = (_("Answers"), _("People disagree"), _("Judge and people disagree"))
    return Table(_("Criterion health"), columns_of([_("Criterion"), _("Verdicts")], heads), rows)
