"""What `import_dataset` imported from files, and the document that it prints; the native copy that `--out` writes."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from datasets.core.decode import Upload, utf8_chunks
from datasets.core.findings import Finding, finding
from datasets.core.formats import LEGACY, Format
from datasets.core.imports.collector import encoded
from datasets.core.imports.encodings import encoding_seen, warn_of_encodings
from datasets.core.imports.model import Imported, LeftOut, NotUsable, Options, Source, SourceFile
from datasets.core.imports.reasons import WITH_WARNING
from datasets.core.reader import Summary, UploadReading, read
from datasets.messages import left_out_reason, message, not_usable
from datasets.models import Row, StoredFinding, Version
from datasets.selectors import row_values
from datasets.uploads import limits
from datasets.versions.row_findings import as_finding
from datasets.versions.row_writer import WholeRow, as_json

Entry = dict[str, Any]


@dataclass(slots=True)
class ImportReport:
    """The figures of the document; `problem` is a sentence if nothing could be imported."""

    dataset: str | None = None
    version: int | None = None
    format: str | None = None
    source: str | None = None
    encoding: str | None = None
    rows: int = 0
    valid_rows: int = 0
    models: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    fields: Mapping[str, int] = field(default_factory=dict)
    references: int = 0
    verdicts: int = 0
    run: int | None = None
    findings: list[Entry] = field(default_factory=list)
    left_out: list[Entry] = field(default_factory=list)
    problem: str = ""

    def add_version(self, version: Version) -> None:
        """The figures and findings of a version that was read."""
        self.dataset, self.version = version.dataset.name, version.number
        stored = StoredFinding.objects.filter(version=version).order_by("line", "pk")
        findings = list(map(as_finding, stored))
        self._add(version.format, version, version.models_found, version.fields_found, findings)
        if version.format not in LEGACY:
            self.references = _stored_references(version, findings)
        self.encoding = self.encoding or version.encoding or None

    def add_summary(self, summary: Summary) -> None:
        """The same of a file that is not stored."""
        self._add(summary.format, summary, summary.models, summary.fields, summary.findings)
        if summary.format not in LEGACY:
            self.references = summary.references
        self.encoding = self.encoding or summary.encoding

    def _add(
        self,
        fmt: str | None,
        counted: Version | Summary,
        models: Mapping[str, Any],
        fields: Mapping[str, int],
        findings: Iterable[Finding],
    ) -> None:
        self.format, self.models, self.fields = fmt or None, models, fields
        self.rows, self.valid_rows = counted.rows, counted.valid_rows
        self.references = counted.valid_rows  # each legacy row has one
        self.findings += map(_finding, findings)

    def add_left_out(self, listed: Iterable[LeftOut]) -> None:
        """What was left out; what was imported with a warning is a finding."""
        for omission in listed:
            place = omission.place
            where = f"{place.file}, {place.sheet}" if place.sheet else place.file
            detail = f" ({omission.detail})" if omission.detail else ""
            text = f"{where}: {left_out_reason(omission.code)}{detail}"
            if omission.code in WITH_WARNING:
                self.findings.append(_entry(place.line, omission.code, text, WITH_WARNING[omission.code][1]))
            else:
                self.left_out.append({"line": place.line, "code": omission.code, "message": text})

    def document(self) -> Entry:
        """The JSON document of `import_dataset --json`."""
        return {
            "dataset": self.dataset,
            "version": self.version,
            "format": self.format,
            "source": self.source,
            "encoding": self.encoding,
            "rows": self.rows,
            "valid_rows": self.valid_rows,
            "models": list(self.models),
            "answers": sum(counts["responses"] for counts in self.models.values()),
            "references": self.references,
            "fields": dict(self.fields),
            "verdicts": self.verdicts,
            "run": self.run,
            "findings": self.findings,
            "left_out": self.left_out,
        }


def _stored_references(version: Version, findings: Iterable[Finding]) -> int:
    """The rows with a reference: by the finding about those without one, or all that have the field, or none."""
    missing = next(
        (finding.params for finding in findings if finding.code == "ref_answer.some_missing"), None
    )
    if missing:
        return int(missing["rows"]) - int(missing["missing"])
    row = Row.objects.filter(version=version, valid=True).order_by("line").first()
    all_null = row is not None and row_values(row).get("ref_answer") is None
    return 0 if all_null else version.fields_found.get("ref_answer", 0)


def _finding(finding: Finding) -> Entry:
    more = {"column": finding.column, "path": finding.path, "severity": finding.severity}
    return _entry(finding.line, finding.code, message(finding), finding.repair) | more


def _entry(line: int | None, code: str, said: str, repair: str | None) -> Entry:
    """A finding in the format of `validate --json`."""
    entry: Entry = {"line": line, "column": None, "path": None, "code": code, "severity": "warning"}
    return entry | {"message": said, "repair": repair or None}


def sentence(error: NotUsable) -> str:
    """Why files cannot be imported; of one that is no text, what it is."""
    if error.code == "other_kind":
        return f"{error.params['file']}: {message(finding('file.other_kind', kind=error.params['kind']))}"
    return not_usable(error)


def add_encoding(files: Sequence[SourceFile], report: ImportReport) -> None:
    """The encoding of files of which nothing was imported; of a single text in no known format, also its findings."""
    with suppress(NotUsable):
        seen = [(file, encoding_seen(file, limits())) for file in files]
        report.encoding = report.encoding or next((encoding for _file, encoding in seen if encoding), None)
        if report.source is None and len(files) == 1 and report.encoding:
            with files[0].open_file() as opened, read(opened, limits=limits(), digest=False) as reading:
                report.add_summary(reading.summary)
        if all(entry["code"] != "file.converted" for entry in report.findings):
            warned = Imported(())
            warn_of_encodings(files, limits(), warned)
            report.add_left_out(warned.left_out)


def first_encoding(files: Sequence[SourceFile]) -> str | None:
    """The encoding of the first text among the files."""
    for file in files:
        if encoding := encoding_seen(file, limits()):
            return encoding
    return None


def write_copy(
    files: Sequence[SourceFile], source: Source, columns: str, out: Path, report: ImportReport
) -> None:
    """Write what a source reads as JSON Lines of our format. Raises NotUsable; nothing is written then."""
    warned = Imported(())
    warn_of_encodings(files, limits(), warned)
    imported = source.read(files, Options(columns=columns, limits=limits())).beside(warned)
    answered = False
    with _copied(out) as path:
        with path.open("wb") as file:
            for row in imported.rows:
                answered = answered or "model_outputs" in row.data
                file.write(encoded(row.data) + b"\n")
        report.verdicts = sum(1 for _verdict in imported.verdicts)
        report.add_left_out(imported.left_out)
        if not path.stat().st_size:
            raise NotUsable("no_rows", file=", ".join(file.name for file in files))
        report.encoding = first_encoding(files)
        fmt: Format = "judge_only" if answered else "infer_and_judge"
        with read(path, format=fmt, limits=limits(), digest=False) as reading:
            report.add_summary(reading.summary)


def write_native(path: Path, out: Path, report: ImportReport) -> None:
    """Write the valid rows of a file in one of our formats as JSON Lines."""
    with read(path, limits=limits(), digest=False) as reading, _copied(out) as copy:
        report.add_summary(reading.summary)
        with copy.open("wb") as file:
            file.writelines(_lines(reading, report.format or ""))


@contextmanager
def _copied(out: Path) -> Iterator[Path]:
    """A path for a file that is copied to `out` once it is complete."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder) / "rows"
        shutil.copyfile(Path(folder) / "rows", out)


def _lines(reading: UploadReading, fmt: str) -> Iterator[bytes]:
    for row in reading:
        if row.valid:
            yield as_json(WholeRow(row.line, True, row.json.decode()), fmt).encode() + b"\n"


@contextmanager
def in_utf8(path: Path, encoding: str) -> Iterator[Path]:
    """The file itself, or a copy in UTF-8 if its encoding was named."""
    if not encoding:
        yield path
        return
    with tempfile.TemporaryDirectory() as folder, Upload(path, limits(), encoding) as upload:
        copy = Path(folder) / path.name
        with copy.open("wb") as file:
            file.writelines(utf8_chunks(upload, encoding))
        yield copy
