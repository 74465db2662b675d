"""manage.py export: write a run's judgements with everything that led to them to a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from judging.management.command_line import WRONG_USAGE, run_named
from judging.reports.labels import left_out_sentences
from judging.reports.services import left_out
from judging.runs.export.files import FORMS, write_lines
from judging.runs.export.other_tools import not_held_sentences
from judging.runs.filters import ATTEMPTS, CURRENT, Filters


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
        found = run_named(run)
        make, _type = FORMS[options["format"]]
        meant = Filters(attempts=options["attempts"])
        try:
            write_lines(make(found, meant), out)
        except OSError as error:
            raise CommandError(
                f"{out} cannot be written: {error.strerror}.", returncode=WRONG_USAGE
            ) from None
        for sentence in [
            *left_out_sentences(left_out(found)),
            *not_held_sentences(found, meant, options["format"]),
        ]:
            self.stderr.write(f"Excluded: {sentence}")
