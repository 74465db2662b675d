"""manage.py import_metrics: import a metrics file into a project."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.utils import translation

from evalsite.storage import data_dir
from evalsite.terminal import terminal_language
from judging.management.command_line import (
    add_json_option,
    json_line,
    paste_hints,
    project_called,
    read_metrics,
    refusals,
)
from judging.metrics.transfer import metrics_import, with_endpoints


class Command(BaseCommand):
    help = "Import metrics from a YAML file. Existing metrics get a new version."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("yaml", type=Path, metavar="YAML", help="the metrics file")
        parser.add_argument("--project", metavar="SLUG", help="required if there are several projects")
        add_json_option(parser)

    def handle(self, *, yaml: Path, project: str | None, **options: Any) -> None:
        with translation.override(terminal_language()):
            with refusals():
                file = read_metrics(yaml)
            for hint in (hint for metric in file.metrics for hint in paste_hints(metric)):
                self.stderr.write(hint)
            data_dir.prepare()
            target = project_called(project)
            # URLs without a key variable are replaced by the project's matching endpoint, if any.
            placed, _unplaced = with_endpoints(target, file.metrics, keep_named_keys=True)
            with refusals():
                imported = metrics_import(project=target, metrics=placed, user=None)
        done = [
            {"name": entry.version.metric.name, "version": entry.version.number, "done": entry.done}
            for entry in imported
        ]
        lines = [f"{metric['name']}: version {metric['version']} ({metric['done']})" for metric in done]
        self.stdout.write(json_line({"metrics": done}) if options["json"] else "\n".join(lines))
        if file.candidates:
            self.stderr.write("Candidates were ignored: choose them when you create a run.")
