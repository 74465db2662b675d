"""The lines of an upload of JSON: each a row that is examined, or together objects that are only described."""

from collections.abc import Iterable, Iterator
from typing import Any

from datasets.core.decode import Block, Unreadable
from datasets.core.detect import Detection, Detector, Votes, observe
from datasets.core.findings import Finding, FindingLog, broken_byte, finding, not_utf8, too_many_values
from datasets.core.formats import FORMAT_KEYS, format_keys
from datasets.core.limits import Limits, holds_more_values
from datasets.core.pretty_json import Broken, PrintedValue, objects_in
from datasets.core.rows import NewRow, Part, bad_row, cut, decoded, explain, refusal
from datasets.core.rules import RowFindings, check_row, placed
from datasets.core.stats import Stats


class ReadState:
    """What is known of an upload while it is read; `valid` holds 1 or 0 for each row, in the order of the file."""

    def __init__(self, detection: Detection, limits: Limits, kept_per_code: int) -> None:
        self.detection = detection
        self.limits = limits
        self._kept_per_code = kept_per_code
        self.begin()

    def begin(self) -> None:
        """From the first row, also once more."""
        self.format = self.detection.format
        self.log = FindingLog(self._kept_per_code)
        self.stats = Stats()
        self.valid = bytearray()
        self.valid_rows = 0
        self.stopped_by = ""
        self.log.add_all(self.detection.findings)

    @property
    def rows(self) -> int:
        return len(self.valid) or self.detection.rows

    def count(self, valid: bool) -> bool:
        """One more row, and whether it can be used; raises Unreadable if that is one too many."""
        if len(self.valid) >= self.limits.rows:
            raise Unreadable(finding("file.too_many_rows", limit=self.limits.rows))
        usable = valid and self.format is not None
        self.valid.append(usable)
        self.valid_rows += usable
        return usable

    def note(self, line: int, source: bytes, found: RowFindings, *, sound: bool) -> None:
        """Counts what was found in a row; what is kept is placed in its text."""
        if self.detection.silent:
            return
        for code, number in found.counts.items():
            self.log.count(code, number, line)
        wanted = [one for one in found.found if self.log.is_kept(one)]
        text = source.decode("utf-8", "replace") if wanted else ""
        for one in placed(wanted, line, text, sound=sound):
            self.log.keep(one)

    def note_all(self, found: Iterable[Finding]) -> None:
        """The same of findings that have their line."""
        if not self.detection.silent:
            self.log.add_all(found)


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
        self._votes = Votes()
        # Reused while it is empty: nearly all rows have no findings, and a new one for each would cost a tenth.
        self._nothing = RowFindings(state.log.full)

    def through(self, blocks: Iterator[Block]) -> Iterator[Part]:
        """Takes all blocks and gives each one's rows.

        Raises Unreadable after the rows that could be read; with a watch also Surprise.
        """
        stopped: Unreadable | None = None
        kept: list[NewRow] = []
        try:
            for block in blocks:
                is_blank = block.text.isspace() and not block.oversized
                for number, line, row in () if is_blank else decoded(block, self._state.limits.row_values):
                    if row is not None:
                        valid = self._json_row(number, line, row)
                    elif line.strip() or number in block.oversized:
                        valid = self._other_line(number, line, oversized=number in block.oversized)
                    else:
                        continue
                    if self._keep:
                        kept.append(NewRow(number, True, *cut(line)) if valid else bad_row(number, line))
                yield kept, len(block.text)
                kept = []
        except Unreadable as trouble:
            stopped = trouble
        if self._watch:
            self._watch.rows += self._votes.total()
            self._watch.votes.update(self._votes)
        yield kept, 0
        if stopped:
            raise stopped

    def _json_row(self, number: int, line: bytes, row: dict[str, Any]) -> bool:
        """A row that is JSON without a flaw. While a value may be open over lines, it matters to that question."""
        state = self._state
        found = self._nothing
        if state.format:
            check_row(row, state.format, found)
        valid = state.count(not found.counts or found.valid)
        state.stats.add(number, row)
        if self._watch and self._watch.splitter.active:
            self._observe(number, line)
        else:
            self._votes[format_keys(row)] += 1
        if found.counts:
            state.note(number, line, found, sound=True)
            self._nothing = RowFindings(state.log.full)
        return valid

    def _observe(self, number: int, line: bytes) -> None:
        if self._watch:
            observe(number, line, self._watch)
            if self._watch.spread:
                raise Surprise

    def _other_line(self, number: int, line: bytes, *, oversized: bool) -> bool:
        """A line that is no row, or one with a flaw."""
        state = self._state
        refused = refusal(number, line, state.limits, oversized=oversized)
        is_text = refused is None or refused.params.get("of") == "values"
        if self._watch and not is_text and state.detection.encoding != "utf-16":
            raise Surprise  # it may not be UTF-8; a cut row does not say
        self._observe(number, line)
        found, row = RowFindings(), None
        if refused:
            found.put(refused)
        else:
            found, row = explain(line.decode(), state.format)
        valid = state.count(found.valid)
        if row is not None:
            state.stats.add(number, row)
        state.note(number, line, found, sound=False)
        return valid


def describe_pretty(blocks: Iterator[Block], state: ReadState, unended_comment: int | None) -> None:
    """Counts and describes objects that are spread over lines; none of them is a row yet.

    Raises Unreadable and UnendedComment.
    """
    votes = Votes()
    try:
        for _line, found in objects_in(_lines(blocks, state), state.limits, unended_comment):
            if isinstance(found, Broken):
                _describe_broken(found, votes, state)
            elif isinstance(found, PrintedValue):
                _describe_whole(found, votes, state)
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


def _describe_broken(broken: Broken, votes: Votes, state: ReadState) -> None:
    """The object that breaks off is one more; what was read of it decides the format where no whole object does."""
    params: dict[str, Any] = {"reason": "spread", "met": broken.met, "wanted": broken.wanted}
    if broken.met == "/*":
        params |= {"reason": "unended_comment", "wanted": "*/"}
    elif broken.unended is not None:
        params |= {"reason": "unended" if broken.met else "never_ends", "begun": broken.unended}
    state.log.add(finding("json.invalid", line=broken.line, column=broken.column, **params))
    if broken.begun:
        state.count(valid=False)
        if votes.format() is None:
            messages, outputs, conversation = (f'"{key}"' in broken.begun for key in FORMAT_KEYS)
            votes[messages, outputs, conversation] += 1


def _describe_whole(piece: PrintedValue, votes: Votes, state: ReadState) -> None:
    state.count(valid=False)
    if holds_more_values(piece.text.encode("utf-8", "surrogatepass"), state.limits.row_values):
        state.log.add(too_many_values(piece.line, state.limits))
        return
    row = explain(piece.text, None)[1]
    if row is not None:
        votes[format_keys(row)] += 1
        state.stats.add(piece.line, row)
