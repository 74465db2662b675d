"""Detects an upload's encoding, shape and format from its whole content."""

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from datasets.core.csv_layout import LEGACY_DELIMITERS, CsvLayout
from datasets.core.csv_reader import layout_in
from datasets.core.csv_text import header_of
from datasets.core.decode import (
    Block,
    Encoding,
    Unreadable,
    Upload,
    blocks,
    encoding_of,
    marked_encoding,
)
from datasets.core.findings import Finding, Param, finding
from datasets.core.formats import FORMAT_KEYS, Format, FormatKeys
from datasets.core.pretty_json import NotSpread, Splitter
from datasets.core.rows import UNDECODED, is_json
from datasets.core.spelling import misspelt_top_keys, near_miss
from datasets.core.stats import Detection, Shape

MET_BYTES, MET_CHARACTERS = 200, 80
"""How much of the first line is shown if the file has no known format."""

_JSON_START = re.compile(rb"\s*(?:[{\[#]|//|/\*)")


_QUOTED_KEYS = tuple((f'"{key}"'.encode(), f"'{key}'".encode()) for key in FORMAT_KEYS)


class _Keys(Struct):
    """Decodes only whether a row has each of the format keys."""

    messages: Raw | UnsetType = UNSET
    model_outputs: Raw | UnsetType = UNSET
    conversation: Raw | UnsetType = UNSET

    @property
    def present(self) -> FormatKeys:
        return self.messages is not UNSET, self.model_outputs is not UNSET, self.conversation is not UNSET


_decode_keys = msgspec.json.Decoder(_Keys).decode


class Votes(Counter[FormatKeys]):
    """Number of rows for each combination of format keys."""

    @property
    def figures(self) -> dict[str, Param]:
        """Number of rows in total and with each key; `model_outputs` counts only together with messages."""
        counts = dict.fromkeys(("rows", "messages", "model_outputs", "conversation"), 0)
        for (messages, outputs, conversation), rows in self.items():
            counts["rows"] += rows
            counts["messages"] += rows * messages
            counts["model_outputs"] += rows * (messages and outputs)
            counts["conversation"] += rows * conversation
        return {**counts}

    def format(self) -> Format | None:
        """The most frequent format family; within `messages`, judge_only if at least half have answers."""
        _, messages, with_outputs, conversation = map(int, self.figures.values())
        if not (messages or conversation):
            return "judge_only" if self[False, True, False] else None
        if conversation > messages:
            return "legacy_jsonl"
        return "judge_only" if 2 * with_outputs >= messages else "infer_and_judge"


@dataclass(slots=True)
class Detector:
    """State of one detection pass over the lines.

    `failed`: some line neither continues nor starts a value; `begun`: a value over several lines was open at the first
    such line.
    """

    splitter: Splitter = field(default_factory=lambda: Splitter(keep=False))
    rows: int = 0
    votes: Votes = field(default_factory=Votes)
    guesses: Votes = field(default_factory=Votes)
    bracketed: bool = False
    first: bytes = b""
    first_number: int = 0
    spread: bool = False
    failed: bool = False
    begun: bool = False
    stopped: tuple[Finding, ...] = ()

    def vote(self, keys: FormatKeys) -> None:
        """Count one more row that is an object, with these format keys."""
        self.rows += 1
        self.votes[keys] += 1

    def fresh(self) -> Splitter:
        """A splitter in its initial state."""
        return Splitter(keep=False, unended_comment=self.splitter.unended_comment)


def guess_from_beginning(upload: Upload, forced: Format | None = None) -> Detection | None:
    """Detect from the first block, if it is JSONL of a known format; else None."""
    if upload.other_kind():
        return None
    encoding = marked_encoding(upload.head())
    try:
        block = next(blocks(upload, encoding), None)
    except Unreadable:
        return None
    if block is None or forced == "legacy_csv" or (forced is None and _csv_layout(block)):
        return None
    detector = Detector()
    for number, line in enumerate(block.lines, block.first):
        observe(number, line, detector)
    fmt = forced or detector.votes.format()
    if detector.spread or fmt is None:
        return None
    return Detection("jsonl", fmt, "", {}, encoding, _file_findings(encoding))


def confirmed(detector: Detector, guess: Detection, forced: Format | None) -> Detection | None:
    """The detection for the whole file if it confirms the guessed shape and format, else None."""
    concluded = _concluded(detector, forced, guess.encoding, guess.findings)
    same = (concluded.shape, concluded.format) == (guess.shape, guess.format)
    return concluded if same else None


def detect(upload: Upload, forced: Format | None = None) -> Detection:
    """Detect in one pass over the upload (two if it is not UTF-8); never raises on content."""
    kind = upload.other_kind()
    if kind:
        return Detection("none", None, "other_kind", {}, None, (finding("file.other_kind", kind=kind),))
    encoding = encoding_of(upload)
    findings = _file_findings(encoding)
    detector, layout = _scanned(upload, encoding, forced)
    if detector.splitter.in_comment and not detector.spread and not layout:
        detector, layout = _scanned(upload, encoding, forced, detector.splitter.comment_line)
    if layout:
        why = "csv_header" if forced is None else "forced"
        return Detection("csv", "legacy_csv", why, {}, encoding, findings, layout=layout)
    return _concluded(detector, forced, encoding, findings)


def _scanned(
    upload: Upload, encoding: Encoding, forced: Format | None, unended_comment: int | None = None
) -> tuple[Detector, CsvLayout | None]:
    """Scan the lines until the result is certain; also return the layout of a CSV. `unended_comment`: see Splitter."""
    detector = Detector(Splitter(keep=False, unended_comment=unended_comment))
    layout = CsvLayout() if forced == "legacy_csv" else None
    try:
        for block in blocks(upload, encoding):
            if block.text.isspace() and not block.oversized:
                continue  # a small archive may contain hundreds of millions of blank lines
            if not detector.rows and forced in (None, "legacy_csv"):
                layout = _csv_layout(block) or layout
            if layout or detector.spread:
                detector.rows += 1
                break
            for number, line in enumerate(block.lines, block.first):
                observe(number, line, detector)
    except Unreadable as error:
        detector.stopped = (error.finding,)  # if the file has rows, the reader reports this after them
    return detector, layout


def _file_findings(encoding: Encoding) -> tuple[Finding, ...]:
    if encoding not in ("utf-16", "gb18030"):
        return ()
    return (finding("file.converted", encoding=encoding.upper()),)


def _csv_layout(block: Block) -> CsvLayout | None:
    """The layout of a CSV in our format. Looks only at the first lines of the file's first block."""
    first = next((line for line in block.lines if line.strip()), b"")
    return None if _JSON_START.match(first) else layout_in(block)


def observe(number: int, line: bytes, detector: Detector) -> None:
    """Process one line: a row's vote, or a part of a value spread over several lines."""
    if detector.spread:
        return
    if not detector.first and line.strip():
        detector.first_number, detector.first = number, line
    try:
        keys = _decode_keys(line)
    except UNDECODED:
        _observe_other(number, line, detector)
        return
    detector.vote(keys.present)
    if detector.splitter.open:
        _feed(number, line, detector)


def _observe_other(number: int, line: bytes, detector: Detector) -> None:
    if not line.strip():
        return
    detector.rows += 1
    detector.bracketed = detector.bracketed or (line.lstrip()[:1] in (b"{", b"[") and not is_json(line))
    if line.lstrip().startswith(b"{"):
        messages, outputs, conversation = (any(name in line for name in quoted) for quoted in _QUOTED_KEYS)
        detector.guesses[messages, outputs, conversation] += 1
    _feed(number, line, detector)


def _feed(number: int, line: bytes, detector: Detector) -> None:
    """Feed the line as the continuation, or else the start, of a value spread over several lines."""
    text = line.decode("utf-8", "replace")
    for splitter in (detector.splitter, detector.fresh()):
        detector.splitter = splitter
        try:
            pieces = list(splitter.feed(number, text))
        except NotSpread:
            if (
                not detector.failed
            ):  # the first failure decides whether the file starts with a multi-line value
                detector.failed, detector.begun = True, _goes_on(splitter)
            continue
        ended_below = any(piece.lines > 1 for piece in pieces) or (splitter.spans_lines and not splitter.open)
        detector.spread = ended_below or (splitter.arrays > 0 and splitter.spans_lines and bool(pieces))
        if not splitter.open and not splitter.in_comment:
            detector.splitter = detector.fresh()
        return
    detector.splitter = detector.fresh()


def _goes_on(splitter: Splitter) -> bool:
    return bool(splitter.open) and splitter.spans_lines


def _begins_spread(detector: Detector) -> bool:
    """Whether the file is a value over several lines that breaks before any part of it ends."""
    began = detector.begun if detector.failed else _goes_on(detector.splitter)
    return began and detector.votes.format() is None


def _concluded(
    detector: Detector, forced: Format | None, encoding: Encoding | None, findings: tuple[Finding, ...]
) -> Detection:
    if not detector.rows or (detector.rows == 1 and b"".join(detector.first.split()) == b"[]"):
        return Detection(
            "none", None, "empty", {}, encoding, findings + (detector.stopped or (finding("file.empty"),))
        )
    if detector.spread or (detector.rows == 1 and _is_one_array(detector)) or _begins_spread(detector):
        problem = finding("file.not_jsonl")
        return Detection("spread", forced, "spread", {}, encoding, (*findings, problem))
    votes = detector.votes if detector.votes.format() else detector.guesses
    detected = votes.format()
    if forced is None and detected is None and (detector.votes or not detector.bracketed):
        shape: Shape = "jsonl" if detector.votes else "none"
        problem = _unknown_format(detector.first)
        findings += detector.stopped if shape == "none" else ()
        return Detection(
            shape, None, "unknown", {}, encoding, (*findings, problem), detector.rows, silent=True
        )
    if forced:
        return Detection("jsonl", forced, "forced", {}, encoding, findings)
    why = f"keys.{detected}" if detected else "unknown"
    return Detection("jsonl", detected, why, votes.figures, encoding, findings)


def misspells_format(row: Any) -> bool:
    """Whether an object has a list under a misspelt “messages” or “conversation”."""
    return isinstance(row, dict) and any(
        meant in ("messages", "conversation") and isinstance(row[key], list)
        for key, meant in misspelt_top_keys(row).items()
    )


_decode_row = msgspec.json.Decoder(dict[str, Any]).decode


def _unknown_format(line: bytes) -> Finding:
    """The finding with the key or column that the first line seems to misspell, if any."""
    repair = None
    try:
        row = _decode_row(line)
        names, wanted = list(row), ["messages", "conversation"]
        repair = "rename_key" if misspelt_top_keys(row) else None
    except UNDECODED:
        text = line.decode("utf-8", "replace")
        names = max((header_of(text, delimiter) for delimiter in LEGACY_DELIMITERS), key=lambda row: len(row))
        wanted = ["prompt", "response"]
    near = next(filter(None, (near_miss(names, meant) for meant in wanted)), {})
    return finding("file.unknown_format", repair=repair, met=_beginning(line), **near)


def _beginning(line: bytes) -> str:
    """The start of the first line for display; undecodable bytes are escaped."""
    text = line[:MET_BYTES].decode("utf-8", "backslashreplace").strip()
    return "".join(sign if sign.isprintable() else f"\\x{ord(sign):02x}" for sign in text)[:MET_CHARACTERS]


def _is_one_array(detector: Detector) -> bool:
    """Whether the file's single line is an array, possibly with comments or extra commas."""
    splitter = Splitter(keep=False)
    try:
        list(splitter.feed(detector.first_number, detector.first.decode("utf-8", "replace")))
    except NotSpread:
        return False
    return splitter.arrays == 1 and not splitter.open
