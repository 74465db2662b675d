"""A report as plain text for a terminal."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from html import unescape
from typing import Any

from django.utils.html import strip_tags
from django.utils.safestring import SafeString

from evalsite.rounding import fixed
from evalsite.templatetags.show import money, p_value
from judging.core.statistics.ranking import ranked, under
from judging.reports import labels
from judging.reports.guideline_notes import version_sentences
from judging.reports.licence_text import evidence_and_licences, licence_sentence
from judging.reports.links import Links
from judging.reports.page.agreement_view import AgreementView, agreement_view
from judging.reports.page.side_by_side_view import SideView, side_views
from judging.reports.page.slices_view import SliceLinks, SlicesView, slices_of
from judging.reports.page.tables import Table, kind_of

Document = Mapping[str, Any]
_COUNTS = ("items", "responses", "scored", "no_score", "unparsed", "unsettled", "errors", "not_run")


def plain_report(document: Document) -> str:
    """What was judged, each metric's figures, its pairs, verdicts and breakdowns, and the cost."""
    metrics = dict.fromkeys(name for cells in document["candidates"].values() for name in cells)
    parts = [_head(document), *(_metric(document, name) for name in metrics), _cost(document["cost"])]
    return "\n\n".join(parts)


def _head(document: Document) -> str:
    lines = [
        f"Run {document['run_id']} ({document['run']}), {document['state']}: {document['dataset']} "
        f"version {document['version']}, {document['rows']} rows."
    ]
    if document["provisional"]:
        lines.append("Provisional: the run is under way.")
    if evidence := document.get("evidence"):
        lines += evidence_and_licences(evidence)
    left_out = labels.left_out_sentences(document["left_out"])
    lines += [f"Excluded: {sentence}" for sentence in left_out]
    if overridden := labels.overridden_sentence(document):
        lines.append(overridden)
    return "\n".join(lines)


def _metric(document: Document, metric: str) -> str:
    cells = ranked(document, metric)
    raw = any("raw_mean" in cell for cell in cells.values())
    means = ["corrected", "95 % interval", "judge's mean"] if raw else ["mean", "95 % interval"]
    heads = ["candidate", *means, *(name.replace("_", " ") for name in _COUNTS), "bounds"]
    rows = [[name, *_figures(cell, raw=raw)] for name, cell in cells.items()]
    said = [f"{headline['text']}." for headline in under(document, "headline", metric)]
    said += [licence_sentence(entry) for entry in under(document, "licences", metric)]
    parts = [metric, *said, columns([heads, *rows])]
    pairs = [_pair(pair) for pair in under(document, "pairs", metric)]
    if pairs:
        heads = ["pair", "difference", "95 % interval", "p (Holm)", "wins", "ties", "losses", "items", ""]
        parts.append(columns([heads, *pairs]))
    parts += [*_shares(cells), *labels.note_sentences(cells, under(document, "side_by_side", metric))]
    parts += version_sentences(document, metric)
    return "\n\n".join(["\n".join(parts), *_sections(document, metric, cells)])


def _shares(cells: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The shares of the categories, or of the verdicts of comparisons with the reference, as a table; empty without."""
    heads = ["candidate", "verdict", "responses", "share"]
    verdicts = [
        [name, code, str(verdict["count"]), labels.decimal(verdict["share"])]
        for name, cell in cells.items()
        for code, verdict in cell.get("verdicts", {}).items()
        if verdict["count"]
    ]
    if verdicts:
        return ["A is the reference, B the answer:", columns([heads, *verdicts])]
    heads = ["candidate", "category", "responses", "share", "95 % interval"]
    rows = [
        [
            name,
            label,
            str(category["count"]),
            labels.decimal(category["share"]),
            labels.interval(category["ci_low"], category["ci_high"]),
        ]
        for name, cell in cells.items()
        for label, category in cell.get("categories", {}).items()
    ]
    return [columns([heads, *rows])] if rows else []


def _figures(cell: Mapping[str, Any], *, raw: bool) -> list[str]:
    shown = [labels.decimal(cell["mean"]), labels.interval(cell["ci_low"], cell["ci_high"])]
    if raw:
        shown.append(labels.decimal(cell.get("raw_mean")))
    counts = [str(cell[name]) for name in _COUNTS]
    return [*shown, *counts, labels.interval(cell["low_bound"], cell["high_bound"])]


def _pair(pair: Mapping[str, Any]) -> list[str]:
    counts = [str(pair[name]) for name in ("wins", "ties", "losses", "items")]
    interval = labels.interval(pair["ci_low"], pair["ci_high"])
    name, difference = f"{pair['a']} − {pair['b']}", labels.signed(pair["difference"])
    return [name, difference, interval, p_value(pair["p_holm"]), *counts, labels.verdict(pair)]


def _sections(document: Document, metric: str, cells: Mapping[str, Any]) -> list[str]:
    """A metric's comparisons, judges, raters and slices, each as a heading and a table."""
    values = labels.ValueFormat(rate=kind_of(cells) == "bool", places=3)
    agreement = agreement_view(document, metric, values, {}, Links.none())
    sides = [_side_by_side(view) for view in side_views(document, metric, {})]
    judges = under(document, "judges", metric)
    fields = [
        slices_of(breakdown, metric, list(cells), values, (None, None), SliceLinks(Links.none(), metric, ""))
        for breakdown in document.get("breakdowns", ())
    ]
    return [
        *sides,
        *([_judges(judges, values)] if judges else []),
        *_people(agreement),
        *(_slices(sliced) for sliced in fields if sliced is not None),
    ]


def _side_by_side(side: SideView) -> str:
    stats = [f"{stat.name}: {stat.value} {stat.more}".rstrip() + "." for stat in side.stats]
    return "\n".join([f"Side by side, by {side.by}", *side.warnings, _rows(side.table), *stats])


def _judges(judges: Sequence[Mapping[str, Any]], values: labels.ValueFormat) -> str:
    """Each judge against people, with the agreement among people, and against other judges."""
    heads = ["judge", "against", "items", "exact", "kappa", "95 % interval", "people's kappa", "Spearman"]
    rows = [
        [
            labels.author_name(agreement["judge"]),
            labels.author_name(agreement["against"]),
            str(agreement["items"]),
            labels.decimal(agreement["exact"]),
            labels.kappa(agreement["kappa_weighted"]),
            labels.interval(agreement["kappa_low"], agreement["kappa_high"], 2),
            labels.kappa((agreement["human"] or {}).get("kappa_weighted")),
            labels.kappa(agreement["spearman"]),
            values.signed(agreement["bias"]),
            values.interval(agreement["bias_low"], agreement["bias_high"]),
        ]
        for agreement in judges
    ]
    table = columns([[*heads, "bias", "95 % interval"], *rows])
    return f"Agreement of judges (quadratic kappa; bias: judge − other)\n{table}"


def _people(agreement: AgreementView) -> list[str]:
    """Judge health, raters, and scores corrected by people's ratings."""
    health, raters = agreement.health, agreement.raters
    sections = [
        f"{heading}\n{_rows(table)}"
        for heading, table in (
            ("Judge health", health.judges),
            ("Suspected injected verdicts", health.injected),
            (_corrected_heading(agreement), agreement.corrected),
        )
        if table is not None
    ]
    if raters is not None:
        stats = "; ".join(f"{stat.name} {stat.value} {stat.more}".rstrip() for stat in raters.stats)
        sections.append("\n".join(["Raters", *([f"{stats}."] if stats else []), _rows(raters.each)]))
    return sections


def _corrected_heading(agreement: AgreementView) -> str:
    by = "the judge's errors on the test of its licence" if agreement.carried_over else "PPI++"
    return f"Corrected by people ({by})"


def _slices(slices: SlicesView) -> str:
    rows = [[value, *(cell.text for cell in cells), items] for value, cells, items in slices.rows]
    heading = f"By {slices.field} (* differs from the rest: permutation test, Benjamini–Hochberg, 0.05)"
    means = [heading, columns([[slices.field, *slices.names, "items"], *rows])] if rows else []
    notes = ["† too few independent items for an interval."] if slices.without_interval else []
    left_out = [f"{slices.left_out} rarer values not shown."] if slices.left_out else []
    agreement = [f"Judges and people by {slices.field}", _rows(slices.agreement)] if slices.agreement else []
    return "\n".join([*means, *notes, *left_out, *agreement])


def _rows(table: Table) -> str:
    """A table of the report page as text."""
    heads = [column.name for column in table.columns]
    return columns([heads, *([_text(cell) for cell in row] for row in table.rows)])


def _text(cell: str) -> str:
    return unescape(strip_tags(cell)) if isinstance(cell, SafeString) else cell


def _cost(cost: Mapping[str, Any]) -> str:
    seconds = cost["wall_seconds"]
    time = "" if seconds is None else f", {fixed(seconds, 1)} s"
    lines = [
        f"{cost['requests']} requests ({cost['retries']} repeated, {cost['failed_requests']} failed), "
        f"{_tokens(cost)}{time}."
    ]
    lines += [
        f"  answers of {name}: {part['requests']} requests, {_tokens(part)}."
        for name, part in cost.get("answers", {}).items()
    ]
    if judges := cost.get("judges"):
        lines.append(f"  judge models: {judges['requests']} requests, {_tokens(judges)}.")
    return "\n".join(lines)


def _tokens(cost: Mapping[str, Any]) -> str:
    price = f", {money(cost['money'])} {cost['currency']}" if "money" in cost else ""
    return f"{cost['prompt_tokens']} tokens read, {cost['completion_tokens']} written{price}"


def columns(rows: Sequence[Sequence[str]]) -> str:
    """Align the cells in columns: the first column left, figures right."""
    widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
    return "\n".join(_line(row, widths) for row in rows)


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    padded = [" " * (wide - _width(cell)) + cell for cell, wide in zip(row, widths, strict=True)]
    first = row[0] + " " * (widths[0] - _width(row[0]))
    return "  ".join(["", first, *padded[1:]]).rstrip()


def _width(text: str) -> int:
    """Width in terminal columns: a Chinese character takes two."""
    return sum(1 + (unicodedata.east_asian_width(character) in "WF") for character in text)
