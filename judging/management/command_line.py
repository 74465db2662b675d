"""What the commands share: projects, runs, files and data sets named on the command line, errors, and JSON output."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser
from django.utils.translation import gettext as _

from datasets.core.imports.model import NotUsable
from datasets.importing.worker import import_or_wait
from datasets.management.commands.validate import import_hint
from datasets.messages import not_usable, translated
from datasets.models import Version
from datasets.services import dataset_upload
from evalsite.accounts.models import Project
from evalsite.command_line import PROGRAM
from judging.core.metric_definition import MetricDefinition
from judging.core.metrics_file import MetricsFile, MetricsFileError, read_metrics_file
from judging.core.paste_repair import PROBLEMS, repaired, repaired_pattern
from judging.core.placeholders import hints
from judging.core.rules.check import read_program
from judging.core.sandbox.job import SandboxError
from judging.core.scripts import ScriptKind
from judging.messages import hint_sentence, repair_sentences
from judging.metrics.transfer import metrics_file_sentences
from judging.records.models import Run
from judging.rule_messages import problem_sentence
from judging.runs.selectors import find_run

HAS_ERRORS, WRONG_USAGE = 1, 2


class CannotStart(Exception):
    """The run or import is not possible; the message says why."""


@contextmanager
def refusals() -> Iterator[None]:
    """Convert errors of runs and imports, of files that can't be read, and of the sandbox, to CommandError."""
    try:
        yield
    except NotUsable as error:
        raise CommandError(not_usable(error), returncode=HAS_ERRORS) from None
    except CannotStart as refusal:
        raise CommandError(str(refusal), returncode=HAS_ERRORS) from None
    except ValidationError as error:
        raise CommandError("\n".join(error.messages), returncode=HAS_ERRORS) from None
    except SandboxError as error:
        raise CommandError(f"The sandbox can't be used: {error}", returncode=WRONG_USAGE) from None
    except OSError as error:
        raise CommandError(f"{error.filename}: {error.strerror}", returncode=WRONG_USAGE) from None


def add_json_option(parser: CommandParser) -> None:
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")


def json_line(document: Any) -> str:
    return json.dumps(document, ensure_ascii=False, allow_nan=False)


def text_of(path: Path) -> str:
    """The text of a template, script or program file. Raises CommandError if it can't be read."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}", returncode=WRONG_USAGE) from None
    except UnicodeDecodeError:
        raise CommandError(f"{path}: is not UTF-8", returncode=WRONG_USAGE) from None


def read_metrics(path: Path) -> MetricsFile:
    """Parse a metrics file. Raises CannotStart with all errors and their lines, or OSError."""
    try:
        return read_metrics_file(path.read_text(encoding="utf-8-sig"), path.parent)
    except UnicodeDecodeError:
        raise CannotStart(f"{path} is not UTF-8.") from None
    except MetricsFileError as error:
        raise CannotStart(f"{path}:\n" + "\n".join(metrics_file_sentences(error))) from None


def paste_hints(metric: MetricDefinition) -> Iterator[str]:
    """What in a metric was changed by copying it from a document, and does not work: a line each, with its place."""
    for script in metric.scripts:
        yield from script_hints(script.kind, script.source, metric.name)
    for number, judge in enumerate(metric.judges, 1):
        place = f"{metric.name}, {_('Judge model %(number)s') % {'number': number}}"
        for hint in hints(judge.template):
            yield f"{place}, {_('line %(line)s') % {'line': hint.line}}: {hint_sentence(hint)}"
        if isinstance(judge.parse, dict) and (wanted := repaired_pattern(judge.parse.get("regex", ""))):
            yield f"{place}: {translated(PROBLEMS['backslashes'])} {wanted}"
    for problem in read_program(metric.rules).warnings if metric.rules else ():
        if problem.code.startswith("pasted"):
            place = _("line %(line)s") % {"line": problem.place.line}
            yield f"{metric.name}, {place}: {problem_sentence(problem)}"


def script_hints(kind: ScriptKind, source: str, metric: str = "") -> Iterator[str]:
    """The same for a script, of a metric or of no metric."""
    repair = repaired(source, kind)
    for sentence in repair_sentences(repair) if repair else ():
        yield f"{metric}, {kind}: {sentence}" if metric else f"{kind}: {sentence}"


def run_named(name_or_id: str) -> Run:
    """The run with this name or id. Raises CommandError if there is none."""
    run = find_run(name_or_id)
    if run is None:
        raise CommandError(f"There is no run called {name_or_id} in this DATA_DIR.", returncode=WRONG_USAGE)
    return run


def own_project() -> Project:
    """The project for what commands create."""
    return Project.objects.get_or_create(slug="command-line", defaults={"name": "Command line"})[0]


def project_called(slug: str | None) -> Project:
    """The project with this slug, or the only one, created if there is none. Else raises CommandError."""
    projects = list(Project.objects.filter(slug=slug) if slug else Project.objects.all()[:2])
    if len(projects) == 1:
        return projects[0]
    if slug or projects:
        slugs = ", ".join(Project.objects.order_by("slug").values_list("slug", flat=True))
        raise CommandError(f"Name the project: --project SLUG, one of: {slugs}.", returncode=WRONG_USAGE)
    return own_project()


def uploaded(project: Project, path: Path, name: str) -> Version:
    """Store a file as a data set and import it in this process; `name` defaults to the file's."""
    with path.open("rb") as file:
        version = dataset_upload(project=project, name=name, file=file, file_name=path.name, user=None)
    return import_or_wait(version.pk)


def upload(project: Project, path: Path, name: str) -> Version:
    """`uploaded` for a run. Raises CannotStart if the file has invalid rows or can't be read.

    A table or another tool's file is not stored: its import begins the data set.
    """
    if hint := import_hint(path):
        raise CannotStart(f"{path} cannot be judged as it is. {hint}")
    version = uploaded(project, path, name)
    if not version.usable:
        why = f"{version.bad_rows} of {version.rows} rows have errors"
        if version.stopped_by:
            why = f"it was not read to its end ({version.stopped_by})"
        if version.is_spread:
            why = "its objects do not stand one on each line"
        raise CannotStart(
            f"{path} cannot be judged: {why} {version.problem}"
            f"({PROGRAM} validate {path} lists them, --fix repairs what can be repaired)."
        )
    return version
