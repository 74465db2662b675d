"""manage.py import_results: import external verdicts as a run."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db.models import Q

from datasets.core.imports.model import LeftOut
from datasets.messages import left_out_reason
from datasets.models import Dataset, Version
from evalsite.storage import data_dir
from evalsite.tasks import jobs
from judging.core.results_file.records import RefusedLine
from judging.core.values import ERROR, NO_SCORE, NOT_RUN, SCORED, UNPARSED
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
from judging.messages import refused_sentence
from judging.records.models import Judgement, Run, SourceKind
from judging.transfer.results_import.checklists import verdict_counts
from judging.transfer.results_import.models import ResultsImport, ResultsImportState
from judging.transfer.results_import.services import (
    JOB,
    file_problem,
    import_begin,
    import_confirm,
    import_discard,
)
from judging.transfer.results_import.storing import unsettled_of

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
        warnings: list[LeftOut] = []
        with refusals(), results.open("rb") as file:
            results_import = import_begin(
                version=version_of(dataset, name),
                name=name,
                file=file,
                file_name=results.name,
                by=None,
                wait=True,
            )
            run = import_file(results_import, refused, warnings, strict=options["strict"])
        summary = document(run, refused)
        for warning in warnings:
            detail = f" ({warning.detail})" if warning.detail else ""
            self.stderr.write(left_out_reason(warning.code) + detail)
        self.stdout.write(json_line(summary) if options["json"] else in_words(summary, name))
        if run is None:
            raise CommandError("Nothing was imported.", returncode=HAS_ERRORS)


def version_of(dataset: str, run_name: str) -> Version:
    """The version for DATASET, a file or a name. Raises CannotStart if none is usable, CommandError if none exists."""
    path = Path(dataset)
    if path.exists():
        return version_of_file(path)
    named = Version.objects.filter(dataset__name=dataset, dataset__archived_at=None, number__gt=0)
    extended = named.filter(runs__name=run_name).order_by("-pk").first()
    versions = [version for version in named.order_by("-pk") if version.usable]
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
    same_content = Version.objects.filter(dataset__project=project, sha256=digest, number__gt=0)
    newest_first = same_content.order_by("-pk")
    return next((version for version in newest_first if version.usable), None) or upload(project, path, "")


def import_file(
    results_import: ResultsImport, refused: list[RefusedLine], warnings: list[LeftOut], *, strict: bool
) -> Run | None:
    """Check and import a file. Returns the run, or None if nothing was imported. Raises CannotStart."""
    jobs.run(JOB, results_import.pk, refused=refused, warnings=warnings)
    results_import.refresh_from_db()
    refuse_failed(results_import)
    if (strict and refused) or not (results_import.new or results_import.same):
        import_discard(results_import)
        return None
    refused.clear()
    import_confirm(results_import, wait=True)
    jobs.run(JOB, results_import.pk, refused=refused)
    results_import.refresh_from_db()
    refuse_failed(results_import)
    return results_import.run


def refuse_failed(results_import: ResultsImport) -> None:
    if results_import.state == ResultsImportState.FAILED:
        raise CannotStart(
            f"{results_import.file_name}: {file_problem(results_import.problem, results_import.problem_params)}"
        )


def document(run: Run | None, refused: list[RefusedLine]) -> dict[str, Any]:
    """The document of `import_results --json` (docs/results.md)."""
    of_people = Q(source__kind__in=(SourceKind.RATER, SourceKind.ADJUDICATOR))
    judgements = Judgement.objects.filter(run=run, current=True) if run else Judgement.objects.none()
    counts = verdict_counts(judgements)
    return {
        "run": run.pk if run else None,
        "judgements": counts.total(),
        "scored": counts[SCORED],
        "no_score": counts[NO_SCORE],
        "unparsed": counts[UNPARSED],
        "unsettled": unsettled_of(run) if run else 0,
        "errors": counts[ERROR],
        "not_run": counts[NOT_RUN],
        "people": verdict_counts(judgements.filter(of_people)).total(),
        "refused": [
            {"line": entry.line, "code": entry.code, "message": refused_sentence(entry)} for entry in refused
        ],
    }


def in_words(summary: dict[str, Any], name: str) -> str:
    """A readable summary in a few lines."""
    lines = [
        f"Run {summary['run']} ({name}): {summary['judgements']} judgements ({summary['people']} by people), "
        f"{summary['scored']} scored, {summary['no_score']} without a score, {summary['unparsed']} unparsed, "
        f"{summary['unsettled']} unsettled, "
        f"{summary['errors']} errors, {summary['not_run']} not run."
    ]
    if summary["run"] is None:
        lines = []
    lines += [
        f"  line {entry['line']}: {entry['message']} ({entry['code']})"
        for entry in summary["refused"][:_SHOWN]
    ]
    more = len(summary["refused"]) - _SHOWN
    return "\n".join([*lines, *([f"  and {more} more refused lines"] if more > 0 else [])])
