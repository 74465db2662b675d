"""Reads an upload: the whole file is validated, then its rows are streamed unchanged."""

from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from datasets.core.csv_reader import CsvRecord, CsvTable, records, refusal, text_findings
from datasets.core.decode import Block, Encoding, Unreadable, Upload, blocks
from datasets.core.detect import Detection, Detector, confirmed, detect, guess_from_beginning
from datasets.core.findings import CODES, ERRORS, Finding, Param, finding, printable
from datasets.core.formats import Format
from datasets.core.jsonl_reader import JsonlReader, ReadState, Surprise, describe_pretty
from datasets.core.limits import Limits
from datasets.core.line_set import Lines
from datasets.core.pretty_json import with_unended_comment
from datasets.core.rows import Part, RawRow

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
        self._iterated = False
        self._reported_bytes = 0

    def __enter__(self) -> "UploadReading":
        return self

    def __exit__(self, *error: object) -> None:
        self._upload.close()

    def __iter__(self) -> Iterator[RawRow]:
        """The rows, as many as were counted; `progress` then counts both passes as one."""
        self._iterated = True
        state = self._examined()
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
        guess, state = guess_from_beginning(self._upload, self._forced), None
        if guess:
            state = yield from self._attempt(guess, Detector(), keep=forget is not None)
            if state is None and forget:
                forget()
        if state is None:
            state = yield from self._attempt(
                detect(self._upload, self._forced), None, keep=forget is not None
            )
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

    def _attempt(
        self, seen: Detection, watch: Detector | None, *, keep: bool
    ) -> Generator[Part, None, ReadState | None]:
        """Reads the file as what it seems to be. With a `watch`, None if it turns out to be something else."""
        state = ReadState(seen, self._upload.limits, self._kept_per_code)
        try:
            if seen.shape == "jsonl":
                yield from JsonlReader(state, watch, keep=keep).through(self._blocks(state))
            elif seen.shape == "csv":
                yield from self._examine_csv(state, keep=keep)
            elif seen.shape == "spread":
                self._describe(state)
        except Unreadable as stopped:
            state.log.add(stopped.found)
            state.stopped_by = stopped.found.code
        except Surprise:
            return None
        if watch:
            confirmed_as = confirmed(watch, seen, self._forced)
            if confirmed_as is None:
                return None
            state.detection = confirmed_as
        if seen.shape in ("jsonl", "csv") and not seen.silent:
            state.stats.report(state.format, state.log)
        return state

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
        found = records(_readable(self._blocks(state)), state.limits)
        if header := next(found, None):
            table = CsvTable.of(header)
            for record, valid in zip(found, state.valid, strict=False):
                yield _csv_row(record, table, bool(valid))

    def _examine_csv(self, state: ReadState, *, keep: bool) -> Kept:
        found = records(self._blocks(state), state.limits)
        if header := next(found, None):
            table = CsvTable.of(header)
            state.log.add_all(_header_findings(header, table, state.limits))
            for record in found:
                valid = _examine_record(record, table, state)
                if keep:
                    row = _csv_row(record, table, valid).kept
                    yield [row], len(row.raw)
        if not state.rows:
            state.log.add(finding("file.empty"))

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


def _csv_row(record: CsvRecord, table: CsvTable, valid: bool) -> RawRow:
    return RawRow(record.line, valid, record.text.encode(), table.json(record) if valid else b"")


def _examine_record(record: CsvRecord, table: CsvTable, state: ReadState) -> bool:
    refused = refusal(record, state.limits)
    found = [refused] if refused else table.check(record)
    valid = state.count(table.usable and ERRORS.isdisjoint(one.code for one in found))
    if not refused:
        state.stats.add(record.line, table.row(record), legacy_csv=True)
    state.note_all(found)
    return valid


def _header_findings(header: CsvRecord, table: CsvTable, limits: Limits) -> Iterator[Finding]:
    """Of one that is not read to its end nothing is said of its names."""
    if refused := refusal(header, limits):
        yield refused
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
