"""Reads an upload: validates the whole file, then streams its rows unchanged."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

from datasets.core import csv_reader
from datasets.core.decode import Block, Encoding, Unreadable, Upload, blocks
from datasets.core.detect import Detector, Votes, confirmed, detect, guess_from_beginning, observe
from datasets.core.findings import (
    CODES,
    Finding,
    Param,
    broken_byte,
    finding,
    not_utf8,
    printable,
    too_many_values,
)
from datasets.core.formats import FORMAT_KEYS, Format, format_keys
from datasets.core.limits import Limits, holds_more_values
from datasets.core.line_set import Lines
from datasets.core.pretty_json import Broken, PrintedValue, objects_in, with_unended_comment
from datasets.core.rows import NewRow, Part, RawRow, bad_row, cut, decoded, explain, refusal
from datasets.core.rules import RowFindings, check_row
from datasets.core.stats import Detection, ReadState

Progress = Callable[[int, int], None]
KEPT_PER_CODE = 1000


@dataclass(frozen=True, slots=True)
class Summary:
    """The result of reading an upload. `counts` are complete, `findings` are limited per code.

    `models` is {name: {"rows", "responses"}}, `fields` {name: rows}, `references` the rows
    whose `ref_answer` is not null; `why` names the reason for `format`, with figures
    in `why_params`; `stopped_by` is the code that stopped reading before the end of the file; `sha256` and `bytes` are
    those of the original file, `sha256` is '' if not requested.
    """

    format: Format | None
    why: str
    why_params: dict[str, Param]
    encoding: Encoding | None
    rows: int
    valid_rows: int
    counts: dict[str, int]
    findings: tuple[Finding, ...]
    stopped_by: str = ""
    models: dict[str, dict[str, int]] = field(default_factory=dict)
    fields: dict[str, int] = field(default_factory=dict)
    references: int = 0
    sha256: str = ""
    bytes: int = 0

    @property
    def errors(self) -> bool:
        """Whether any finding is an error, so that the version cannot be used unchanged."""
        return any(CODES[code].severity == "error" for code in self.counts)


class Surprise(Exception):
    """The upload differs from what its beginning suggested."""


def examined_lines(
    blocks: Iterator[Block], state: ReadState, watch: Detector | None, *, keep: bool
) -> Iterator[Part]:
    """Check the lines of all blocks; yield each block's rows only if `keep` is set.

    With `watch`, also collect the votes on the upload's format. Raises Unreadable after the readable rows, and with
    `watch` also Surprise.
    """
    # Reused while empty: most rows have no findings, and a new object per row would cost a tenth of the time.
    findings = RowFindings(state.log.full)
    new_rows: list[NewRow] = []
    try:
        for block in blocks:
            is_blank = block.text.isspace() and not block.oversized
            for number, line, row in () if is_blank else decoded(block, state.limits.row_values):
                if row is not None:
                    if state.format:
                        check_row(row, state.format, findings)
                    valid_row = row if state.count(not findings.counts or findings.valid) else None
                    state.stats.add(number, row)
                    if watch and watch.splitter.open:  # a value may span lines
                        _observe(number, line, watch)
                    elif watch:
                        watch.vote(format_keys(row))
                    if findings.counts:
                        state.record_findings(number, line, findings, unique_keys=True)
                        findings = RowFindings(state.log.full)
                elif line.strip() or number in block.oversized:
                    valid_row = _other_line(number, line, state, watch, oversized=number in block.oversized)
                else:
                    continue
                if keep:
                    new_rows.append(
                        bad_row(number, line)
                        if valid_row is None
                        else NewRow(number, True, *cut(line, valid_row))
                    )
            yield new_rows, len(block.text)
            new_rows = []
    except Unreadable:
        yield new_rows, 0
        raise


def _observe(number: int, line: bytes, watch: Detector) -> None:
    observe(number, line, watch)
    if watch.spread:
        raise Surprise


def _other_line(
    number: int, line: bytes, state: ReadState, watch: Detector | None, *, oversized: bool
) -> dict[str, Any] | None:
    """Process a line that is not a row, or not a flawless one; return the row if it is valid."""
    refused = refusal(number, line, state.limits, oversized=oversized)
    is_text = refused is None or refused.params.get("of") == "values"
    if watch and not is_text and state.detection.encoding != "utf-16":
        raise Surprise  # it may not be UTF-8; a truncated row cannot tell
    if watch:
        _observe(number, line, watch)
    findings, row = RowFindings(), None
    if refused:
        findings.add_finding(refused)
    else:
        findings, row = explain(line.decode(), state.format)
    valid = state.count(findings.valid)
    if row is not None:
        state.stats.add(number, row)
    state.record_findings(number, line, findings, unique_keys=False)
    return row if valid else None


def describe_pretty(blocks: Iterator[Block], state: ReadState, unended_comment: int | None) -> None:
    """Count and report objects that are spread over lines; they are not rows yet.

    Raises Unreadable and UnendedComment.
    """
    votes = Votes()
    try:
        for _line, piece in objects_in(_lines(blocks, state), state.limits, unended_comment):
            if isinstance(piece, Broken):
                _describe_broken(piece, votes, state)
            elif isinstance(piece, PrintedValue):
                _describe_whole(piece, votes, state)
    finally:
        state.format = state.format or votes.format()


def _lines(blocks: Iterator[Block], state: ReadState) -> Iterator[tuple[int, str]]:
    """Yield all lines, without a last line that may be cut because the file cannot be read to its end."""
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
    """Count the broken object; its text decides the format if no complete object does."""
    params: dict[str, Any] = {"reason": "spread", "met": broken.met, "wanted": broken.expected}
    if broken.met == "/*":
        params |= {"reason": "unended_comment", "wanted": "*/"}
    elif broken.unended is not None:
        params |= {"reason": "unended" if broken.met else "never_ends", "begun": broken.unended}
    state.log.add(finding("json.invalid", line=broken.line, column=broken.column, **params))
    if broken.text:
        state.count(valid=False)
        if votes.format() is None:
            messages, outputs, conversation = (f'"{key}"' in broken.text for key in FORMAT_KEYS)
            votes[messages, outputs, conversation] += 1


def _describe_whole(piece: PrintedValue, votes: Votes, state: ReadState) -> None:
    state.count(valid=False)
    if holds_more_values(piece.text.encode("utf-8", "surrogatepass"), state.limits.row_values):
        state.log.add(too_many_values(piece.line, state.limits))
        return
    findings, row = explain(piece.text, None)
    # Other faults are found once the values stand on a line each; this one tends to be in all of them.
    state.log.add_all(
        replace(flaw, line=piece.line, column=None)
        for flaw in findings.stored
        if flaw.repair == "nan_to_null"
    )
    if row is not None:
        votes[format_keys(row)] += 1
        state.stats.add(piece.line, row)


@dataclass(slots=True)
class UploadReading:
    """A file checked in one complete pass; then `summary` is available and the rows can be iterated repeatedly.

    Alternatively, `parts` yields the rows during that pass.
    """

    _upload: Upload
    _forced: Format | None
    _kept_per_code: int
    _progress: Progress | None
    _sha256: str
    _state: ReadState | None = None
    _iterated: bool = False
    _reported_bytes: int = 0

    def __enter__(self) -> "UploadReading":
        return self

    def __exit__(self, *error: object) -> None:
        self._upload.close()

    def __iter__(self) -> Iterator[RawRow]:
        """Yield the counted rows; `progress` then treats both passes as one."""
        self._iterated = True
        state = self._examined()
        if state.detection.shape == "csv":
            yield from csv_reader.rows(_readable(self._blocks(state)), state)
        elif state.detection.shape == "jsonl":
            yield from self._json_rows(state)
        self._upload.close()

    def parts(self, discard: Callable[[], None] | None) -> Iterator[Part]:
        """Yield all rows in the form they are stored in, some hundred at a time, while validating them.

        Each part comes with the number of bytes it was made from. `discard` is called if the file turns out to differ
        from its beginning: discard the rows so far. Without it, the file is only checked and no rows are yielded.
        """
        assert self._state is None  # a checked file is iterated over instead
        upload, keep = self._upload, discard is not None
        for watch in (Detector(), None):
            seen = guess_from_beginning(upload, self._forced) if watch else detect(upload, self._forced)
            if seen is None:
                continue
            state = ReadState(seen, upload.limits, self._kept_per_code)
            try:
                if seen.shape == "jsonl":
                    yield from examined_lines(self._blocks(state), state, watch, keep=keep)
                elif seen.shape == "csv":
                    yield from csv_reader.examined(self._blocks(state), state, keep=keep)
                elif seen.shape == "spread":
                    self._describe(state)
            except Unreadable as stopped:
                state.log.add(stopped.finding)
                state.stopped_by = stopped.finding.code
            except Surprise:
                seen = None
            if watch and seen:
                seen = confirmed(watch, seen, self._forced)
            if seen:
                state.finish(seen)
                break
            if discard:
                discard()
        self._report(upload.bytes)  # end of the first pass, which is half of two
        self._state = state
        if discard:
            upload.close()

    @property
    def detection(self) -> Detection:
        """The detected encoding, shape and format."""
        return self._examined().detection

    @property
    def summary(self) -> Summary:
        """The result of reading the file; checks it first if necessary."""
        summary = self._summarise(self._examined())
        if not self._iterated:
            self._upload.close()
        return summary

    @property
    def lines(self) -> dict[str, Lines]:
        """All lines of each finding code."""
        return self._examined().log.lines

    def _examined(self) -> ReadState:
        if self._state is None:
            for _ in self.parts(None):
                pass
        assert self._state is not None  # checking always sets it
        return self._state

    def _describe(self, state: ReadState) -> None:
        def attempt(unended_comment: int | None) -> None:
            state.begin()
            describe_pretty(self._blocks(state), state, unended_comment)

        with_unended_comment(attempt)
        if not state.rows and state.log.counts.keys() <= {"file.not_jsonl", "file.converted"}:
            state.log.add(finding("file.empty"))

    def _blocks(self, state: ReadState) -> Iterator[Block]:
        return blocks(self._upload, state.detection.encoding, self._report)

    def _report(self, done: int) -> None:
        """Report bytes over two passes as bytes of one file; never less than before."""
        if self._iterated:
            done = (done + (self._upload.bytes if self._state else 0)) // 2
        self._reported_bytes = max(self._reported_bytes, done)
        if self._progress:
            self._progress(self._reported_bytes, self._upload.bytes)

    def _json_rows(self, state: ReadState) -> Iterator[RawRow]:
        verdicts = iter(state.valid)
        for block in _readable(self._blocks(state)):
            if block.text.isspace() and not block.oversized:
                continue
            for number, line in enumerate(block.lines, block.first):
                if line.strip() or number in block.oversized:
                    valid = next(verdicts, None)
                    if valid is None:
                        return
                    yield RawRow(number, valid == 1, line, line)

    def _summarise(self, state: ReadState) -> Summary:
        stats, seen = state.stats, state.detection
        return Summary(
            format=state.format,
            why=seen.why,
            why_params=seen.why_params,
            encoding=seen.encoding,
            rows=state.rows,
            valid_rows=state.valid_rows,
            counts=dict(state.log.counts),
            findings=state.log.in_order(),
            stopped_by=state.stopped_by,
            models={
                printable(name): {"rows": count.rows, "responses": count.responses}
                for name, count in stats.models.items()
            },
            fields={printable(name): rows for name, rows in stats.field_rows(state.format).items()},
            references=stats.references(),
            sha256=self._sha256,
            bytes=self._upload.bytes,
        )


def _readable(all_blocks: Iterator[Block]) -> Iterator[Block]:
    """Yield the blocks up to where the file becomes unreadable."""
    with suppress(Unreadable):  # reported when the file was checked
        yield from all_blocks


def read(
    source: Path | str | BinaryIO,
    *,
    format: Format | None = None,
    limits: Limits | None = None,
    kept_per_code: int = KEPT_PER_CODE,
    progress: Progress | None = None,
    digest: bool = True,
) -> UploadReading:
    """Open an upload; raises only OSError. `format` overrides the detection.

    `progress(done, all)` counts bytes of the file; `digest=False` skips the SHA-256.
    """
    upload = Upload(source, limits or Limits())
    return UploadReading(upload, format, kept_per_code, progress, upload.sha256() if digest else "")
