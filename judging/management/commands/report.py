"""manage.py report: print a run's report as text or JSON, and check requirements on it."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from evalsite.storage import data_dir
from judging.core.requirements import Decision, RequirementError, decide, exit_status, parse_requirement
from judging.management.command_line import WRONG_USAGE, add_json_option, json_line, run_named
from judging.reports.selectors import FieldUnknown
from judging.reports.services import report_by
from judging.reports.text_report import plain_report


class Command(BaseCommand):
    help = (
        "Print a run's report. Read-only. With --require, the exit status is 0 if every requirement is met, 3 if "
        "one is not, 4 if one is undecided."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("run", metavar="RUN", help="run name or number")
        add_json_option(parser)
        parser.add_argument(
            "--by",
            action="append",
            default=[],
            metavar="FIELD",
            help="also grouped by a field of the rows, or by turns, length, language or format; may be repeated",
        )
        parser.add_argument(
            "--require",
            action="append",
            default=[],
            metavar="REQUIREMENT",
            help="e.g. 'qwen3 correctness >= 7.5', '\"a\" - \"b\" correctness >= 0', "
            "'judge correctness kappa_weighted >= 0.6', or 'licence correctness trends'; may be repeated",
        )
        parser.add_argument(
            "--strict", action="store_true", help="count unscored judgements as the worst score of the scale"
        )

    def handle(
        self, *, run: str, by: Sequence[str], require: Sequence[str], strict: bool, **options: Any
    ) -> None:
        data_dir.prepare()
        named_run = run_named(run)
        try:
            requirements = [parse_requirement(text) for text in require]
            document = report_by(named_run, by)
            decisions = [decide(requirement, document, strict=strict) for requirement in requirements]
        except (RequirementError, FieldUnknown) as error:
            raise CommandError(str(error), returncode=WRONG_USAGE) from error
        self._print(document, decisions, as_json=options["json"])
        if status := exit_status(decisions):
            sys.exit(status)

    def _print(self, document: Mapping[str, Any], decisions: Sequence[Decision], *, as_json: bool) -> None:
        sentences = [decision.sentence for decision in decisions]
        if not as_json:
            parts = [plain_report(document), "\n".join(sentences)]
            self.stdout.write("\n\n".join(filter(None, parts)))
            return
        self.stdout.write(json_line(document))
        for sentence in sentences:
            self.stderr.write(sentence)
