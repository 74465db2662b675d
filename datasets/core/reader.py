"""Reads an upload: the whole file is validated, then its rows are streamed unchanged."""

from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from datasets.core.csv_reader import CsvRecord, CsvTable, records, text_findings
from datasets.core.decode import Block, Encoding, Unreadable, Upload, blocks, utf8_chunks
from datasets.core.detect import Detection, Detector, confirmed, detect, guess_from_beginning
from datasets.core.findings import CODES, Finding, Param, finding, printable
from datasets.core.formats import Format
from datasets.core.jsonl_reader import JsonlReader, ReadState, Surprise, describe_pretty
from datasets.core.limits import Limits
from datasets.core.line_set import Lines
from datasets.core.pretty_json import with_unended_comment
from datasets.core.row_decoder import too_large, too_many_values
from datasets.core.rows import Part, RawRow
from datasets.core.rules import RowFindings

__all__ = ["KEPT_PER_CODE", "Progress", "RawRow", "Summary", "UploadReading", "read"]

Progress = Callable[[int, int], None]
Kept = Iterator[Part]
KEPT_PER_CODE = 1000


@dataclass(frozen=True, slots=True)
class Summary:
    """What is known of an upload after reading it. `counts` are complete, `findings` cut per code.

    `models` is {name: {"rows", "responses"}}, `fields` {name: rows}; `why` names the reason for `format`,
    with figures in `why_params`; `stopped_by` is the code of what ended the reading before the file's end;
    `sha256` and `bytes` are the original file's, `sha256` '' if not asked for.
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
    sha256: str = ""
    bytes: int = 0

    @property
    def errors(self) -> bool:
        """Whether anything is an error, so that the version cannot be used as it is."""
        return any(CODES[code].severity == "error" for code in self.counts)


class UploadReading:
    """A file, examined once whole; then `summary` is there, and the rows may be iterated over, also again.

    Or the rows are taken in the same pass, by `kept`.
    """

    def __init__(
        self,
        upload: Upload,
        forced: Format | None,
        kept_per_code: int,
        progress: Progress | None,
        sha256: str,
    ) -> None:
        self._upload = upload
        self._forced = forced
        self._kept_per_code = kept_per_code
        self._progress = progress
        self._sha256 = sha256
        self._state: ReadState | None = None
        self._table: CsvTable | None = None
        self._iterated = False
        self._done_bytes = 0
        self._reported_bytes = 0

    def __enter__(self) -> "UploadReading":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._upload.close()

    def __iter__(self) -> Iterator[RawRow]:
        """The rows, as many as were counted; `progress` then counts both passes as one."""
        self._iterated = True
        state = self._examined()
        self._done_bytes = 0
        if state.detection.shape == "csv":
            yield from self._csv_rows(state)
        elif state.detection.shape == "jsonl":
            yield from self._json_rows(state)
        self._upload.close()

    def kept(self, forget: Callable[[], None] | None) -> Kept:
        """All rows as they are stored, some hundred at a time, in the pass that validates them.

        With each part: how many bytes it was made of.
        `forget` is called where the file is not what its beginning promised: drop the rows that came before. Without
        it the file is examined only, and no rows are given.
        """
        assert self._state is None  # what was examined already is iterated over
        guess = guess_from_beginning(self._upload, self._forced)
        state = (yield from self._as_promised(guess, keep=forget is not None)) if guess else None
        if state is None:
            if guess and forget:
                forget()
            state = yield from self._as_detected(keep=forget is not None)
        self._report(self._upload.bytes)  # the end of the first pass, which is half of two
        self._state = state
        if forget:
            self._upload.close()

    @property
    def detection(self) -> Detection:
        """What the file was detected to be."""
        return self._examined().detection

    @property
    def summary(self) -> Summary:
        """What is known of the file; examines it first if that has not happened yet."""
        summary = self._summarise(self._examined())
        if not self._iterated:
            self._upload.close()
        return summary

    @property
    def lines(self) -> dict[str, Lines]:
        """At which lines each code was found, all of them."""
        return self._examined().log.lines

    def _examined(self) -> ReadState:
        if self._state is None:
            for _ in self.kept(None):
                pass
        assert self._state is not None  # that is how examining ends
        return self._state

    def _as_promised(self, guess: Detection, *, keep: bool) -> Generator[Part, None, ReadState | None]:
        """One pass is enough if the file is what its beginning promises."""
        watch = Detector()
        state = ReadState(guess, self._upload.limits, self._kept_per_code)
        try:
            stopped = yield from JsonlReader(state, watch, keep=keep).through(self._blocks(state))
        except Surprise:
            return None
        kept = confirmed(watch, guess, self._forced)
        return self._ended(state, kept, stopped) if kept else None

    def _as_detected(self, *, keep: bool) -> Generator[Part, None, ReadState]:
        seen = detect(self._upload, self._forced)
        state = ReadState(seen, self._upload.limits, self._kept_per_code)
        self._done_bytes = 0
        if seen.shape == "none":
            return state
        stopped = yield from self._through(state, keep=keep)
        return self._ended(state, seen, stopped)

    def _through(self, state: ReadState, *, keep: bool) -> Generator[Part, None, Finding | None]:
        """Examines a file whose shape is known; what stopped it before the end."""
        if state.detection.shape == "jsonl":
            return (yield from JsonlReader(state, keep=keep).through(self._blocks(state)))
        try:
            if state.detection.shape == "csv":
                yield from self._examine_csv(state, keep=keep)
            else:
                self._describe(state)
        except Unreadable as stopped:
            return stopped.found
        return None

    def _describe(self, state: ReadState) -> None:
        def attempt(unended_comment: int | None) -> None:
            state.begin()
            self._done_bytes = 0
            describe_pretty(self._blocks(state), state, unended_comment)

        with_unended_comment(attempt)
        if not state.rows and state.log.counts.keys() <= {"file.not_jsonl", "file.converted"}:
            state.log.add(finding("file.empty"))

    def _ended(self, state: ReadState, seen: Detection, stopped: Finding | None) -> ReadState:
        state.detection = seen
        if stopped:
            state.log.add(stopped)
            state.stopped_by = stopped.code
        if seen.shape in ("jsonl", "csv") and not seen.silent:
            state.stats.report(state.format, state.log)
        return state

    def _blocks(self, state: ReadState) -> Iterator[Block]:
        encoding = state.detection.encoding or "utf-8"
        return blocks(utf8_chunks(self._upload, encoding, self._advance), self._upload.limits.row_bytes)

    def _advance(self, read: int) -> None:
        self._done_bytes += read
        self._report(self._done_bytes)

    def _report(self, done: int) -> None:
        """Bytes of the two passes as bytes of one file; never less than reported before."""
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

    def _csv_rows(self, state: ReadState) -> Iterator[RawRow]:
        records = self._records(state)
        next(records, None)
        for record, valid in zip(records, state.valid, strict=False):
            yield self._csv_row(record, bool(valid))

    def _csv_row(self, record: CsvRecord, valid: bool) -> RawRow:
        json = self._table.json(record) if valid and self._table else b""
        return RawRow(record.line, valid, record.text.encode(), json)

    def _records(self, state: ReadState) -> Iterator[CsvRecord]:
        lines = (
            (number, line + b"\n", number in block.oversized)
            for block in _readable(self._blocks(state))
            for number, line in enumerate(block.lines, block.first)
        )
        return records(lines, self._upload.limits.row_bytes, self._upload.limits.row_values)

    def _examine_csv(self, state: ReadState, *, keep: bool) -> Kept:
        records = self._records(state)
        header = next(records, None)
        if header:
            self._table = table = CsvTable.of(header)
            state.log.add_all(_header_findings(header, table, state))
            for record in records:
                valid = self._examine_record(record, table, state)
                if keep:
                    row = self._csv_row(record, valid).kept
                    yield [row], len(row.raw)
        if not state.rows:
            state.log.add(finding("file.empty"))

    def _examine_record(self, record: CsvRecord, table: CsvTable, state: ReadState) -> bool:
        is_cut = record.oversized and record.quote is None
        found = RowFindings()
        if is_cut:
            found.put(too_large(record.line, state.limits))
        elif record.crowded:
            found.put(too_many_values(record.line, state.limits))
        else:
            found = table.check(record)
        valid = state.count(found.valid and table.usable)
        if not (is_cut or record.crowded):
            state.stats.add(record.line, table.row(record), legacy_csv=True)
        state.note_all(found.found)
        return valid

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
            sha256=self._sha256,
            bytes=self._upload.bytes,
        )


def _header_findings(header: CsvRecord, table: CsvTable, state: ReadState) -> Iterator[Finding]:
    """Of one that is not read to its end nothing is said of its names."""
    if header.crowded:
        yield too_many_values(header.line, state.limits)
    elif header.oversized and header.quote is None:
        yield too_large(header.line, state.limits)
    else:
        yield from text_findings(header)
        if header.quote is None:
            yield from table.findings()


def _readable(given: Iterator[Block]) -> Iterator[Block]:
    """The blocks up to where the file can be read."""
    with suppress(Unreadable):  # reported when the file was examined
        yield from given


def read(
    source: Path | str | BinaryIO,
    *,
    format: Format | None = None,
    limits: Limits | None = None,
    kept_per_code: int = KEPT_PER_CODE,
    progress: Progress | None = None,
    digest: bool = True,
) -> UploadReading:
    """Opens an upload; raises OSError only. `format` overrules the detection.

    `progress(done, all)` counts bytes of the file; `digest=False` leaves out the SHA-256.
    """
    upload = Upload(source, limits or Limits())
    return UploadReading(upload, format, kept_per_code, progress, upload.sha256() if digest else "")
