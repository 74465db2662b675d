"""Compares a row of one version with the same row of another, part by part."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from datasets.core.formats import COMPUTED, Format
from datasets.core.variables import response_data, row_data
from datasets.models import DifferenceRow, Row, Version
from datasets.selectors import format_of
from datasets.versions.row_writer import WholeRow, as_json, with_answers
from evalsite.text_diff import Passage, excerpts, pieces

LONGEST_TEXT = 20_000  # longer parts are truncated for comparison
LONGEST_ROW = 200_000  # longer rows are compared as raw text
AROUND = 120
EXCERPT = 300

Parts = dict[str, str]


@dataclass(frozen=True, slots=True)
class RowPart:
    """A part of a row that differs: its path, and each side's text or None if the part is missing there."""

    name: str
    before: list[Passage] | None
    after: list[Passage] | None


@dataclass(frozen=True, slots=True)
class RowSide:
    """A row of one version, with that version's format."""

    row: WholeRow
    fmt: Format

    @property
    def readable(self) -> bool:
        """Whether the row is valid and short enough to be split into parts."""
        return self.row.valid and len(self.row.raw) <= LONGEST_ROW


@dataclass(frozen=True, slots=True)
class RowDiff:
    """A changed row with the parts that differ, or an added or removed row with the beginning of its text."""

    kind: str
    old_line: int | None
    new_line: int | None
    beginning: str
    parts: list[RowPart]


def row_diffs(changed_rows: list[DifferenceRow], old: Version, new: Version) -> list[RowDiff]:
    """The differences to show for these rows."""
    olds = _rows(old, [row.old_line for row in changed_rows if row.old_line is not None])
    news = _rows(new, [row.new_line for row in changed_rows if row.new_line is not None])
    return [_row_diff(row, olds.get(row.old_line or 0), news.get(row.new_line or 0)) for row in changed_rows]


def _row_diff(row: DifferenceRow, before: RowSide | None, after: RowSide | None) -> RowDiff:
    there = after or before
    beginning = next(iter(parts_of(there).values()), "")[:EXCERPT] if there else ""
    parts = list(_differing(before, after)) if before and after else []
    return RowDiff(row.kind, row.old_line, row.new_line, beginning, parts)


def _rows(version: Version, lines: list[int]) -> dict[int, RowSide]:
    rows = list(Row.objects.filter(version=version, line__in=lines))
    return {row.line: RowSide(row, format_of(version)) for row in with_answers(rows)}


def _differing(before: RowSide, after: RowSide) -> Iterator[RowPart]:
    if before.readable and after.readable:
        return _differing_parts(parts_of(before), parts_of(after))
    return _differing_parts({"": _as_text(before, after)}, {"": _as_text(after, before)})


def _as_text(side: RowSide, other: RowSide) -> str:
    """A row as one text; a valid one is formatted with the other's spacing and key order to hide such differences."""
    if not side.row.valid:
        return side.row.raw
    text = other.row.raw
    row = json.loads(as_json(side.row, side.fmt))
    places = {key: text.find(json.dumps(key, ensure_ascii=False)) for key in row}
    ordered = sorted(row, key=lambda key: places[key] if places[key] >= 0 else len(text))
    separators = (", ", ": ") if '": ' in text else (",", ":")
    return json.dumps({key: row[key] for key in ordered}, ensure_ascii=False, separators=separators)


def parts_of(side: RowSide) -> Parts:
    """{path: text} of a row's messages, reference, fields and answers; for an invalid row, its text."""
    if not side.readable:
        return {"": side.row.raw}
    data = row_data(side.row.raw, side.fmt)
    parts: Parts = {}
    for number, message in enumerate(data.pop("messages")):
        parts[f"messages[{number}] {message['role']}"] = _text(message["content"])
    for name, value in data.items():
        if name not in COMPUTED and not (name == "ref_answer" and value is None):
            parts[name] = _text(value)
    return parts | dict(_answer_parts(side.row))


def _answer_parts(row: WholeRow) -> Iterator[tuple[str, str]]:
    counts = Counter[str]()
    for model, raw in row.answers:
        counts[model] += 1
        response = {name: value for name, value in response_data(raw).items() if value is not None}
        content = response.pop("content")
        further = f"\n{_text(response)}" if response else ""
        yield f"{model} [{counts[model]}]", f"{content}{further}"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)


def _differing_parts(old: Parts, new: Parts) -> Iterator[RowPart]:
    for name in old | new:
        before, after = old.get(name), new.get(name)
        if before == after:
            continue
        if before is None or after is None:
            yield RowPart(name, _whole(before), _whole(after))
            continue
        both = excerpts(pieces(before[:LONGEST_TEXT], after[:LONGEST_TEXT]), AROUND)
        old_side = [piece for piece in both if piece.kind != "added"]
        new_side = [piece for piece in both if piece.kind != "removed"]
        yield RowPart(name, old_side, new_side)


def _whole(text: str | None) -> list[Passage] | None:
    if text is None:
        return None
    cut = text if len(text) <= LONGEST_TEXT else text[:LONGEST_TEXT] + " …"
    return [Passage("same", cut)]
