"""What is said of a version as a whole: counted row by row, in memory that hardly grows with the rows."""

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from datasets.core.findings import Finding, Ledger, finding
from datasets.core.formats.facts import Facts
from datasets.core.formats.names import COMPUTED, Format, model_key, structural_keys
from datasets.core.jsontext import JsonType, child_path
from datasets.core.spelling import misspelt

DISTINCT_NAMES = 20_000
"""More different models or fields than this are a broken file; further ones are not counted apart."""

LONGEST_NAME = 1_000
"""What follows in a longer name tells no two apart: a megabyte of it in every row would be kept."""

TYPE_BITS: dict[JsonType, int] = {
    "null": 1,
    "string": 2,
    "number": 4,
    "boolean": 8,
    "array": 16,
    "object": 32,
}


@dataclass(slots=True)
class ModelCount:
    """One model's rows and responses, with the fewest and most responses in one row."""

    rows: int = 0
    responses: int = 0
    fewest: int = 1 << 62
    most: int = 0

    def add(self, responses: int, rows: int) -> None:
        self.rows += rows
        self.responses += responses * rows
        if responses < self.fewest:
            self.fewest = responses
        if responses > self.most:
            self.most = responses


@dataclass(slots=True)
class FieldCount:
    """In how many rows a key stands, with how many nulls, and the types seen there as bits."""

    rows: int = 0
    nulls: int = 0
    types: int = 0


def identity_hash(identity: object) -> int:
    """Equal for equal values of `id`; a text is never equal to a number."""
    if isinstance(identity, str):
        return hash(identity or ("id", identity))  # Python's of no text is 0, which is an id too
    if type(identity) is int and -_SMALL < identity < _SMALL:
        return identity  # much faster than a hash; as likely as any hash to be that of a text
    return hash(("id", repr(identity)))


_SMALL = 1 << 62


class Seen:
    """Which rows share a value: one 64-bit hash and one line number a row, compared at the end.

    Twelve bytes a row, and about as much again while they are compared.
    """

    def __init__(self) -> None:
        self.hashes = array("q")
        self.lines = array("I")

    def add(self, line: int, hashed: int) -> None:
        self.hashes.append(hashed)
        self.lines.append(line)

    def extend(self, lines: list[int], hashes: list[int]) -> None:
        self.hashes.extend(hashes)
        self.lines.extend(lines)

    def repeats(self) -> Iterator[tuple[int, int]]:
        """(line, first line with the same value), in the order of lines."""
        if not self.hashes:
            return
        hashes, lines = np.frombuffer(self.hashes, np.int64), np.frombuffer(self.lines, np.uint32)
        order = np.argsort(hashes, kind="stable").astype(np.uint32)
        starts = np.ones(len(order), np.bool_)
        np.not_equal(hashes[order[1:]], hashes[order[:-1]], out=starts[1:])
        if starts.all():
            return
        heads = np.arange(len(order), dtype=np.uint32)
        heads *= starts
        np.maximum.accumulate(heads, out=heads)
        again = np.flatnonzero(~starts).astype(np.uint32)
        for at in again[np.argsort(order[again])]:
            yield int(lines[order[at]]), int(lines[order[heads[at]]])


@dataclass(slots=True)
class Tally:
    """Every object and CSV record of a version, faulty ones too."""

    objects: int = 0
    fields: dict[str, FieldCount] = field(default_factory=dict)
    models: dict[str, ModelCount] = field(default_factory=dict)
    ids: Seen = field(default_factory=Seen)
    messages: Seen = field(default_factory=Seen)

    def add(self, line: int, facts: Facts) -> None:
        self.objects += 1
        for name, kind in facts.types.items():
            self.field(name, TYPE_BITS[kind])
        for name, responses in facts.models.items():
            self.model(name, responses)
        if facts.identity is not None:
            self.ids.add(line, identity_hash(facts.identity))
        if facts.messages is not None:
            self.messages.add(line, hash(facts.messages))

    def field(self, name: str, bit: int, rows: int = 1) -> None:
        """Counts `rows` rows in which the key has a value of that type."""
        name = name[:LONGEST_NAME]
        count = self.fields.get(name)
        if count is None:
            if len(self.fields) >= DISTINCT_NAMES:
                return
            count = self.fields[name] = FieldCount()
        count.rows += rows
        count.types |= bit
        if bit == 1:
            count.nulls += rows

    def model(self, name: str, responses: int, rows: int = 1) -> None:
        """Counts `rows` rows in which the model has so many responses."""
        name = name[:LONGEST_NAME]
        count = self.models.get(name)
        if count is None:
            if len(self.models) >= DISTINCT_NAMES:
                return
            count = self.models[name] = ModelCount()
        count.add(responses, rows)

    def field_rows(self, fmt: Format | None) -> dict[str, int]:
        """{name: rows} of the fields, without the keys that make the format."""
        hidden = structural_keys(fmt)
        return {name: count.rows for name, count in self.fields.items() if name not in hidden}

    def report(self, fmt: Format | None, ledger: Ledger) -> None:
        """Adds the warnings on the whole version."""
        ledger.add_all(self._alike())
        ledger.add_all(self._coverage())
        ledger.add_all(self._fields(structural_keys(fmt)))
        ledger.add_all(self._misspelt(fmt))
        for line, first in self.ids.repeats():
            _add_repeat(ledger, "id.duplicate", line, "id", first)
        for line, first in self.messages.repeats():
            path = "conversation" if fmt == "legacy_jsonl" else None if fmt == "legacy_csv" else "messages"
            _add_repeat(ledger, "row.duplicate", line, path, first)

    def _alike(self) -> Iterator[Finding]:
        groups: dict[str, list[str]] = {}
        for name in self.models:
            groups.setdefault(model_key(name), []).append(name)
        for names in groups.values():
            if len(names) > 1:
                listed = ", ".join(f"{name} ({self.models[name].rows})" for name in names)
                yield finding("model_name.alike", names=listed, number=len(names))

    def _coverage(self) -> Iterator[Finding]:
        for name, count in self.models.items():
            if count.rows < self.objects:
                yield finding(
                    "model.coverage", model=name, absent=self.objects - count.rows, rows=self.objects
                )
            if count.fewest != count.most:
                yield finding("model.uneven_n", model=name, fewest=count.fewest, most=count.most)

    def _fields(self, hidden: frozenset[str]) -> Iterator[Finding]:
        reference = self.fields.get("ref_answer", FieldCount())
        have = reference.rows - reference.nulls
        if 0 < have < self.objects:
            near = misspelt(self.fields, "ref_answer")
            params: dict[str, Any] = {"near": near, "meant": "ref_answer"} if near else {}
            missing = self.objects - have
            yield finding(
                "ref_answer.some_missing", path="ref_answer", missing=missing, rows=self.objects, **params
            )
        for name, count in self.fields.items():
            if name in hidden or name == "ref_answer":
                continue
            path = child_path("", name)
            if name in COMPUTED:
                yield finding("field.shadowed", path=path, name=name, rows=count.rows)
            types = [kind for kind, bit in TYPE_BITS.items() if count.types & bit and kind != "null"]
            if len(types) > 1:
                yield finding("field.type_varies", path=path, name=name, types=", ".join(types))

    def _misspelt(self, fmt: Format | None) -> Iterator[Finding]:
        """Fields called almost like an optional key that no row has: without it no row is wrong."""
        legacy = fmt in ("legacy_jsonl", "legacy_csv")
        optional = ("ref_answer", "system") if legacy else ("ref_answer", "model_outputs")
        for meant in optional:
            if meant in self.fields or (meant == "model_outputs" and fmt != "infer_and_judge"):
                continue
            near = misspelt(self.fields, meant, structural_keys(fmt))
            if near:
                path, rows = child_path("", near), self.fields[near].rows
                yield finding("field.misspelt", path=path, near=near, meant=meant, rows=rows)


def _add_repeat(ledger: Ledger, code: str, line: int, path: str | None, first: int) -> None:
    if ledger.room(code):
        ledger.add(finding(code, line=line, path=path, first=first))
    else:
        ledger.count_at(code, [line])
