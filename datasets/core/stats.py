"""Statistics collected row by row while an upload is read, using little memory per row."""

import json
from array import array
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import msgspec
import numpy as np

from datasets.core.csv_layout import COMMON_LAYOUT, CsvLayout
from datasets.core.decode import Encoding, Unreadable
from datasets.core.findings import Finding, FindingLog, Param, finding
from datasets.core.formats import COMPUTED, LEGACY, Format, model_key, structural_keys
from datasets.core.json_errors import child_path
from datasets.core.json_nodes import JsonType
from datasets.core.limits import Limits
from datasets.core.rules import JSON_TYPES, RowFindings, is_text, placed
from datasets.core.spelling import is_misspelling, misspelt_top_keys, near_miss
from datasets.core.texts import Text, gettext_noop
from datasets.core.variables import joined, messages_of

Shape = Literal["jsonl", "spread", "csv", "none"]

DISTINCT_NAMES = 20_000
"""A file with more distinct models or fields is broken; further ones are not counted separately."""

OPTIONAL_KEYS = ("ref_answer", "model_outputs", "system")

LONGEST_NAME = 1_000
"""Longer names are truncated, in case every row has a different one of a megabyte."""

TYPES_NAMED: tuple[JsonType, ...] = ("string", "number", "boolean", "array", "object")
"""The order in which a finding lists the types of a field; null is compatible with every type."""


@dataclass(slots=True)
class ModelCount:
    """One model's rows and responses, with the fewest and most responses in one row."""

    rows: int = 0
    responses: int = 0
    fewest: int = 1 << 62
    most: int = 0

    def add(self, responses: int) -> None:
        self.rows += 1
        self.responses += responses
        if responses < self.fewest:
            self.fewest = responses
        if responses > self.most:
            self.most = responses


TypeCount = Counter[type]
"""The number of rows in which a field has a value of each type."""

Count = TypeVar("Count", TypeCount, ModelCount)


class RepeatedValues:
    """Finds rows that share a value by storing a 64-bit hash and a line number per row.

    Takes twelve bytes per row, and about as much again during the comparison.
    """

    def __init__(self) -> None:
        self.hashes = array("q")
        self.lines = array("I")

    def add(self, line: int, hashed: int) -> None:
        self.hashes.append(hashed)
        self.lines.append(line)

    def repeats(self) -> Iterator[tuple[int, int]]:
        """Yield (line, first line with the same value), ordered by line."""
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
        firsts = np.empty_like(order)
        firsts[order] = order[heads]
        del order, starts, heads
        for at in np.flatnonzero(firsts != np.arange(len(firsts), dtype=np.uint32)):
            yield int(lines[at]), int(lines[firsts[at]])


class Stats:
    """Statistics of all objects and CSV records of a version, including invalid ones."""

    def __init__(self) -> None:
        self.objects = 0
        self.fields: dict[str, TypeCount] = {}
        self.models: dict[str, ModelCount] = {}
        self.misspelt: dict[str, bool] = {}
        """Fields named like an optional key, and whether a row has shown that they can be renamed."""
        self._unshown = False
        self.ids = RepeatedValues()
        self.messages = RepeatedValues()

    def add(self, line: int, row: dict[str, Any], *, legacy_csv: bool = False) -> None:
        self.objects += 1
        identity = row.get("id")
        if identity is not None:
            # equal for equal values; a string never equals a number
            self.ids.add(line, hash(identity if isinstance(identity, str) else ("id", repr(identity))))
        key = _record_key(row) if legacy_csv else messages_key(row)
        if key is not None:
            self.messages.add(line, hash(key))
        for name, value in row.items():
            types = self.fields.get(name) or self._new_field(name)
            if types is not None:
                types[type(value)] += 1
        if self._unshown:
            self.misspelt |= dict.fromkeys(misspelt_top_keys(row), True)
            self._unshown = not all(self.misspelt.values())
        for name, responses in models_of(row).items():
            model = self.models.get(name) or _named(self.models, name, ModelCount)
            if model:
                model.add(responses)

    def _new_field(self, name: str) -> TypeCount | None:
        if any(is_misspelling(name, optional) for optional in OPTIONAL_KEYS):
            self.misspelt[name], self._unshown = False, True
        return _named(self.fields, name, TypeCount)

    def _repair(self, near: dict[str, Any]) -> str | None:
        return "rename_key" if near and self.misspelt.get(near["near"]) else None

    def field_rows(self, fmt: Format | None) -> dict[str, int]:
        """{name: rows} of the fields, without the format's own keys."""
        hidden = structural_keys(fmt)
        return {name: types.total() for name, types in self.fields.items() if name not in hidden}

    def references(self) -> int:
        """The number of rows with a reference; null is none."""
        types = self.fields.get("ref_answer", TypeCount())
        return types.total() - types[type(None)]

    def report(self, fmt: Format | None, log: FindingLog) -> None:
        """Add the warnings about the whole version."""
        log.add_all(self._alike())
        log.add_all(self._coverage())
        log.add_all(self._fields(structural_keys(fmt)))
        log.add_all(self._misspelt(fmt))
        path = "conversation" if fmt == "legacy_jsonl" else None if fmt == "legacy_csv" else "messages"
        for code, place, repeats in (
            ("id.duplicate", "id", self.ids),
            ("row.duplicate", path, self.messages),
        ):
            log.add_all(
                finding(code, line=line, path=place, first=first) for line, first in repeats.repeats()
            )

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
        have = self.references()
        if 0 < have < self.objects:
            near, missing = near_miss(self.fields, "ref_answer"), self.objects - have
            yield finding(
                "ref_answer.some_missing",
                path="ref_answer",
                repair=self._repair(near),
                missing=missing,
                rows=self.objects,
                **near,
            )
        for name, types in self.fields.items():
            if name in hidden or name == "ref_answer":
                continue
            path = child_path("", name)
            if name in COMPUTED:
                yield finding("field.shadowed", path=path, name=name, rows=types.total())
            met = {JSON_TYPES[kind] for kind in types} - {"null"}
            if len(met) > 1:
                named = ", ".join(kind for kind in TYPES_NAMED if kind in met)
                yield finding("field.type_varies", path=path, name=name, types=named)

    def _misspelt(self, fmt: Format | None) -> Iterator[Finding]:
        """Warn about fields that resemble an optional key which no row has; such rows are valid."""
        optional = ("ref_answer", "system" if fmt in LEGACY else "model_outputs")
        for meant in optional:
            if meant in self.fields or (meant == "model_outputs" and fmt != "infer_and_judge"):
                continue
            near = near_miss(self.fields, meant, structural_keys(fmt))
            if near:
                name = near["near"]
                rows = self.fields[name].total()
                path, repair = child_path("", name), self._repair(near)
                yield finding("field.misspelt", path=path, repair=repair, rows=rows, **near)


def _named(counts: dict[str, Count], name: str, new: Callable[[], Count]) -> Count | None:
    name = name[:LONGEST_NAME]
    count = counts.get(name)
    if count is None and len(counts) < DISTINCT_NAMES:
        count = counts[name] = new()
    return count


def models_of(row: dict[str, Any]) -> dict[str, int]:
    """{model: number of responses} of a row."""
    outputs = row.get("model_outputs")
    if type(outputs) is not list:
        return {}
    models: dict[str, int] = {}
    for output in outputs:
        name = output.get("model_name") if type(output) is dict else None
        if type(name) is str and name.strip():
            responses = output.get("responses")
            models[name] = models.get(name, 0) + (len(responses) if type(responses) is list else 0)
    return models


_encode_sorted = msgspec.json.Encoder(order="sorted").encode


def messages_key(row: dict[str, Any]) -> Any:
    """A hashable key that is equal for rows with equal messages; None if the row has none."""
    if "messages" in row:
        key = _sorted_json(row["messages"])
        # `in` would take twice as long, as it first tries the text as a number.
        return key if key.find(b'"content":[') < 0 else _sorted_json(_with_joined_parts(row["messages"]))
    if "conversation" in row:
        return conversation_key(row["conversation"], row.get("system"))
    return None


def _with_joined_parts(messages: Any) -> Any:
    """Join text parts in messages that have only a role and a text; other messages stay unchanged."""
    if type(messages) is not list or not all(map(_is_plain, messages)):
        return messages
    return [
        message | {"content": joined(message["content"])} if "content" in message else message
        for message in messages
    ]


def _is_plain(message: Any) -> bool:
    return (
        type(message) is dict
        and message.keys() <= {"role", "content"}
        and type(message.get("role", "")) is str
        and is_text(message.get("content", ""))
    )


def _record_key(row: dict[str, Any]) -> Any:
    return conversation_key([row], row.get("system")) if "prompt" in row and "response" in row else None


def conversation_key(conversation: Any, system: Any) -> Any:
    """The same key for the messages of a legacy row."""
    turns = conversation if type(conversation) is list else [conversation]
    if not all(map(_is_turn, turns)):
        return _sorted_json([system, conversation])
    spoken = system if type(system) is str else ""
    return _sorted_json(messages_of({"conversation": turns, "system": spoken}, "legacy_jsonl"))


def _is_turn(turn: Any) -> bool:
    return type(turn) is dict and type(turn.get("prompt")) is str and type(turn.get("response")) is str


def _sorted_json(value: Any) -> bytes:
    try:
        return _encode_sorted(value)
    except UnicodeError:  # lone surrogates
        return json.dumps(value, sort_keys=True).encode()


FORMAT_WHY: dict[str, Text] = {
    "keys.infer_and_judge": gettext_noop(
        "%(messages)s of %(rows)s rows have “messages”, and fewer than half of them “model_outputs”."
    ),
    "keys.judge_only": gettext_noop(
        "%(messages)s of %(rows)s rows have “messages”, and %(model_outputs)s of them “model_outputs”."
    ),
    "keys.legacy_jsonl": gettext_noop("%(conversation)s of %(rows)s rows have “conversation”."),
    "csv_header": gettext_noop("The first line is a CSV header with “prompt” or “response”."),
    "forced": gettext_noop("Chosen manually."),
    "imported": gettext_noop("Set by the import."),
    "attached": gettext_noop("Created from rows with attached answers."),
    "spread": gettext_noop("Its objects span several lines, or form one list."),
    "other_kind": gettext_noop("Not a dataset file."),
    "empty": gettext_noop("No rows."),
    "unknown": gettext_noop("Neither “messages” nor “conversation” nor a CSV header was found."),
}
"""How the format was determined, by reason code."""


@dataclass(frozen=True, slots=True)
class Detection:
    """The result of detection. `why` is a code of FORMAT_WHY with params; `findings` are those on the file as a whole.

    With shape "none", rows cannot be read, and `rows` is the number of lines. `silent`: findings of single rows are
    dropped, because the file has no known format. `layout` is that of a CSV.
    """

    shape: Shape
    format: Format | None
    why: str
    why_params: dict[str, Param]
    encoding: Encoding | None
    findings: tuple[Finding, ...]
    rows: int = 0
    silent: bool = False
    layout: CsvLayout = COMMON_LAYOUT


class ReadState:
    """The state of reading an upload; `valid` holds 1 or 0 for each row, in file order."""

    def __init__(self, detection: Detection, limits: Limits, kept_per_code: int) -> None:
        self.detection = detection
        self.limits = limits
        self._kept_per_code = kept_per_code
        self.begin()

    def begin(self) -> None:
        """Start from the first row; may be called again."""
        self.format = self.detection.format
        self.log = FindingLog(self._kept_per_code)
        self.stats = Stats()
        self.valid = bytearray()
        self.valid_rows = 0
        self.stopped_by = ""
        self.log.add_all(self.detection.findings)

    def finish(self, detection: Detection) -> None:
        """Finish with the detection for the whole file."""
        self.detection = detection
        if detection.shape in ("jsonl", "csv") and not detection.silent:
            self.stats.report(self.format, self.log)

    @property
    def rows(self) -> int:
        return len(self.valid) or self.detection.rows

    def count(self, valid: bool) -> bool:
        """Count a row and return whether it is usable; raises Unreadable beyond the row limit."""
        if len(self.valid) >= self.limits.rows:
            raise Unreadable(finding("file.too_many_rows", limit=self.limits.rows))
        usable = valid and self.format is not None
        self.valid.append(usable)
        self.valid_rows += usable
        return usable

    def record_findings(self, line: int, source: bytes, findings: RowFindings, *, unique_keys: bool) -> None:
        """Count a row's findings and store some, with their position in its text."""
        if self.detection.silent:
            return
        for code, number in findings.counts.items():
            self.log.count(code, number, line)
        wanted = [flaw for flaw in findings.stored if self.log.has_room_for(flaw)]
        text = source.decode("utf-8", "replace") if wanted else ""
        for flaw in placed(wanted, line, text, unique_keys=unique_keys):
            self.log.store(flaw)
