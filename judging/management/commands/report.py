"""manage.py report: the figures of a run, for people or as the JSON document."""

from __future__ import annotations

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from evalsite.storage import data_dir
from judging.reports.plain import plain_report
from judging.reports.services import report_document
from judging.runs.selectors import run_called


class Command(BaseCommand):
    help = "The figures of a run. Changes nothing."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("run", metavar="RUN", help="its name or its number")
        parser.add_argument("--json", action="store_true", help="one JSON document on standard output")

    def handle(self, *, run: str, **options: Any) -> None:
        data_dir.prepare()
        found = run_called(run)
        if found is None:
            raise CommandError(f"There is no run called {run} in this DATA_DIR.", returncode=2)
        document = report_document(found)
        if options["json"]:
            self.stdout.write(json.dumps(document, ensure_ascii=False, allow_nan=False))
        else:
            self.stdout.write(plain_report(document))
