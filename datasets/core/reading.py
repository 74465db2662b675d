"""The one way to read an upload: rows streamed as they stand, findings and figures at the end."""

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

import msgspec
from msgspec import Raw, Struct

from datasets.core.decode import Block, Encoding, Unreadable, Upload, blocks, utf8_chunks
from datasets.core.findings import CODES, Finding, Ledger, Param, finding, printable
from datasets.core.formats.checks import Check, check_json_row
from datasets.core.formats.csvrows import CsvTable
from datasets.core.formats.csvtext import Record, broken_column, records
from datasets.core.formats.detect import Survey, Votes, survey, vote_on
from datasets.core.formats.keycount import SUSPECT, key_counts
from datasets.core.formats.names import Format
from datasets.core.formats.quick import QuickLook
from datasets.core.formats.spread import NotSpread, Piece, Splitter
from datasets.core.limits import Limits
from datasets.core.tally import Tally

Progress = Callable[[int, int], None]
KEPT_PER_CODE = 1000


class _RawOutput(Struct):
    model_name: str
    responses: list[Raw]


_decode_top = msgspec.json.Decoder(dict[str, Raw]).decode
_decode_outputs = msgspec.json.Decoder(list[_RawOutput]).decode


class RawRow(Struct, frozen=True, gc=False):
    """One row as it stands in the upload: `source` is its bytes in UTF-8, `json` the same unless it was CSV."""

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
        if not self.valid:
            return ""
        if b"model_outputs" not in self.json:
            return self.json.strip().decode()
        top = _decode_top(self.json)
        top.pop("model_outputs", None)
        return msgspec.json.encode(top).decode()

    @property
    def responses(self) -> tuple[tuple[str, int, str], ...]:
        """(model name, index from 1, JSON of the response) of every uploaded answer; () of a row with errors."""
        if not self.valid or b"model_outputs" not in self.json:
            return ()
        outputs = _decode_top(self.json).get("model_outputs")
        return tuple(
            (output.model_name, index, bytes(response).decode())
            for output in (_decode_outputs(outputs) if outputs is not None else ())
            for index, response in enumerate(output.responses, 1)
        )


@dataclass(frozen=True, slots=True)
class Summary:
    """What is known of an upload after reading it. `counts` are complete, `findings` cut per code.

    `models` is {name: {"rows", "responses"}}, `fields` {name: rows}; `why` names the reason for `format`,
    with figures in `why_params`; `sha256` and `bytes` are the original file's, `sha256` '' if not asked for.
    """

    format: Format | None
    why: str
    why_params: dict[str, Param]
    encoding: Encoding | None
    rows: int
    valid_rows: int
    counts: dict[str, int]
    findings: tuple[Finding, ...]
    models: dict[str, dict[str, int]] = field(default_factory=dict)
    fields: dict[str, int] = field(default_factory=dict)
    sha256: str = ""
    bytes: int = 0

    @property
    def errors(self) -> bool:
        """Whether anything is an error, so that the version cannot be used as it is."""
        return any(CODES[code].severity == "error" for code in self.counts)


class Reading:
    """Iterate once for the rows; `summary` is there afterwards (asked earlier, it reads on to the end)."""

    def __init__(
        self, upload: Upload, seen: Survey, kept_per_code: int, progress: Progress | None, sha256: str
    ) -> None:
        self.survey = seen
        self._upload = upload
        self._ledger = Ledger(kept_per_code)
        self._tally = Tally()
        self._progress = progress
        self._sha256 = sha256
        self._format = seen.format
        self._row_count = 0
        self._valid_count = 0
        self._done_bytes = 0
        self._rows = self._all_rows()
        self._summary: Summary | None = None

    def __enter__(self) -> "Reading":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._rows.close()
        self._upload.close()

    def __iter__(self) -> Iterator[RawRow]:
        return self._rows

    @property
    def summary(self) -> Summary:
        for _ in self._rows:
            pass
        if self._summary is None:
            self._summary = self._summarise()
        return self._summary

    def _all_rows(self) -> Generator[RawRow, None, None]:
        seen = self.survey
        self._ledger.add_all(seen.findings)
        try:
            if seen.shape == "jsonl":
                yield from self._json_rows()
            elif seen.shape == "csv":
                yield from self._csv_rows()
            elif seen.shape == "spread":
                self._describe_spread()
            else:
                self._row_count = seen.rows
        except Unreadable as stopped:
            self._ledger.add(stopped.found)
        if seen.shape in ("jsonl", "csv") and not seen.silent:
            self._tally.report(self._format, self._ledger)
        if self._progress:
            self._progress(self._upload.bytes, self._upload.bytes)
        self._upload.close()

    def _blocks(self) -> Iterator[Block]:
        encoding = self.survey.encoding or "utf-8"
        return blocks(utf8_chunks(self._upload, encoding, self._advance), self._upload.limits.row_bytes)

    def _advance(self, read: int) -> None:
        self._done_bytes += read
        if self._progress:
            self._progress(self._done_bytes, self._upload.bytes)

    def _json_rows(self) -> Iterator[RawRow]:
        quick = QuickLook(self._format, self._tally) if self._format else None
        passes = quick.passes if quick else _never
        most = self._upload.limits.rows
        try:
            for block in self._blocks():
                counts = self._key_counts(block)
                for number, (line, keys) in enumerate(zip(block.lines, counts, strict=True), block.first):
                    if self._row_count < most and passes(number, line, keys):
                        self._row_count += 1
                        self._valid_count += 1
                        yield RawRow(number, True, line, line)
                    elif line.strip() or number in block.oversized:
                        check = self._checked(number, line, number in block.oversized)
                        yield RawRow(number, self._record(check), line, line)
        finally:
            if quick:
                quick.flush()

    def _key_counts(self, block: Block) -> list[int]:
        """With SUSPECT for the lines that the quick look must not see."""
        if block.oversized:
            return [SUSPECT] * len(block.lines)
        counts = key_counts(block.text, block.lines)
        if not self.survey.decodes:
            for index, line in enumerate(block.lines):
                if broken_column(line) is not None:
                    counts[index] = SUSPECT
        return counts

    def _checked(self, number: int, line: bytes, oversized: bool) -> Check:
        if oversized:
            limit = self._upload.limits.row_bytes
            return Check(number, [finding("row.too_large", line=number, limit=limit)])
        column = broken_column(line)
        if column is not None:
            return Check(number, [finding("file.encoding", line=number, column=column)])
        return check_json_row(number, line.decode(), self._format)

    def _count_row(self, valid: bool) -> None:
        if self._row_count >= self._upload.limits.rows:
            raise Unreadable(finding("file.too_many_rows", limit=self._upload.limits.rows))
        self._row_count += 1
        self._valid_count += valid

    def _record(self, check: Check) -> bool:
        """Keeps what was found in a row; whether the row is valid."""
        valid = check.valid and self._format is not None
        self._count_row(valid)
        if not self.survey.silent:
            self._ledger.add_all(check.found)
            for code, number in check.more.items():
                self._ledger.count_only(code, number)
        if check.facts is not None:
            self._tally.add(check.line, check.facts)
        return valid

    def _csv_rows(self) -> Iterator[RawRow]:
        lines = (
            (number, line + b"\n", number in block.oversized)
            for block in self._blocks()
            for number, line in enumerate(block.lines, block.first)
        )
        table: CsvTable | None = None
        for record in records(lines, self._upload.limits.row_bytes):
            if table is None:
                table = CsvTable.of(record)
                self._ledger.add_all(table.findings())
            else:
                yield self._csv_row(table, record)
        if not self._row_count:
            self._ledger.add(finding("file.empty"))

    def _csv_row(self, table: CsvTable, record: Record) -> RawRow:
        if record.oversized and record.quote is None:
            check = Check(
                record.line, [finding("row.too_large", line=record.line, limit=self._upload.limits.row_bytes)]
            )
        else:
            check = table.check(record)
        valid = self._record(check) and table.usable
        if not valid and check.valid:
            self._valid_count -= 1
        return RawRow(record.line, valid, record.text.encode(), table.json(record) if valid else b"")

    def _describe_spread(self) -> None:
        """Counts and describes the objects of a file that is no JSONL; says where even that is impossible."""
        splitter, votes = Splitter(), Votes()
        number, line = 0, ""
        try:
            for block in self._blocks():
                for number, raw in enumerate(block.lines, block.first):
                    line = raw.decode("utf-8", "replace")
                    for piece in splitter.feed(number, line):
                        self._describe(piece, votes)
                    if splitter.size > self._upload.limits.row_bytes:
                        raise Unreadable(
                            finding("row.too_large", line=number, limit=self._upload.limits.row_bytes)
                        )
            if splitter.open:
                raise NotSpread(number, len(line) + 1)
        except NotSpread as broken:
            met = line[broken.column - 1 : broken.column]
            self._ledger.add(
                finding(
                    "json.invalid",
                    line=broken.line,
                    column=broken.column,
                    reason="spread",
                    met=met,
                    wanted="",
                )
            )
        self._format = self._format or votes.format()

    def _describe(self, piece: Piece, votes: Votes) -> None:
        self._count_row(valid=False)
        vote_on(piece.text, votes)
        facts = check_json_row(piece.line, piece.text, None).facts
        if facts is not None:
            self._tally.add(piece.line, facts)

    def _summarise(self) -> Summary:
        tally = self._tally
        return Summary(
            format=self._format,
            why=self.survey.why,
            why_params=self.survey.why_params,
            encoding=self.survey.encoding,
            rows=self._row_count,
            valid_rows=self._valid_count,
            counts=dict(self._ledger.counts),
            findings=self._ledger.in_order(),
            models={
                printable(name): {"rows": count.rows, "responses": count.responses}
                for name, count in tally.models.items()
            },
            fields={printable(name): rows for name, rows in tally.field_rows(self._format).items()},
            sha256=self._sha256,
            bytes=self._upload.bytes,
        )


def _never(number: int, line: bytes, keys: int) -> bool:
    """The quick look of a file whose format is not known."""
    return False


def read(
    source: Path | str | BinaryIO,
    *,
    format: Format | None = None,
    limits: Limits | None = None,
    kept_per_code: int = KEPT_PER_CODE,
    progress: Progress | None = None,
    digest: bool = True,
) -> Reading:
    """Opens an upload and detects what it is; raises OSError only. `format` overrules the detection.

    `progress(done, all)` counts bytes of the file; `digest=False` leaves out the SHA-256.
    """
    upload = Upload(source, limits or Limits())
    seen = survey(upload, format)
    return Reading(upload, seen, kept_per_code, progress, upload.sha256() if digest else "")
