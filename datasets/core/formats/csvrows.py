"""The legacy CSV: a header that names `prompt`, `response` and perhaps `system`, and one turn a record."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from datasets.core.findings import Finding, finding
from datasets.core.formats.checks import Check, not_utf8
from datasets.core.formats.csvtext import Record
from datasets.core.formats.facts import Facts, conversation_identity
from datasets.core.formats.names import LEGACY_COLUMNS
from datasets.core.spelling import misspelt


@dataclass(frozen=True, slots=True)
class CsvTable:
    """A header. `keys` are the columns as keys of a row, `names` as the file spells them."""

    names: tuple[str, ...]
    keys: tuple[str, ...]
    line: int

    @classmethod
    def of(cls, header: Record) -> "CsvTable":
        names = tuple(name.strip() for name in header.fields)
        keys = tuple(name.lower() if name.lower() in LEGACY_COLUMNS else name for name in names)
        return cls(names, keys, header.line)

    @property
    def usable(self) -> bool:
        named = {"prompt", "response"} <= set(self.keys) and len(set(self.keys)) == len(self.keys)
        return named and not any("\0" in name for name in self.names)

    def findings(self) -> Iterator[Finding]:
        """What is wrong or remarkable about the header; all at its line."""
        met = ", ".join(self.names)
        for key in ("prompt", "response"):
            if key not in self.keys:
                near = misspelt(self.names, key, LEGACY_COLUMNS)
                params: dict[str, Any] = {"near": near, "meant": key} if near else {}
                yield finding(
                    "csv.header", line=self.line, path=key, problem="missing", name=key, met=met, **params
                )
        seen: set[str] = set()
        for number, (name, key) in enumerate(zip(self.names, self.keys, strict=True), 1):
            if key in seen:
                yield finding("csv.header", line=self.line, path=name, problem="twice", name=name, met=met)
            elif key not in LEGACY_COLUMNS:
                yield finding("csv.extra_column", line=self.line, path=name, name=name, number=number)
            if "\0" in name:
                yield finding("json.nul", line=self.line, path=name)
            seen.add(key)

    def check(self, record: Record) -> Check:
        """Everything found in one record, and its facts."""
        check = Check(record.line)
        row = self.row(record)
        check.facts = _facts(row)
        check.faults += text_findings(record)
        if record.quote is not None or not self.keys:
            return check
        if len(record.fields) != len(self.keys):
            check.add("csv.columns", None, met=len(record.fields), wanted=len(self.keys))
        elif self.usable:
            self._check_texts(check, row)
        return check

    def row(self, record: Record) -> dict[str, str]:
        """The record as an object, of a column that is there twice the first."""
        pairs = list(zip(self.keys, record.fields, strict=False))
        return dict(reversed(pairs)) if len(set(self.keys)) < len(self.keys) else dict(pairs)

    def json(self, record: Record) -> bytes:
        return msgspec.json.encode(self.row(record))

    def _check_texts(self, check: Check, row: dict[str, str]) -> None:
        for name, key in zip(self.names, self.keys, strict=True):
            if "\0" in row[key]:
                check.add("json.nul", name)
            if key == "prompt" and not row[key].strip():
                check.add("prompt.blank", name)
            if key == "response" and not row[key].strip():
                check.add("response.blank", name)


def text_findings(record: Record) -> Iterator[Finding]:
    """What is wrong with the text of a record, or of the header, whatever its fields are."""
    if record.broken is not None:
        yield not_utf8(record.line, record.broken)
    if record.quote is not None:
        yield finding("csv.quote", line=record.line, column=record.quote or None, more=record.more)


def _facts(row: dict[str, str]) -> Facts:
    facts = Facts()
    for key in row:
        if key not in LEGACY_COLUMNS:
            facts.types[key] = "string"
    if "id" in row:
        facts.identity = row["id"]
    if "prompt" in row and "response" in row:
        facts.messages = conversation_identity([row], row.get("system"))
    return facts
