"""manage.py import_metrics: import a metrics file into a project."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import translation

from datasets.management.commands.validate import terminal_language
from evalsite.accounts.models import Project
from evalsite.storage import data_dir
from judging.core.metrics_file import MetricsFile, MetricsFileError, read_metrics_file
from judging.evaluation import PROJECT
from judging.metrics.transfer import ImportedMetric, metrics_file_sentences, metrics_import, with_endpoints

HAS_ERRORS, WRONG_USAGE = 1, 2


class Command(BaseCommand):
    help = "Import metrics from a YAML file. Existing metrics get a new version."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("yaml", type=Path, metavar="YAML", help="the metrics file")
        parser.add_argument("--project", metavar="SLUG", help="required if there are several projects")
        parser.add_argument("--json", action="store_true", help="one JSON document on standard output")

    def handle(self, *, yaml: Path, project: str | None, **options: Any) -> None:
        with translation.override(terminal_language()):
            file = metrics_of(yaml)
            data_dir.prepare()
            imported = into(project_called(project), file)
        if options["json"]:
            metrics_done = [
                {"name": one.version.metric.name, "version": one.version.number, "done": one.done}
                for one in imported
            ]
            self.stdout.write(json.dumps({"metrics": metrics_done}, ensure_ascii=False))
        else:
            for one in imported:
                self.stdout.write(f"{one.version.metric.name}: version {one.version.number} ({one.done})")
        if file.candidates:
            self.stderr.write("Candidates were ignored: choose them when you create a run.")


def metrics_of(path: Path) -> MetricsFile:
    """Parse a metrics file. Raises CommandError with all errors and their lines (status 1), or if the file can't be
    read (status 2)."""
    try:
        return read_metrics_file(path.read_text(encoding="utf-8-sig"), path.parent)
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}", returncode=WRONG_USAGE) from None
    except UnicodeDecodeError:
        raise CommandError(f"{path} is not UTF-8.", returncode=HAS_ERRORS) from None
    except MetricsFileError as error:
        sentences = "\n".join(metrics_file_sentences(error))
        raise CommandError(f"{path}:\n{sentences}", returncode=HAS_ERRORS) from None


def project_called(slug: str | None) -> Project:
    """The project with this slug, or the only one, created if there is none. Else raises CommandError (status 2)."""
    projects = list(Project.objects.filter(slug=slug) if slug else Project.objects.all()[:2])
    if len(projects) == 1:
        return projects[0]
    if slug or projects:
        known = ", ".join(Project.objects.order_by("slug").values_list("slug", flat=True))
        raise CommandError(f"Name the project: --project SLUG, one of: {known}.", returncode=WRONG_USAGE)
    return Project.objects.create(slug=PROJECT, name="Command line")


def into(project: Project, file: MetricsFile) -> list[ImportedMetric]:
    """Import the metrics. URLs without a key variable are replaced by the project's matching endpoint, if any."""
    placed, _unplaced = with_endpoints(project, file.metrics, keep_named_keys=True)
    try:
        return metrics_import(project=project, metrics=placed, user=None)
    except ValidationError as error:
        raise CommandError(" ".join(error.messages), returncode=HAS_ERRORS) from None
