"""Decodes and validates single rows of an upload, and splits them into the parts that are stored.

msgspec drops the first of two equal keys, and accepts NULs, very deep nesting and integers beyond a double. Lost keys
are detected by counting colons in the row and in its re-encoded values: strings keep their colons, and each key adds
one.
"""

import re
from collections.abc import Container, Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Raw, Struct

from datasets.core.decode import Block
from datasets.core.findings import Finding, broken_byte, finding, not_utf8, too_large, too_many_values
from datasets.core.formats import Format
from datasets.core.json_errors import JsonProblem, flaws, is_too_deep, parse
from datasets.core.json_repairs import as_json, with_null
from datasets.core.json_tokens import MAX_DEPTH
from datasets.core.limits import Limits, holds_more_values
from datasets.core.rules import RowFindings, check_row, placed

UNDECODED = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_decode = msgspec.json.Decoder().decode
_encode_into = msgspec.json.Encoder().encode_into
_ODD_ESCAPE = re.compile(rb"\\u00(?:00|3[aA])")  # a NUL, or an escaped colon that would not be counted
_LONG_NUMBER = re.compile(rb"[0-9]{300}")
_STRIDE = 100  # three hundred digits cover three of these positions in a row
_DIGITS = re.compile(rb"[0-9]{3}")
_REPAIRS = {"comment": "strip_comments", "trailing_comma": "strip_trailing_commas"}


def decoded(block: Block, most: int) -> Iterator[tuple[int, bytes, dict[str, Any] | None]]:
    """Yield (number, line, row) for a block's lines; row is None unless the line is a valid object without flaws.

    Lines that are truncated or contain more than `most` values are not decoded.
    """
    # Reused for all rows, as allocating one per row costs time.
    written = bytearray(len(block.text) // max(1, len(block.lines)))
    odd = b"\\u00" in block.text or _DIGITS.search(block.text[::_STRIDE]) is not None
    for number, line in enumerate(block.lines, block.first):
        row = None
        if not (number in block.oversized or (len(line) > most and holds_more_values(line, most))):
            try:
                row = _decode(line)
                _encode_into(row, written)
            except UNDECODED:
                row = None
        is_odd = odd and (_ODD_ESCAPE.search(line) or _LONG_NUMBER.search(line))
        colons = line.count(b":")
        if is_odd or type(row) is not dict or colons != written.count(b":"):
            row = None
        # Every object around another value has a key, so fewer colons and lists mean less depth.
        elif (lists := line.count(b"[")) + colons >= MAX_DEPTH and lists + line.count(b"{") > MAX_DEPTH:
            row = None if is_too_deep(line.decode()) else row
        yield number, line, row


def refusal(number: int, line: bytes, limits: Limits, *, oversized: bool) -> Finding | None:
    """The finding if a line is rejected without being parsed, else None."""
    if oversized:
        return too_large(number, limits)
    if holds_more_values(line, limits.row_values):
        return too_many_values(number, limits)
    broken = broken_byte(line)
    return not_utf8(number, broken) if broken else None


def is_json(line: bytes) -> bool:
    """Whether the line is syntactically valid JSON."""
    try:
        msgspec.json.decode(line, type=msgspec.Raw)
    except UNDECODED:
        return False
    return True


def object_in(text: bytes | str) -> dict[str, Any] | None:
    """Decode an object without checking it for flaws; None for anything else."""
    try:
        row = msgspec.json.decode(text)
    except UNDECODED:
        return None
    return row if isinstance(row, dict) else None


def explain(text: str, fmt: Format | None) -> tuple[RowFindings, dict[str, Any] | None]:
    """The findings of a line, and its values if it is an object; without `fmt`, only JSON is checked."""
    findings = RowFindings()
    try:
        root = parse(text)
    except JsonProblem as problem:
        findings.add_finding(invalid_json(None, problem, text))
        return findings, None
    if root.type != "object":
        findings.add("json.not_object", None, column=root.column, met=root.type)
        return findings, None
    for flaw in flaws(text, root):
        findings.add_finding(flaw)
    row = root.plain()
    if fmt:
        check_row(row, fmt, findings)
    return findings, row


def invalid_json(line: int | None, problem: JsonProblem, text: str = "") -> Finding:
    """The finding for a JSON error. `text` is the whole line, if it is one that can be repaired."""
    repair = _REPAIRS.get(problem.reason)
    if repair is None and as_json(text):
        repair = "python_literal"
    elif problem.reason == "constant" and with_null(text):
        repair = "nan_to_null"
    return finding(
        "json.invalid",
        line=line,
        column=problem.position + 1,
        repair=repair,
        reason=problem.reason,
        met=problem.met,
        wanted=problem.wanted,
    )


def findings_of(number: int, text: str, fmt: Format | None) -> list[Finding]:
    """All findings of one line of a JSONL upload, with line and column."""
    return list(placed(explain(text, fmt)[0].stored, number, text))


class _Outputs(Struct):
    model_outputs: Raw


class _ModelAnswers(Struct, gc=False):
    model_name: str
    responses: list[Raw]


Answers = tuple[tuple[str, int, str], ...]
Pieces = tuple[bytes, list[tuple[str, int, bytearray]]]

_KEY = b'"model_outputs"'
_ESCAPED_LETTER = re.compile(rb"\\u00[567]")  # may be an escaped letter of the key
_decode_top = msgspec.json.Decoder(dict[str, Raw]).decode
_decode_key = msgspec.json.Decoder(_Outputs).decode
_decode_outputs = msgspec.json.Decoder(list[_ModelAnswers]).decode


class NewRow(Struct, frozen=True, gc=False):
    """A row as stored, in UTF-8: JSON without the answers if it is valid, else its original text.

    `answers` are (model name, number from 1 within row and model, JSON); see importing/tables.py on bytearray.
    """

    line: int
    valid: bool
    raw: bytes
    answers: Sequence[tuple[str, int, bytearray]] = ()


Part = tuple[list[NewRow], int]
"""Some rows and the number of upload bytes they were made from."""


class RawRow(Struct, frozen=True, gc=False):
    """A row as uploaded: `source` is its UTF-8 bytes; `json` is the same object unless the upload is CSV."""

    line: int
    valid: bool
    source: bytes
    json: bytes

    @property
    def raw(self) -> str:
        """The row's original text (only the beginning of an oversized row)."""
        return self.source.decode("utf-8", "replace")

    @property
    def data(self) -> str:
        """JSON of the row without `model_outputs`, custom fields byte for byte; '' if the row has errors."""
        return self.new_row.raw.decode() if self.valid else ""

    @property
    def responses(self) -> Answers:
        """(model name, index from 1, JSON of the response) of every uploaded answer; () if the row has errors."""
        return tuple((model, index, raw.decode()) for model, index, raw in self.new_row.answers)

    @property
    def new_row(self) -> NewRow:
        """The row as stored. The `model_outputs` column of a CSV contains no answers."""
        if not self.valid:
            return bad_row(self.line, self.source)
        if self.json is not self.source:
            return NewRow(self.line, True, self.json)
        return NewRow(self.line, True, *cut(self.json, _decode_top(self.json)))


def bad_row(line: int, source: bytes) -> NewRow:
    """The stored form of a row with errors; NULs are replaced, as the database cannot store them."""
    text = source.decode("utf-8", "replace").replace("\0", "\N{REPLACEMENT CHARACTER}")
    return NewRow(line, False, text.encode())


def cut(line: bytes, keys: Container[str]) -> Pieces:
    """Split a valid row's JSON into the row without answers and the answers; `keys` are those of its top level.

    The top level is re-encoded if the position of the key is ambiguous; all values keep their spelling.
    """
    line = line.strip()
    if "model_outputs" not in keys:
        return line, []
    before, _, after = line.partition(_KEY)
    is_last = after.endswith(b"]}")
    if (is_last or _is_only_key(line, after)) and after.startswith(b":") and not before.endswith(b"\\"):
        # The last brace ends the row's object: a list that extends from the key to it is the row's last value.
        # Otherwise the list probably ends with its last responses; if not, it cannot be decoded.
        end = len(after) - 1 if is_last else after.rfind(b"]}]") + 3
        try:
            return _without_comma(before.rstrip(), after[end:].lstrip()), _answers(after[1:end])
        except msgspec.DecodeError:
            pass
    outputs = _decode_key(line).model_outputs
    if not _is_only_key(line, after):
        top = _decode_top(line)
        del top["model_outputs"]
        return msgspec.json.encode(top), _answers(outputs)
    rest = after.lstrip(b" \t\r\n:")[len(bytes(outputs)) :].lstrip()
    return _without_comma(before.rstrip(), rest), _answers(outputs)


def _is_only_key(line: bytes, after: bytes) -> bool:
    """Whether no other text in the line can be the key. (`find` takes half as long as `in`.)"""
    return after.find(_KEY) < 0 and (line.find(b"\\") < 0 or not _ESCAPED_LETTER.search(line))


def _without_comma(before: bytes, rest: bytes) -> bytes:
    if before.endswith(b","):
        return before[:-1].rstrip() + rest
    return before + rest.removeprefix(b",").lstrip()


def _answers(outputs: bytes | Raw) -> list[tuple[str, int, bytearray]]:
    return [
        (output.model_name, index, bytearray(response))
        for output in _decode_outputs(outputs)
        for index, response in enumerate(output.responses, 1)
    ]
