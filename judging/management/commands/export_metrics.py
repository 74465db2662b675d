"""manage.py export_metrics: write metrics as a metrics file to standard output."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from evalsite.storage import data_dir
from judging.management.command_line import WRONG_USAGE, add_json_option, json_line, project_called
from judging.metrics.models import Metric
from judging.metrics.selectors import newest_version
from judging.metrics.transfer import metrics_text


class Command(BaseCommand):
    help = "Export metrics as YAML, without API keys."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", nargs="+", metavar="NAME", help="a metric's name")
        parser.add_argument("--project", metavar="SLUG", help="required if there are several projects")
        add_json_option(parser)

    def handle(self, *, name: list[str], project: str | None, **options: Any) -> None:
        data_dir.prepare()
        metrics = {metric.name: metric for metric in Metric.objects.filter(project=project_called(project))}
        missing = [metric_name for metric_name in name if metric_name not in metrics]
        if missing:
            raise CommandError(f"There is no metric called {', '.join(missing)}.", returncode=WRONG_USAGE)
        names = list(dict.fromkeys(name))
        text = metrics_text([newest_version(metrics[metric_name]) for metric_name in names])
        if options["json"]:
            self.stdout.write(json_line({"metrics": names, "yaml": text}))
        else:
            self.stdout.write(text, ending="")
