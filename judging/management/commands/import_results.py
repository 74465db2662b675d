"""manage.py import_results: import external verdicts as a run."""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db.models import Q

from datasets.core.imports.model import NotUsable, Options, SourceFile
from datasets.import_messages import left_out_reason
from datasets.models import Dataset, Version
from datasets.uploads import limits
from evalsite.storage import data_dir
from evalsite.tasks import workers
from judging.core.results_file.records import RefusedLine
from judging.management.command_line import (
    HAS_ERRORS,
    WRONG_USAGE,
    CannotStart,
    add_json_option,
    json_line,
    own_project,
    refusals,
    upload,
)
from judging.runs.models import Run, SourceKind
from judging.runs.results_import.messages import file_problem, refused_sentence
from judging.runs.results_import.models import ResultsImport, ResultsImportState
from judging.runs.results_import.services import import_begin, import_confirm, import_discard, work
from judging.runs.results_import.tool_files import tool_of, write_verdicts

_SHOWN = 20


class Command(BaseCommand):
    help = "Import the judgements of a results file as a run over a data set."

    requires_system_checks = ()  # checks import every view, which takes a third of a second

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("dataset", metavar="DATASET", help="a data set file, or a data set's name")
        parser.add_argument(
            "results", type=Path, metavar="RESULTS", help="a results file, or a file of another tool"
        )
        parser.add_argument("--name", required=True, metavar="RUN", help="the run's name")
        parser.add_argument("--strict", action="store_true", help="import all lines or none")
        add_json_option(parser)

    def handle(self, *, dataset: str, results: Path, name: str, **options: Any) -> None:
        data_dir.prepare()
        refused: list[RefusedLine] = []
        left_out: list[dict[str, Any]] = []
        with refusals(), results.open("rb") as file:
            version = version_of(dataset, name)
            if tool_of(given := SourceFile.of(results)):
                taken, left_out = take_tool_file(given, version, name)
            else:
                taken = import_begin(
                    version=version, name=name, file=file, file_name=results.name, by=None, wait=True
                )
            run = imported(taken, refused, strict=options["strict"], left_out=len(left_out))
        summary = document(run, refused)
        summary["refused"] = [*left_out, *summary["refused"]]
        self.stdout.write(json_line(summary) if options["json"] else in_words(summary, name))
        if run is None:
            raise CommandError("Nothing was imported.", returncode=HAS_ERRORS)


def take_tool_file(
    file: SourceFile, version: Version, name: str
) -> tuple[ResultsImport, list[dict[str, Any]]]:
    """Create an import of another tool's verdicts on the version's rows. Returns it with a list of omitted records.

    Raises NotUsable or ValidationError.
    """
    source = tool_of(file)
    if source is None:
        raise NotUsable("no_table", file=file.name)
    found = source.read([file], Options(limits=limits()))
    with tempfile.TemporaryFile() as verdicts:
        write_verdicts(found, version, verdicts)
        verdicts.seek(0)
        taken = import_begin(
            version=version, name=name, file=verdicts, file_name=file.name, by=None, wait=True
        )
    summary = [
        {"line": one.place.line, "code": one.code, "message": left_out_reason(one.code)}
        for one in found.left_out
    ]
    return taken, summary


def version_of(dataset: str, run_name: str) -> Version:
    """The version for DATASET, a file or a name. Raises CannotStart if none is usable, CommandError if none exists."""
    path = Path(dataset)
    if path.exists():
        return version_of_file(path)
    known = Version.objects.filter(dataset__name=dataset, dataset__archived_at=None, number__gt=0)
    extended = known.filter(runs__name=run_name).order_by("-pk").first()
    versions = [one for one in known.order_by("-pk") if one.usable]
    if extended is not None or versions:
        return extended or versions[0]
    if Dataset.objects.filter(name=dataset).exists():
        raise CannotStart(f"The data set {dataset} has no version that a run can use.")
    raise CommandError(f"There is no file and no data set called {dataset}.", returncode=WRONG_USAGE)


def version_of_file(path: Path) -> Version:
    """The existing version with the content of this file, or a new upload."""
    project = own_project()
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    known = Version.objects.filter(dataset__project=project, sha256=digest, number__gt=0).order_by("-pk")
    return next((one for one in known if one.usable), None) or upload(project, path, "")


def imported(
    taken: ResultsImport, refused: list[RefusedLine], *, strict: bool, left_out: int = 0
) -> Run | None:
    """Check and import a file. Returns the run, or None if nothing was imported. Raises CannotStart."""
    work(taken.pk, workers.owner(), refused=refused)
    taken.refresh_from_db()
    refuse_failed(taken)
    if (strict and (refused or left_out)) or not (taken.new or taken.same):
        import_discard(taken)
        return None
    refused.clear()
    import_confirm(taken, wait=True)
    work(taken.pk, workers.owner(), refused=refused)
    taken.refresh_from_db()
    refuse_failed(taken)
    return taken.run


def refuse_failed(taken: ResultsImport) -> None:
    if taken.state == ResultsImportState.FAILED:
        raise CannotStart(f"{taken.file_name}: {file_problem(taken.problem, taken.problem_params)}")


def document(run: Run | None, refused: list[RefusedLine]) -> dict[str, Any]:
    """The JSON document (spec: results, `import_results --json`)."""
    of_people = Q(current=True, source__kind__in=(SourceKind.RATER, SourceKind.ADJUDICATOR))
    return {
        "run": run.pk if run else None,
        "judgements": run.total if run else 0,
        "scored": run.scored if run else 0,
        "no_score": run.no_score if run else 0,
        "unparsed": run.unparsed if run else 0,
        "errors": run.errors if run else 0,
        "not_run": run.not_run if run else 0,
        "people": run.judgements.filter(of_people).count() if run else 0,
        "refused": [
            {"line": one.line, "code": one.code, "message": refused_sentence(one)} for one in refused
        ],
    }


def in_words(summary: dict[str, Any], name: str) -> str:
    """A readable summary in a few lines."""
    lines = [
        f"Run {summary['run']} ({name}): {summary['judgements']} judgements ({summary['people']} by people), "
        f"{summary['scored']} scored, {summary['no_score']} without a score, {summary['unparsed']} unparsed, "
        f"{summary['errors']} errors, {summary['not_run']} not run."
    ]
    if summary["run"] is None:
        lines = []
    lines += [
        f"  line {one['line']}: {one['message']} ({one['code']})" for one in summary["refused"][:_SHOWN]
    ]
    more = len(summary["refused"]) - _SHOWN
    return "\n".join([*lines, *([f"  and {more} more refused lines"] if more > 0 else [])])
