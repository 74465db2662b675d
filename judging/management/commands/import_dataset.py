"""manage.py import_dataset: import spreadsheets, Parquet and files of other tools as a data set and a run."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import translation

from datasets.core.imports.model import NotUsable, SourceFile
from datasets.core.imports.registry import recognise
from datasets.core.imports.table import is_native
from datasets.import_messages import left_out_reason, not_usable_sentence, source_name
from datasets.importing.worker import import_or_wait
from datasets.management.commands.validate import terminal_language
from datasets.messages import message
from datasets.models import FileImport, StoredFinding, Version, VersionState
from datasets.versions.file_import import draft_change, draft_of_files, import_commit
from datasets.versions.row_findings import as_finding
from evalsite.accounts.models import Project
from evalsite.storage import data_dir
from evalsite.tasks import workers
from judging.core.results_file.records import RefusedLine
from judging.management.command_line import (
    HAS_ERRORS,
    CannotStart,
    add_json_option,
    json_line,
    own_project,
    refusals,
    uploaded,
)
from judging.management.commands.import_results import imported, refuse_failed, take_tool_file
from judging.runs.models import Run
from judging.runs.results_import.messages import refused_sentence
from judging.runs.results_import.models import ResultsImport
from judging.runs.results_import.services import work
from judging.runs.results_import.tool_files import free_name

NATIVE = "native"
"""The source of a file in one of the four native formats."""
_SHOWN = 20
_PAUSE = 0.2  # seconds


@dataclass(slots=True)
class TakenFiles:
    """The result of an import."""

    version: Version
    source: str
    left_out: list[dict[str, Any]] = field(default_factory=list)
    refused: list[RefusedLine] = field(default_factory=list)
    run: Run | None = None


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
            help="for tables: question, messages, system, reference, model, answer, answer:MODEL, score:METRIC, "
            "field:NAME, each with its column (default: guessed)",
        )
        add_json_option(parser)

    def handle(self, *, files: list[Path], name: str, columns: str, **options: Any) -> None:
        data_dir.prepare()
        with translation.override(terminal_language()):
            with refusals():
                taken = take(files, name, columns)
            summary = document(taken)
            self.stdout.write(json_line(summary) if options["json"] else in_words(summary))
        if not taken.version.valid_rows:
            raise CommandError("Nothing usable: no row is valid.", returncode=HAS_ERRORS)


def take(paths: Sequence[Path], name: str, columns: str) -> TakenFiles:
    """Import the files. Raises NotUsable, CannotStart, ValidationError or OSError."""
    files = [SourceFile.of(path, _name_of(path, paths)) for path in paths]
    for path in paths:
        path.open("rb").close()
    project = own_project()
    source = recognise(files)
    if source is not None:
        return _of_tool(project, files, source, name, columns)
    native = [path for path, file in zip(paths, files, strict=True) if is_native(file)]
    rest = [file for path, file in zip(paths, files, strict=True) if path not in native]
    if len(native) != 1 or columns or (rest and recognise(rest) is None):
        raise NotUsable("no_table", file=", ".join(file.name for file in files))
    return _of_native(project, native[0], rest, name)


def _name_of(path: Path, paths: Sequence[Path]) -> str:
    """The file's name; with its folder if names are not unique, or if the folder tells the file's purpose."""
    alike = sum(other.name == path.name for other in paths) > 1
    return f"{path.parent.name}-{path.name}" if alike or "reference" in path.parent.name else path.name


def _of_tool(
    project: Project, files: Sequence[SourceFile], source: Any, name: str, columns: str
) -> TakenFiles:
    with ExitStack() as opened:
        given = [(opened.enter_context(file.open_file()), file.name) for file in files]
        draft = draft_of_files(project=project, name=name, given=given, source=source, user=None)
    if columns:
        draft_change(draft, columns=columns, sheet="")
    version = import_or_wait(import_commit(draft=draft, user=None).pk, workers.owner())
    done = FileImport.objects.get(pk=draft.pk)
    if done.problem:
        raise CannotStart(not_usable_sentence(done.problem["code"], done.problem["params"]))
    if version.state != VersionState.READY:
        raise CannotStart(f"{files[0].name}: {version.problem}")
    taken = TakenFiles(version, source.name, [_left_out(*one) for one in done.left_out])
    for waiting in ResultsImport.objects.filter(version=version):
        ended = _imported(waiting)
        refuse_failed(ended)
        taken.refused += [RefusedLine(line, code, params) for line, code, params in ended.listed]
        taken.run = ended.run
    return taken


def _imported(waiting: ResultsImport) -> ResultsImport:
    """Import in this process, or wait for the worker that does."""
    while waiting.under_way:
        work(waiting.pk, workers.owner())
        waiting.refresh_from_db()
        if waiting.under_way:
            time.sleep(_PAUSE)
    return waiting


def _of_native(project: Project, path: Path, rest: Sequence[SourceFile], name: str) -> TakenFiles:
    """Import a file in a native format, and verdicts on its answers from files of other tools."""
    taken = TakenFiles(uploaded(project, path, name), NATIVE)
    for file in rest:
        run = taken.run.name if taken.run else free_name(taken.version)
        waiting, left_out = take_tool_file(file, taken.version, run)
        taken.left_out += [
            _finding(one["line"], one["code"], f"{file.name}: {one['message']}") for one in left_out
        ]
        refused: list[RefusedLine] = []
        taken.run = imported(waiting, refused, strict=False) or taken.run
        taken.refused += refused
    return taken


def _left_out(file: str, line: int | None, sheet: str, code: str, detail: str) -> dict[str, Any]:
    where = f"{file}, {sheet}" if sheet else file
    said = f"{where}: {left_out_reason(code)}" + (f" ({detail})" if detail else "")
    return _finding(line, code, said)


def _finding(line: int | None, code: str, said: str, **more: Any) -> dict[str, Any]:
    """A finding in the format of `validate --json`."""
    given = {"line": line, "column": None, "path": None, "code": code, "severity": "warning", "message": said}
    return given | {"repair": None} | more


def document(taken: TakenFiles) -> dict[str, Any]:
    """The JSON document (spec: results, `import_dataset --json`)."""
    version, run = taken.version, taken.run
    return {
        "dataset": version.dataset.name,
        "version": version.number,
        "format": version.format or None,
        "source": taken.source,
        "rows": version.rows,
        "valid_rows": version.valid_rows,
        "models": list(version.models_found),
        "verdicts": run.total if run else 0,
        "run": run.pk if run else None,
        "findings": [
            *taken.left_out,
            *(_finding(one.line, one.code, refused_sentence(one)) for one in taken.refused),
            *(_stored(one) for one in StoredFinding.objects.filter(version=version).order_by("line", "pk")),
        ],
    }


def _stored(finding: StoredFinding) -> dict[str, Any]:
    said = message(as_finding(finding))
    more = {"column": finding.column, "path": finding.path or None, "repair": finding.repair or None}
    return _finding(finding.line, finding.code, said, severity=finding.severity, **more)


def in_words(summary: dict[str, Any]) -> str:
    """A readable summary in a few lines."""
    lines = [
        f"{summary['dataset']}, version {summary['version']} ({source_name(summary['source'])}): "
        f"{summary['rows']} rows, {summary['valid_rows']} valid, {len(summary['models'])} models, "
        f"{summary['verdicts']} verdicts" + (f" in run {summary['run']}." if summary["run"] else ".")
    ]
    for one in summary["findings"][:_SHOWN]:
        where = f"line {one['line']}: " if one["line"] else ""
        lines.append(f"  {where}{one['message']} ({one['code']})")
    more = len(summary["findings"]) - _SHOWN
    return "\n".join([*lines, *([f"  and {more} more"] if more > 0 else [])])
