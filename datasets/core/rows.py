"""One row of an upload: its plain values, proven to be sound or explained, and the pieces in which it is kept.

msgspec drops the first of two equal keys, and accepts NULs, very deep nesting and integers beyond a double. A row that
has as many colons as its values rewritten lost no key: the same texts hold the same colons, and every key one more.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from datasets.core.decode import Block
from datasets.core.findings import Finding, broken_byte, finding, not_utf8, too_large, too_many_values
from datasets.core.formats import Format
from datasets.core.json_errors import MAX_DEPTH, JsonProblem, flaws, is_too_deep, parse
from datasets.core.limits import Limits, holds_more_values
from datasets.core.repair.python_literal import as_json
from datasets.core.rules import RowFindings, check_row, placed

UNDECODED = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_decode = msgspec.json.Decoder().decode
_encode_into = msgspec.json.Encoder().encode_into
_ODD_ESCAPE = re.compile(rb"\\u00(?:00|3[aA])")  # a NUL; a colon that is not counted
_LONG_NUMBER = re.compile(rb"[0-9]{300}")
_STRIDE = 100  # three hundred digits cover three of these places in a row
_DIGITS = re.compile(rb"[0-9]{3}")
_REPAIRS = {"comment": "strip_comments", "trailing_comma": "strip_trailing_commas"}


def decoded(block: Block, most: int) -> Iterator[tuple[int, bytes, dict[str, Any] | None]]:
    """(number, line, row) of a block's lines; the row is None unless the line is an object without a flaw.

    A line that is cut, or holds more than `most` values, is not looked at.
    """
    # Used for every row, as a new one each costs time.
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
        if is_odd or type(row) is not dict or line.count(b":") != written.count(b":"):
            row = None
        elif len(line) > 2 * MAX_DEPTH and line.count(b"[") + line.count(b"{") > MAX_DEPTH:
            row = None if is_too_deep(line.decode()) else row
        yield number, line, row


def refusal(number: int, line: bytes, limits: Limits, *, oversized: bool) -> Finding | None:
    """Why a line is not looked at, if it is not."""
    if oversized:
        return too_large(number, limits)
    if holds_more_values(line, limits.row_values):
        return too_many_values(number, limits)
    broken = broken_byte(line)
    return not_utf8(number, broken) if broken else None


def is_json(line: bytes) -> bool:
    """Whether a decoder takes a line, whatever its values are."""
    try:
        msgspec.json.decode(line, type=msgspec.Raw)
    except UNDECODED:
        return False
    return True


def object_in(text: bytes | str) -> dict[str, Any] | None:
    """The values of an object, without a look at its flaws; None of anything else."""
    try:
        row = msgspec.json.decode(text)
    except UNDECODED:
        return None
    return row if isinstance(row, dict) else None


def explain(text: str, fmt: Format | None) -> tuple[RowFindings, dict[str, Any] | None]:
    """What is wrong with a line, and its values if it is an object; `fmt` None: only JSON is looked at."""
    found = RowFindings()
    try:
        root = parse(text)
    except JsonProblem as problem:
        found.put(invalid_json(None, problem, text))
        return found, None
    if root.type != "object":
        found.add("json.not_object", None, column=root.column, met=root.type)
        return found, None
    for flaw in flaws(text, root):
        found.put(flaw)
    row = root.plain()
    if fmt:
        check_row(row, fmt, found)
    return found, row


def invalid_json(line: int | None, problem: JsonProblem, text: str = "") -> Finding:
    """`text` is the whole line, if it is one that can be repaired."""
    repair = _REPAIRS.get(problem.reason) or ("python_literal" if as_json(text) else None)
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
    """Everything found in one line of a JSONL upload, in its place."""
    return list(placed(explain(text, fmt)[0].found, number, text))


class _Outputs(Struct):
    model_outputs: Raw | UnsetType = UNSET


class _ModelAnswers(Struct):
    model_name: str
    responses: list[Raw]


Answers = tuple[tuple[str, int, str], ...]
Pieces = tuple[bytes, list[tuple[str, int, bytes]]]

_KEY = b'"model_outputs"'
_ESCAPED_LETTER = re.compile(rb"\\u00[567]")  # of the key, maybe; none that is no ASCII
_decode_top = msgspec.json.Decoder(dict[str, Raw]).decode
_decode_key = msgspec.json.Decoder(_Outputs).decode
_decode_outputs = msgspec.json.Decoder(list[_ModelAnswers]).decode


class NewRow(Struct, frozen=True, gc=False):
    """A row as it is kept: of a valid one JSON without its answers, of a bad one the text that was met, all in UTF-8.

    `answers` are (model name, number from 1 within row and model, JSON).
    """

    line: int
    valid: bool
    raw: bytes
    answers: Sequence[tuple[str, int, bytes]] = ()


Part = tuple[list[NewRow], int]
"""Some rows, and how many bytes of the upload they were made of."""


class RawRow(Struct, frozen=True, gc=False):
    """One row as it is in the upload: `source` is its bytes in UTF-8, `json` the same unless it was CSV."""

    line: int
    valid: bool
    source: bytes
    json: bytes

    @property
    def raw(self) -> str:
        """The upload's own text of the row (of an oversized one only the beginning)."""
        return self.source.decode("utf-8", "replace")

    @property
    def data(self) -> str:
        """JSON of the row without `model_outputs`, custom fields byte for byte; '' of a row with errors."""
        return self.kept.raw.decode() if self.valid else ""

    @property
    def responses(self) -> Answers:
        """(model name, index from 1, JSON of the response) of every uploaded answer; () of a row with errors."""
        return tuple((model, index, raw.decode()) for model, index, raw in self.kept.answers)

    @property
    def kept(self) -> NewRow:
        """The row as it is kept. A CSV's `model_outputs` holds no answers."""
        if not self.valid:
            return bad_row(self.line, self.source)
        return NewRow(self.line, True, *(cut(self.json) if self.json is self.source else (self.json, ())))


def bad_row(line: int, source: bytes) -> NewRow:
    """A row with errors as it is kept: a text that is stored holds no NUL."""
    text = source.decode("utf-8", "replace").replace("\0", "\N{REPLACEMENT CHARACTER}")
    return NewRow(line, False, text.encode())


def cut(line: bytes) -> Pieces:
    """A valid row's JSON without its answers, and these, wherever they are in it.

    Its top is rewritten where the key's place is not beyond doubt; every value stays as it was spelt.
    """
    line = line.strip()
    if _KEY not in line and not _ESCAPED_LETTER.search(line):
        return line, []
    before, _, after = line.partition(_KEY)
    if after.endswith(b"]}") and after.startswith(b":"):
        # The last brace ends the row's own object: a list that fills all from the key to it is the row's last value.
        try:
            return _without_comma(before.rstrip(), b"}"), _answers(after[1:-1])
        except msgspec.DecodeError:
            pass
    outputs = _decode_key(line).model_outputs
    if outputs is UNSET:
        return line, []
    if _KEY in after or _ESCAPED_LETTER.search(line):
        top = _decode_top(line)
        del top["model_outputs"]
        return msgspec.json.encode(top), _answers(outputs)
    rest = after.lstrip(b" \t\r\n:")[len(bytes(outputs)) :].lstrip()
    return _without_comma(before.rstrip(), rest), _answers(outputs)


def _without_comma(before: bytes, rest: bytes) -> bytes:
    if before.endswith(b","):
        return before[:-1].rstrip() + rest
    return before + rest.removeprefix(b",").lstrip()


def _answers(outputs: bytes | Raw) -> list[tuple[str, int, bytes]]:
    return [
        (output.model_name, index, bytes(response))
        for output in _decode_outputs(outputs)
        for index, response in enumerate(output.responses, 1)
    ]
