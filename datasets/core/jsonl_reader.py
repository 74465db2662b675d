"""The lines of an upload of JSON: each a row that is examined, or together objects that are only described."""

from collections import Counter
from collections.abc import Generator, Iterator
from typing import Any

from datasets.core.csv_reader import broken_byte
from datasets.core.decode import Block, Unreadable
from datasets.core.detect import Detector, Votes, observe, vote_on
from datasets.core.findings import Finding, finding
from datasets.core.formats import Telling
from datasets.core.limits import holds_more_values
from datasets.core.pretty_json import Broken, Objects, Passed, Piece
from datasets.core.read_state import ReadState
from datasets.core.row_decoder import decoded, explain, not_utf8
from datasets.core.rows import NewRow, Part, RawRow, cut
from datasets.core.rules import RowFindings, check_row


class Surprise(Exception):
    """The upload is not what its beginning promised."""


class JsonlReader:
    """Examines lines. With a `watch` it also takes the votes on the upload's format as it goes.

    Only where it is to `keep` rows are they handed out.
    """

    def __init__(self, state: ReadState, watch: Detector | None = None, *, keep: bool = False) -> None:
        self._state = state
        self._watch = watch
        self._keep = keep
        self._votes = Counter[Telling]()
        # Reused while it is empty: nearly all rows have no findings, and a new one for each would cost a tenth.
        self._nothing = RowFindings(state.log.full)

    def through(self, blocks: Iterator[Block]) -> Generator[Part, None, Finding | None]:
        """Takes all blocks and gives each one's rows; what stopped it before their end.

        Raises Surprise, only with a watch.
        """
        stopped = None
        kept: list[NewRow] = []
        try:
            for block in blocks:
                kept += self._rows(block)
                yield kept, len(block.text)
                kept = []
        except Unreadable as trouble:
            stopped = trouble.found
        if self._watch:
            self._watch.vote(self._votes)
        yield kept, 0
        return stopped

    def _rows(self, block: Block) -> Iterator[NewRow]:
        if block.text.isspace() and not block.oversized:
            return
        crowded = self._crowded_lines(block)
        lines = ((*numbered, None) for numbered in enumerate(block.lines, block.first))
        for number, line, row in lines if crowded or block.oversized else decoded(block):
            if row is not None:
                valid = self._json_row(number, line, row)
            elif line.strip() or number in block.oversized:
                valid = self._other_line(
                    number, line, oversized=number in block.oversized, crowded=number in crowded
                )
            else:
                continue
            if self._keep:
                yield self._kept(number, valid, line, row)

    def _crowded_lines(self, block: Block) -> frozenset[int]:
        """The numbers of lines that hold more values than a row may."""
        most = self._state.limits.row_values
        if len(block.text) < most:
            return frozenset()
        lines = enumerate(block.lines, block.first)
        return frozenset(number for number, line in lines if holds_more_values(line, most))

    def _kept(self, number: int, valid: bool, line: bytes, row: dict[str, Any] | None) -> NewRow:
        if valid and self._state.format == "judge_only":
            return NewRow(number, True, *cut(line, list(row or ())))
        return NewRow(number, True, line.strip()) if valid else RawRow(number, False, line, line).kept

    def _json_row(self, number: int, line: bytes, row: dict[str, Any]) -> bool:
        """A row that is JSON without a flaw. While a value may be open over lines, it matters to that question."""
        state = self._state
        found = self._nothing
        if state.format:
            check_row(row, state.format, found)
        valid = state.count(not found.counts or found.valid)
        shape = state.stats.add(number, row)
        if self._watch and self._watch.splitter.active:
            self._observe(number, line)
        else:
            self._votes[shape.telling] += 1
        if found.counts:
            state.note(number, line, found)
            self._nothing = RowFindings(state.log.full)
        return valid

    def _observe(self, number: int, line: bytes) -> None:
        if self._watch:
            observe(number, line, self._watch)
            if self._watch.spread:
                raise Surprise

    def _other_line(self, number: int, line: bytes, *, oversized: bool, crowded: bool) -> bool:
        """A line that is no row, or one with a flaw."""
        state = self._state
        broken = None if oversized else broken_byte(line)
        if self._watch and (oversized or broken) and state.detection.encoding != "utf-16":
            raise Surprise  # it may not be UTF-8; a cut row does not say
        self._observe(number, line)
        found, row = RowFindings(), None
        if oversized:
            found.put(state.too_large(number))
        elif crowded:
            found.put(state.too_many_values(number))
        elif broken:
            found.put(not_utf8(number, broken))
        else:
            found, row = explain(line.decode(), state.format)
        valid = state.count(found.valid)
        if row is not None:
            state.stats.add(number, row)
        state.note(number, line, found)
        return valid


def describe_pretty(blocks: Iterator[Block], state: ReadState, unended_comment: int | None) -> None:
    """Counts and describes objects that are spread over lines; none of them is a row yet.

    Raises Unreadable and UnendedComment.
    """
    objects, votes = Objects(state.limits.row_bytes, unended_comment), Votes()
    last = (0, "")  # line with anything on it
    try:
        for number, line in _lines(blocks, state):
            last = (number, line) if line.strip() else last
            for found in objects.feed(number, line):
                _describe(found, votes, state)
            if objects.too_large:
                raise Unreadable(state.too_large(objects.start))
        for found in objects.end(*last):
            _describe(found, votes, state)
    finally:
        state.format = state.format or votes.format()


def _lines(blocks: Iterator[Block], state: ReadState) -> Iterator[tuple[int, str]]:
    """All lines; where the file cannot be read to its end, the last one may be cut and is left out."""
    held: tuple[int, str] | None = None
    for block in blocks:
        for number, raw in enumerate(block.lines, block.first):
            text = raw.decode("utf-8", "replace")
            broken = broken_byte(raw) if "\ufffd" in text else None
            if broken:
                state.log.add(not_utf8(number, broken))
            if held:
                yield held
            held = (number, text)
    if held:
        yield held


def _describe(found: Piece | Broken | Passed, votes: Votes, state: ReadState) -> None:
    if isinstance(found, Broken):
        _describe_broken(found, votes, state)
    elif isinstance(found, Piece):
        _describe_whole(found, votes, state)


def _describe_broken(broken: Broken, votes: Votes, state: ReadState) -> None:
    """The object that breaks off is one more; what was read of it tells the format where nothing else does."""
    params: dict[str, Any] = {"reason": "spread", "met": broken.met, "wanted": broken.wanted}
    if broken.met == "/*":
        params |= {"reason": "unended_comment", "wanted": "*/"}
    elif broken.unended is not None:
        params |= {"reason": "unended" if broken.met else "never_ends", "begun": broken.unended}
    state.log.add(finding("json.invalid", line=broken.line, column=broken.column, **params))
    if broken.begun:
        state.count(valid=False)
        if votes.format() is None:
            text = broken.begun
            votes.add('"messages"' in text, '"model_outputs"' in text, '"conversation"' in text)


def _describe_whole(piece: Piece, votes: Votes, state: ReadState) -> None:
    if holds_more_values(piece.text.encode("utf-8", "surrogatepass"), state.limits.row_values):
        state.count(valid=False)
        state.log.add(state.too_many_values(piece.line))
        return
    state.count(valid=False)
    vote_on(piece.text, votes)
    row = explain(piece.text, None)[1]
    if row is not None:
        state.stats.add(piece.line, row)
