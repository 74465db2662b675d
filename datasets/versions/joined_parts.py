"""Joins several files that are parts of one data set into a UTF-8 stream, and maps its lines to the files.

Memory does not grow with the files.
"""

import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, takewhile
from typing import Literal

from datasets.core.csv_reader import header_table
from datasets.core.csv_text import NEVER, open_quote
from datasets.core.decode import Encoding, Unreadable, Upload, blocks, encoding_of, utf8_chunks
from datasets.core.findings import Finding, Param, finding
from datasets.core.formats import Format

Family = Literal["messages", "conversation", "json", "csv", "empty"]
"""JSONL by its format key, or `json` if the first lines have none."""

Reason = Literal["format", "family", "columns", "quote", "unreadable", "too_large"]

_JSON_START = re.compile(rb"\s*(?:[{\[#]|//|/\*)")
_SHARD_WORD = re.compile(r"(?<=.)[-_. (]+(part|shard|chunk|split)$", re.IGNORECASE)


class Misfit(Exception):
    """A file that cannot be joined to those before it. `finding` is set if it cannot be read."""

    def __init__(self, name: str, reason: Reason, finding: Finding | None = None, **params: Param) -> None:
        super().__init__(f"{name}: {reason}")
        self.name, self.reason, self.finding, self.params = name, reason, finding, params


@contextmanager
def _readable(name: str) -> Iterator[None]:
    """Raise Misfit if the file cannot be read."""
    try:
        yield
    except Unreadable as error:
        raise Misfit(name, "unreadable", error.finding) from None


@dataclass(frozen=True, slots=True)
class PartSource:
    """A part with its display name."""

    name: str
    upload: Upload


@dataclass(frozen=True, slots=True)
class PartHead:
    """Properties of a part from its beginning; `header` is the number of lines up to the end of a CSV header."""

    family: Family
    encoding: Encoding
    columns: tuple[str, ...] = ()
    header: int = 0
    delimiter: str = ","


@dataclass(frozen=True, slots=True)
class Placed:
    """A part's first line in the joined file, and the number of the part's own lines skipped before it."""

    first_line: int
    skipped: int
    encoding: Encoding


@dataclass(slots=True)
class Joining:
    """Compatible parts. Iterate to get the joined bytes; `placed` is complete afterwards."""

    sources: Sequence[PartSource]
    heads: Sequence[PartHead]
    most: int
    placed: list[Placed] = field(default_factory=list)

    @property
    def is_csv(self) -> bool:
        return any(head.family == "csv" for head in self.heads)

    def __iter__(self) -> Iterator[bytes]:
        """Yield the bytes; every part ends with a line end. Raises Misfit."""
        self.placed.clear()
        line, left, header_seen = 1, self.most, False
        for source, head in zip(self.sources, self.heads, strict=True):
            skip = head.header if header_seen else 0
            header_seen = header_seen or head.family == "csv"
            self.placed.append(Placed(line, skip, head.encoding))
            with _readable(source.name):
                chunks = utf8_chunks(source.upload, head.encoding)
                for chunk in _ended(_without_lines(chunks, skip)):
                    line += chunk.count(b"\n")
                    left -= len(chunk)
                    if left < 0:
                        raise Misfit(source.name, "too_large", limit=self.most)
                    yield chunk


def fit_together(sources: Sequence[PartSource], most: int, forced: Format | None = None) -> Joining:
    """The parts, ready to be joined into at most `most` bytes. Raises Misfit for the first incompatible part."""
    heads: list[PartHead] = []
    first: tuple[str, PartHead] | None = None
    for source in sources:
        head = _read_head(source, forced)
        heads.append(head)
        if head.family == "empty":
            continue
        if first is not None:
            _check(source.name, head, *first)
        if first is None or first[1].family == "json":
            first = source.name, head
    for source, head in zip(sources[:-1], heads, strict=False):
        if head.family == "csv":
            _check_quotes(source, head)
    return Joining(sources, heads, most)


def _check(name: str, head: PartHead, first: str, expected: PartHead) -> None:
    """Raise Misfit if a part is not compatible with the first one."""
    if (head.family == "csv") != (expected.family == "csv"):
        raise Misfit(name, "format", first=first, met=head.family)
    if (head.columns, head.delimiter) != (expected.columns, expected.delimiter):
        met, wanted = (f"{part.delimiter} ".join(part.columns) for part in (head, expected))
        raise Misfit(name, "columns", first=first, met=met, wanted=wanted)
    if head.family != expected.family and "json" not in (head.family, expected.family):
        raise Misfit(name, "family", first=first, met=head.family, wanted=expected.family)


def _read_head(source: PartSource, forced: Format | None) -> PartHead:
    if kind := source.upload.other_kind():
        raise Misfit(source.name, "unreadable", finding("file.other_kind", kind=kind))
    encoding = encoding_of(source.upload)
    with _readable(source.name):
        return _look(source, encoding, forced)


def _look(source: PartSource, encoding: Encoding, forced: Format | None) -> PartHead:
    all_blocks = blocks(source.upload, encoding)
    for block in all_blocks:
        first = next((line for line in block.lines if line.strip()), None)
        if first is None:
            continue
        is_json = forced != "legacy_csv" if forced else _JSON_START.match(first)
        if is_json:
            return PartHead(_family(block.lines), encoding)
        header, table = header_table(chain([block], all_blocks), source.upload.limits)
        columns = tuple(name.lower() for name in table.names)
        return PartHead("csv", encoding, columns, header.line + header.more, table.delimiter)
    return PartHead("empty", encoding)


def _family(lines: Sequence[bytes]) -> Family:
    """The family by the first line that has a format key."""
    for line in lines:
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(row, dict):
            if "messages" in row:
                return "messages"
            if "conversation" in row:
                return "conversation"
    return "json"


def _check_quotes(source: PartSource, head: PartHead) -> None:
    """Raise Misfit for an unclosed quote, which would swallow the rows of the next part."""
    opened = 0
    with _readable(source.name):
        for block in blocks(source.upload, head.encoding):
            for number, line in enumerate(block.lines, block.first):
                if number in block.oversized or b'"' not in line:
                    continue
                still = open_quote(line.decode("utf-8", "replace"), opened > 0, head.delimiter)
                if still == NEVER:
                    raise Misfit(source.name, "quote", line=opened)
                opened = 0 if still is None else number if still >= 0 else opened
    if opened:
        raise Misfit(source.name, "quote", line=opened)


def _without_lines(chunks: Iterator[bytes], skip: int) -> Iterator[bytes]:
    """Skip the first `skip` lines."""
    for chunk in chunks:
        start = 0
        while skip and start < len(chunk):
            end = chunk.find(b"\n", start) + 1
            start = end or len(chunk)
            skip -= bool(end)
        if start < len(chunk):
            yield chunk[start:]


def _ended(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Add a line end after the last line if it is missing."""
    last = b"\n"
    for chunk in chunks:
        if chunk:
            yield chunk
            last = chunk[-1:]
    if last != b"\n":
        yield b"\n"


def place_of(line: int, placed: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Map a line to (index of its part, line in the part); `placed`: (first_line, skipped) of each part."""
    index = max(bisect_right([first for first, _skipped in placed], line) - 1, 0)
    first, skipped = placed[index]
    return index, line - first + 1 + skipped


def natural_key(name: str) -> list[tuple[int, int, str]]:
    """Sort key for natural order: part-2 before part-10."""
    pieces = re.findall(r"[0-9]+|[^0-9]+", name.casefold())
    return [(0, int(piece), "") if piece[0] in "0123456789" else (1, 0, piece) for piece in pieces]


def common_name(stems: Sequence[str]) -> str:
    """The common prefix of the parts' names (without file extensions), or ''."""
    pairs = zip(min(stems), max(stems), strict=False)  # the prefix of these two is common to all
    common = "".join(character for character, _other in takewhile(lambda pair: pair[0] == pair[1], pairs))
    if any(stem[len(common) : len(common) + 1].isdigit() for stem in stems):
        common = common.rstrip("0123456789")  # part of a number is not a name
    if len(common) == len(stems[0]) and all(stem == stems[0] for stem in stems):
        return common
    common = common.rstrip("-_. (#")
    return _SHARD_WORD.sub("", common)
