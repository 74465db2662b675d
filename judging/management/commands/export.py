"""manage.py export: write a run's judgements with everything that led to them to a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from judging.filters.judgement_filter import ATTEMPTS, CURRENT, Filters
from judging.management.command_line import WRONG_USAGE, run_named
from judging.reports.labels import left_out_sentences
from judging.reports.services import left_out
from judging.transfer.export.files import FORMS, write_lines
from judging.transfer.export.other_tools import not_held_sentences


class Command(BaseCommand):
    help = (
        "Export a run's judgements with prompts and replies, or its verdicts as a results file (results), or its "
        "scores in another tool's format (every_eval_ever, inspect)."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("run", help="run name or number")
        parser.add_argument("--format", choices=FORMS, default="jsonl")
        parser.add_argument(
            "--attempts", choices=ATTEMPTS, default=CURRENT, help="attempts to export (default: %(default)s)"
        )
        parser.add_argument("--out", type=Path, required=True, metavar="FILE")

    def handle(self, *, run: str, out: Path, **options: Any) -> None:
        named_run = run_named(run)
        make, _type = FORMS[options["format"]]
        filters = Filters(attempts=options["attempts"])
        try:
            write_lines(make(named_run, filters), out)
        except OSError as error:
            raise CommandError(
                f"{out} cannot be written: {error.strerror}.", returncode=WRONG_USAGE
            ) from None
        for sentence in [
            *left_out_sentences(left_out(named_run)),
            *not_held_sentences(named_run, filters, options["format"]),
        ]:
            self.stderr.write(f"Excluded: {sentence}")
