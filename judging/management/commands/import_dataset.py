"""manage.py import_dataset: import spreadsheets, Parquet and files of other tools as a data set and a run."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import translation

from datasets.core.imports import table
from datasets.core.imports.encodings import is_known
from datasets.core.imports.json_records import is_blank
from datasets.core.imports.model import LeftOut, NotUsable, Place, Source, SourceFile
from datasets.core.imports.registry import recognise
from datasets.importing.worker import import_or_wait
from datasets.messages import not_usable_sentence, source_name
from datasets.models import FileImport, VersionState
from datasets.versions.file_import import draft_change, draft_encoding, draft_of_files, import_commit
from evalsite.accounts.models import Project
from evalsite.storage import data_dir
from evalsite.tasks import jobs
from evalsite.terminal import terminal_language
from judging.core.results_file.records import RefusedLine
from judging.evidence.opening import JOB as VERIFY
from judging.management.command_line import (
    HAS_ERRORS,
    WRONG_USAGE,
    CannotStart,
    add_json_option,
    json_line,
    own_project,
    refusals,
    uploaded,
)
from judging.management.commands.import_results import import_file, refuse_failed
from judging.management.import_report import (
    ImportReport,
    add_encoding,
    first_encoding,
    in_utf8,
    sentence,
    write_copy,
    write_native,
)
from judging.messages import refused_sentence
from judging.records.models import Judgement, Run
from judging.transfer.results_import.checklists import verdict_counts
from judging.transfer.results_import.models import OpenedEvidence, ResultsImport
from judging.transfer.results_import.services import JOB, import_begin
from judging.transfer.results_import.tool_files import free_name

NATIVE = "native"
"""The source of a file in one of the four native formats."""
_SHOWN = 20
_PAUSE = 0.2  # seconds


class Command(BaseCommand):
    help = (
        "Import spreadsheets, CSV, Parquet, JSON of any shape or files of other tools as a data set, and their "
        "judgements as a run. Pass files that belong together in one command."
    )
    requires_system_checks = ()  # checks import every view, which takes a third of a second

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
        parser.add_argument("--name", default="", help="the data set's name (default: the file's)")
        parser.add_argument(
            "--columns",
            default="",
            metavar="question=…,answer=…",
            help="for tables: question, messages, system, reference, model, answer, answer:MODEL, outputs, "
            "score:METRIC, field:NAME, each with its column (default: guessed)",
        )
        parser.add_argument(
            "--encoding",
            default="",
            metavar="NAME",
            help="of the text files, such as gb18030, big5 or cp1252 (default: detected)",
        )
        parser.add_argument(
            "--out",
            type=Path,
            metavar="FILE",
            help="write the rows as JSON Lines of our format, and store nothing",
        )
        add_json_option(parser)

    def handle(self, *, files: list[Path], encoding: str, out: Path | None, **options: Any) -> None:
        if encoding and not is_known(encoding):
            raise CommandError(f"There is no text encoding called {encoding}.", returncode=WRONG_USAGE)
        if out is None:
            data_dir.prepare()
        with translation.override(terminal_language()), refusals():
            source_files = [SourceFile.of(path, _name_of(path, files), encoding) for path in files]
            for path in files:
                path.open("rb").close()
            if out is not None and out.exists() and any(out.samefile(path) for path in files):
                raise CommandError(f"{out} is one of the files; name another.", returncode=WRONG_USAGE)
            report = ImportReport()
            try:
                self._import_files(source_files, files, report, out, **options)
            except (NotUsable, CannotStart) as error:
                report.problem = sentence(error) if isinstance(error, NotUsable) else str(error)
                add_encoding(source_files, report)
            if report.source or report.encoding:
                document = report.document()
                self.stdout.write(json_line(document) if options["json"] else in_words(document))
        if report.problem:
            raise CommandError(report.problem, returncode=HAS_ERRORS)
        if not report.valid_rows:
            raise CommandError("Nothing usable: no row is valid.", returncode=HAS_ERRORS)

    def _import_files(
        self,
        files: Sequence[SourceFile],
        paths: Sequence[Path],
        report: ImportReport,
        out: Path | None,
        *,
        name: str,
        columns: str,
        **_options: Any,
    ) -> None:
        """Import the files. Raises NotUsable, CannotStart, ValidationError or OSError."""
        if all(map(is_blank, files)):
            raise NotUsable("empty", file=", ".join(file.name for file in files))
        source = table.SOURCE if columns else recognise(files)
        if source is not None:
            report.source = source.name
            if out is not None:
                write_copy(files, source, columns, out, report)
            else:
                _of_tool(own_project(), files, source, name, columns, report)
            return
        native = [path for path, file in zip(paths, files, strict=True) if table.is_native(file)]
        rest = [file for path, file in zip(paths, files, strict=True) if path not in native]
        if len(native) != 1 or (rest and recognise(rest) is None):
            raise not_a_table(files)
        report.source = NATIVE
        with in_utf8(native[0], files[0].encoding) as path:
            report.encoding = files[0].encoding or None
            if out is not None:
                write_native(path, out, report)
            else:
                _of_native(own_project(), path, rest, name or native[0].stem, report)


def not_a_table(files: Sequence[SourceFile]) -> NotUsable:
    """Why the files cannot be imported: one that is no text, or no table."""
    for file in files:
        with file.upload() as upload:
            if kind := upload.other_kind():
                return NotUsable("other_kind", kind=kind, file=file.name)
    return NotUsable("no_table", file=", ".join(file.name for file in files))


def _name_of(path: Path, paths: Sequence[Path]) -> str:
    """The file's name; with its folder if names are not unique, or if the folder tells the file's purpose."""
    alike = sum(other.name == path.name for other in paths) > 1
    return f"{path.parent.name}-{path.name}" if alike or "reference" in path.parent.name else path.name


def _of_tool(
    project: Project,
    files: Sequence[SourceFile],
    source: Source,
    name: str,
    columns: str,
    report: ImportReport,
) -> None:
    with ExitStack() as opened:
        named_files = [(opened.enter_context(file.open_file()), file.name) for file in files]
        draft = draft_of_files(project=project, name=name, named_files=named_files, source=source, user=None)
    draft_encoding(draft, files[0].encoding)
    draft_change(draft, columns=columns, sheet="")
    version = import_or_wait(import_commit(draft=draft, user=None).pk)
    done = FileImport.objects.get(pk=draft.pk)
    report.add_left_out(LeftOut(Place(*where), code, detail) for *where, code, detail in done.left_out)
    if done.problem:
        raise CannotStart(not_usable_sentence(done.problem["code"], done.problem["params"]))
    if version.state != VersionState.READY:
        raise CannotStart(f"{files[0].name}: {version.problem}")
    report.encoding = first_encoding(files)
    report.add_version(version)
    for waiting in ResultsImport.objects.filter(version=version):
        ended = _run_import(waiting)
        refuse_failed(ended)
        _add_run(report, [RefusedLine(line, code, params) for line, code, params in ended.listed], ended.run)
        for pk in OpenedEvidence.objects.filter(results_import=ended).values_list("pk", flat=True):
            jobs.run(VERIFY, pk)


def _run_import(waiting: ResultsImport) -> ResultsImport:
    """Import in this process, or wait for the worker that does."""
    while waiting.under_way:
        jobs.run(JOB, waiting.pk)
        waiting.refresh_from_db()
        if waiting.under_way:
            time.sleep(_PAUSE)
    return waiting


def _of_native(
    project: Project, path: Path, rest: Sequence[SourceFile], name: str, report: ImportReport
) -> None:
    """Import a file in a native format, and verdicts on its answers from files of other tools."""
    version = uploaded(project, path, name)
    report.add_version(version)
    for file in rest:
        run = Run.objects.get(pk=report.run).name if report.run else free_name(version)
        refused: list[RefusedLine] = []
        warnings: list[LeftOut] = []
        with file.open_file() as opened:
            waiting = import_begin(
                version=version, name=run, file=opened, file_name=file.name, by=None, wait=True
            )
        taken = import_file(waiting, refused, warnings, strict=False)
        report.add_left_out(warnings)
        _add_run(report, refused, taken)


def _add_run(report: ImportReport, refused: Sequence[RefusedLine], run: Run | None) -> None:
    report.left_out += [
        {"line": entry.line, "code": entry.code, "message": refused_sentence(entry)} for entry in refused
    ]
    if run is not None:
        report.run = run.pk
        report.verdicts = verdict_counts(Judgement.objects.filter(run=run, current=True)).total()


def in_words(summary: dict[str, Any]) -> str:
    """A readable summary in a few lines."""
    figures = (
        f"{summary['rows']} rows, {summary['valid_rows']} valid, {len(summary['models'])} models, "
        f"{summary['answers']} answers, {summary['references']} references, {summary['verdicts']} verdicts"
    )
    lines = []
    if summary["rows"]:
        stored = f"{summary['dataset']}, version {summary['version']} " if summary["dataset"] else ""
        run = f" in run {summary['run']}" if summary["run"] else ""
        lines.append(f"{stored}({source_name(summary['source'] or '')}): {figures}{run}.")
    listed = [*summary["left_out"], *summary["findings"]]
    for entry in listed[:_SHOWN]:
        where = f"line {entry['line']}: " if entry["line"] else ""
        lines.append(f"  {where}{entry['message']} ({entry['code']})")
    more = len(listed) - _SHOWN
    return "\n".join([*lines, *([f"  and {more} more"] if more > 0 else [])])
