"""Detects an upload's encoding, shape and format from its whole content."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from datasets.core.csv_reader import header_of
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
from datasets.core.spelling import near_miss
from datasets.core.stats import Detection, Shape

MET_BYTES, MET_CHARACTERS = 200, 80
"""So much of a file's first line is shown where it is of no format."""

_JSON_START = re.compile(rb"\s*(?:[{\[#]|//|/\*)")


_QUOTED_KEYS = tuple((f'"{key}"'.encode(), f"'{key}'".encode()) for key in FORMAT_KEYS)


class _Keys(Struct):
    """Of a row only which of the format keys it has."""

    messages: Raw | UnsetType = UNSET
    model_outputs: Raw | UnsetType = UNSET
    conversation: Raw | UnsetType = UNSET

    @property
    def found(self) -> FormatKeys:
        return self.messages is not UNSET, self.model_outputs is not UNSET, self.conversation is not UNSET


_decode_keys = msgspec.json.Decoder(_Keys).decode
_decode_names = msgspec.json.Decoder(dict[str, Raw]).decode


class Votes(Counter[FormatKeys]):
    """How many rows have which of the format keys."""

    @property
    def figures(self) -> dict[str, Param]:
        """Rows in all and with each key; those with `model_outputs` only if they have messages too."""
        found = dict.fromkeys(("rows", "messages", "model_outputs", "conversation"), 0)
        for (messages, outputs, conversation), rows in self.items():
            found["rows"] += rows
            found["messages"] += rows * messages
            found["model_outputs"] += rows * (messages and outputs)
            found["conversation"] += rows * conversation
        return {**found}

    def format(self) -> Format | None:
        """The more frequent family; within `messages`, judge_only if at least half have answers."""
        _, messages, with_outputs, conversation = map(int, self.figures.values())
        if not (messages or conversation):
            return "judge_only" if self[False, True, False] else None
        if conversation > messages:
            return "legacy_jsonl"
        return "judge_only" if 2 * with_outputs >= messages else "infer_and_judge"


@dataclass(slots=True)
class Detector:
    """What one pass over the lines has seen so far.

    `failed`: some line neither continues nor begins a value; `begun`: at the first of those one was open over lines.
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
        """One more row that is an object, with these format keys."""
        self.rows += 1
        self.votes[keys] += 1

    def fresh(self) -> Splitter:
        """One that has seen nothing yet."""
        return Splitter(keep=False, unended_comment=self.splitter.unended_comment)


def guess_from_beginning(upload: Upload, forced: Format | None = None) -> Detection | None:
    """What the beginning of the upload promises, if that is JSONL of a known format."""
    if upload.other_kind():
        return None
    encoding = marked_encoding(upload.head())
    try:
        block = next(blocks(upload, encoding), None)
    except Unreadable:
        return None
    if block is None or forced == "legacy_csv" or (forced is None and _csv_header(block)):
        return None
    detector = Detector()
    for number, line in enumerate(block.lines, block.first):
        observe(number, line, detector)
    fmt = forced or detector.votes.format()
    if detector.spread or fmt is None:
        return None
    return Detection("jsonl", fmt, "", {}, encoding, _file_findings(encoding))


def confirmed(detector: Detector, guess: Detection, forced: Format | None) -> Detection | None:
    """The detection that the whole file gives, if it is of the guessed shape and format."""
    concluded = _concluded(detector, forced, guess.encoding, guess.findings)
    same = (concluded.shape, concluded.format) == (guess.shape, guess.format)
    return concluded if same else None


def detect(upload: Upload, forced: Format | None = None) -> Detection:
    """Looks through the whole upload once (twice where it is no UTF-8); never raises on content."""
    kind = upload.other_kind()
    if kind:
        return Detection("none", None, "other_kind", {}, None, (finding("file.other_kind", kind=kind),))
    encoding = encoding_of(upload)
    found = _file_findings(encoding)
    detector, is_csv = _looked(upload, encoding, forced)
    if detector.splitter.in_comment and not detector.spread and not is_csv:
        detector, is_csv = _looked(upload, encoding, forced, detector.splitter.comment_line)
    if is_csv:
        why = "csv_header" if forced is None else "forced"
        return Detection("csv", "legacy_csv", why, {}, encoding, found)
    return _concluded(detector, forced, encoding, found)


def _looked(
    upload: Upload, encoding: Encoding, forced: Format | None, unended_comment: int | None = None
) -> tuple[Detector, bool]:
    """What a pass over the lines sees until it is sure; whether it is CSV. `unended_comment`: see Splitter."""
    detector, is_csv = Detector(Splitter(keep=False, unended_comment=unended_comment)), forced == "legacy_csv"
    try:
        for block in blocks(upload, encoding):
            if not detector.rows and not is_csv:
                is_csv = forced is None and _csv_header(block)
            if is_csv or detector.spread:
                detector.rows += 1
                break
            if block.text.isspace() and not block.oversized:
                continue  # a small archive may hold hundreds of millions of blank lines
            for number, line in enumerate(block.lines, block.first):
                observe(number, line, detector)
    except Unreadable as trouble:
        detector.stopped = (trouble.found,)  # of a file with rows the reading proper says it, after those
    return detector, is_csv


def _file_findings(encoding: Encoding) -> tuple[Finding, ...]:
    if encoding not in ("utf-16", "gb18030"):
        return ()
    return (finding("file.converted", encoding=encoding.upper()),)


def _csv_header(block: Block) -> bool:
    """Whether the first line that is not blank is a CSV header of ours. Only the first block is asked."""
    first = next((line for line in block.lines if line.strip()), b"")
    if not first or _JSON_START.match(first):
        return False
    names = header_of(first.decode("utf-8", "replace"))
    return any(name.strip().lower() in ("prompt", "response") for name in names)


def observe(number: int, line: bytes, detector: Detector) -> None:
    """Takes one line into account: a row's vote, or a part of something that is spread over several lines."""
    if detector.spread:
        return
    if not detector.first and line.strip():
        detector.first_number, detector.first = number, line
    try:
        keys = _decode_keys(line)
    except UNDECODED:
        _observe_other(number, line, detector)
        return
    detector.vote(keys.found)
    if detector.splitter.active:
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
    """Tries whether this line continues, or else begins, a value that is spread over several lines."""
    text = line.decode("utf-8", "replace")
    for splitter in (detector.splitter, detector.fresh()):
        detector.splitter = splitter
        try:
            pieces = splitter.feed(number, text)
        except NotSpread:
            if (
                not detector.failed
            ):  # what fails first decides if the file began with a value over several lines
                detector.failed, detector.begun = True, _goes_on(splitter)
            continue
        ended_below = any(piece.lines > 1 for piece in pieces) or (splitter.spans_lines and not splitter.open)
        detector.spread = ended_below or (splitter.arrays > 0 and splitter.spans_lines and bool(pieces))
        if not splitter.open and not splitter.in_comment:
            detector.splitter = detector.fresh()
        return
    detector.splitter = detector.fresh()


def _goes_on(splitter: Splitter) -> bool:
    return splitter.active and splitter.spans_lines


def _begins_spread(detector: Detector) -> bool:
    """Whether the file is a value over several lines that is broken before anything of it has ended."""
    began = detector.begun if detector.failed else _goes_on(detector.splitter)
    return began and detector.votes.format() is None


def _concluded(
    detector: Detector, forced: Format | None, encoding: Encoding | None, found: tuple[Finding, ...]
) -> Detection:
    if not detector.rows or (detector.rows == 1 and b"".join(detector.first.split()) == b"[]"):
        return Detection(
            "none", None, "empty", {}, encoding, found + (detector.stopped or (finding("file.empty"),))
        )
    if detector.spread or (detector.rows == 1 and _is_one_array(detector)) or _begins_spread(detector):
        problem = finding("file.not_jsonl")
        return Detection("spread", forced, "spread", {}, encoding, (*found, problem))
    votes = detector.votes if detector.votes.format() else detector.guesses
    detected = votes.format()
    if forced is None and detected is None and (detector.votes or not detector.bracketed):
        shape: Shape = "jsonl" if detector.votes else "none"
        problem = finding("file.unknown_format", met=_beginning(detector.first), **_key_meant(detector.first))
        found += detector.stopped if shape == "none" else ()
        return Detection(shape, None, "unknown", {}, encoding, (*found, problem), detector.rows, silent=True)
    if forced:
        return Detection("jsonl", forced, "forced", {}, encoding, found)
    why = f"keys.{detected}" if detected else "unknown"
    return Detection("jsonl", detected, why, votes.figures, encoding, found)


def _key_meant(line: bytes) -> dict[str, Any]:
    """The key or column of a first line that is one of a format's misspelt, and which."""
    try:
        names: Iterable[str] = _decode_names(line)
        wanted: tuple[str, ...] = ("messages", "conversation")
    except UNDECODED:
        names, wanted = header_of(line.decode("utf-8", "replace")), ("prompt", "response")
    return next(filter(None, (near_miss(names, meant) for meant in wanted)), {})


def _beginning(line: bytes) -> str:
    """What a reader recognises the first line by; bytes that are no text are shown as such."""
    text = line[:MET_BYTES].decode("utf-8", "backslashreplace").strip()
    return "".join(sign if sign.isprintable() else f"\\x{ord(sign):02x}" for sign in text)[:MET_CHARACTERS]


def _is_one_array(detector: Detector) -> bool:
    """A single line that is an array, possibly with comments or extra commas."""
    splitter = Splitter(keep=False)
    try:
        splitter.feed(detector.first_number, detector.first.decode("utf-8", "replace"))
    except NotSpread:
        return False
    return splitter.arrays == 1 and not splitter.open
