"""JSON lines as plain values: proven to be sound, or explained.

msgspec drops the first of two equal keys, and accepts NULs, very deep nesting and integers beyond a double. A row that
has as many colons as its values written anew lost no key: the same texts hold the same colons, and every key one more.
"""

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from datasets.core.decode import Block
from datasets.core.findings import Finding, finding
from datasets.core.formats import Format
from datasets.core.json_errors import MAX_DEPTH, JsonProblem, flaws, is_too_deep, parse
from datasets.core.limits import holds_more_values
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


def is_json(line: bytes) -> bool:
    """Whether a decoder takes a line, whatever its values are."""
    try:
        msgspec.json.decode(line, type=msgspec.Raw)
    except UNDECODED:
        return False
    return True


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
        found.add(flaw.code, flaw.path, column=flaw.column, name=flaw.name)
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
