"""A row of one version beside the same row of another: what differs, part by part."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from datasets.core.formats import COMPUTED, FORMATS
from datasets.core.variables import response_data, row_data
from datasets.models import DifferenceRow, Row, Version
from datasets.versions.row_writer import WholeRow, as_json, with_answers
from evalsite.text_diff import Passage, excerpts, pieces

LONGEST_TEXT = 20_000  # of a longer part the beginning is compared
LONGEST_ROW = 200_000  # a longer row is compared as it stands in the file
AROUND = 120
EXCERPT = 300

Parts = dict[str, str]


@dataclass(frozen=True, slots=True)
class RowPart:
    """One part of a row that differs: its name as a path, and each side's text; None where there is no such part."""

    name: str
    before: list[Passage] | None
    after: list[Passage] | None


@dataclass(frozen=True, slots=True)
class RowSide:
    """A row of one of the versions, and that version's format."""

    row: WholeRow
    fmt: str

    @property
    def readable(self) -> bool:
        """Can it be taken apart, and is it short enough for that?"""
        return self.row.valid and len(self.row.raw) <= LONGEST_ROW


@dataclass(frozen=True, slots=True)
class Contrast:
    """A changed row with the parts that differ; an added or removed one with the beginning of what it says."""

    kind: str
    old_line: int | None
    new_line: int | None
    beginning: str
    parts: list[RowPart]


def contrasts(found: list[DifferenceRow], old: Version, new: Version) -> list[Contrast]:
    """What a page shows of these rows."""
    olds = _rows(old, [row.old_line for row in found if row.old_line is not None])
    news = _rows(new, [row.new_line for row in found if row.new_line is not None])
    return [
        Contrast(
            one.kind, one.old_line, one.new_line, _beginning(before, after), list(_differing(before, after))
        )
        for one in found
        for before, after in [(olds.get(one.old_line or 0), news.get(one.new_line or 0))]
    ]


def _rows(version: Version, lines: list[int]) -> dict[int, RowSide]:
    rows = list(Row.objects.filter(version=version, line__in=lines))
    return {row.line: RowSide(row, version.format) for row in with_answers(rows)}


def _beginning(before: RowSide | None, after: RowSide | None) -> str:
    there = after or before
    return next(iter(parts_of(there).values()), "")[:EXCERPT] if there else ""


def _differing(before: RowSide | None, after: RowSide | None) -> Iterator[RowPart]:
    if before is None or after is None:
        return
    if before.readable and after.readable:
        yield from _differing_parts(parts_of(before), parts_of(after))
    else:
        yield from _differing_parts({"": _as_text(before, after)}, {"": _as_text(after, before)})


def _as_text(side: RowSide, other: RowSide) -> str:
    """A row as one text; a good one printed with the other's blanks and order of keys, so that these do not show."""
    if not side.row.valid:
        return side.row.raw
    text = other.row.raw
    row = json.loads(as_json(side.row, side.fmt))
    places = {key: text.find(json.dumps(key, ensure_ascii=False)) for key in row}
    ordered = sorted(row, key=lambda key: places[key] if places[key] >= 0 else len(text))
    separators = (", ", ": ") if '": ' in text else (",", ":")
    return json.dumps({key: row[key] for key in ordered}, ensure_ascii=False, separators=separators)


def parts_of(side: RowSide) -> Parts:
    """{path: text} of a row: its messages, its reference, its fields, its answers; of a bad row its text."""
    if not side.readable:
        return {"": side.row.raw}
    data = row_data(side.row.raw, next(name for name in FORMATS if name == side.fmt))
    parts: Parts = {}
    for number, message in enumerate(data.pop("messages")):
        parts[f"messages[{number}] {message['role']}"] = _text(message["content"])
    for name, value in data.items():
        if name not in COMPUTED and not (name == "ref_answer" and value is None):
            parts[name] = _text(value)
    return parts | dict(_answer_parts(side.row))


def _answer_parts(row: WholeRow) -> Iterator[tuple[str, str]]:
    counts: dict[str, int] = {}
    for model, raw in row.answers:
        counts[model] = counts.get(model, 0) + 1
        response = {name: value for name, value in response_data(raw).items() if value is not None}
        content = response.pop("content")
        further = f"\n{_text(response)}" if response else ""
        yield f"{model} [{counts[model]}]", f"{content}{further}"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)


def _differing_parts(old: Parts, new: Parts) -> Iterator[RowPart]:
    for name in [*old, *(name for name in new if name not in old)]:
        before, after = old.get(name), new.get(name)
        if before == after:
            continue
        if before is None or after is None:
            yield RowPart(name, _whole(before), _whole(after))
            continue
        both = excerpts(pieces(before[:LONGEST_TEXT], after[:LONGEST_TEXT]), AROUND)
        yield RowPart(
            name,
            [piece for piece in both if piece.kind != "added"],
            [piece for piece in both if piece.kind != "removed"],
        )


def _whole(text: str | None) -> list[Passage] | None:
    if text is None:
        return None
    cut = text if len(text) <= LONGEST_TEXT else text[:LONGEST_TEXT] + " …"
    return [Passage("same", cut)]
