"""manage.py compare: explain why the results of two runs differ."""

from __future__ import annotations

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from evalsite.storage import data_dir
from judging.comparison.services import comparison_document
from judging.runs.models import Run
from judging.runs.selectors import run_called


class Command(BaseCommand):
    help = "Explain why two runs differ: the difference of the means, split by cause. Read-only."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("run_a", metavar="RUN_A", help="earlier run, name or number")
        parser.add_argument("run_b", metavar="RUN_B", help="later run, name or number")
        parser.add_argument("--json", action="store_true", help="one JSON document on standard output")

    def handle(self, *, run_a: str, run_b: str, **options: Any) -> None:
        data_dir.prepare()
        document = comparison_document(_run(run_a), _run(run_b))
        if options["json"]:
            self.stdout.write(json.dumps(document, ensure_ascii=False, allow_nan=False))
        else:
            self.stdout.write(plain_comparison(document))


def _run(name: str) -> Run:
    found = run_called(name)
    if found is None:
        raise CommandError(f"There is no run called {name} in this DATA_DIR.", returncode=2)
    return found


def plain_comparison(document: dict[str, dict[str, Any]]) -> str:
    """Format the document as lines of text."""
    if not document:
        return "The runs have no metric and candidate in common."
    lines = []
    for metric, candidates in document.items():
        for candidate, change in candidates.items():
            lines.append(f"{metric} · {candidate}: {_figures(change)}")
            lines += [
                f"    {share['difference']:+.3f}  {share['cause']} ({share['items']} items)"
                for share in change["shares"]
            ]
    return "\n".join(lines)


def _figures(change: dict[str, Any]) -> str:
    if change["difference"] is None:
        return "no mean in one of the runs"
    figures = f"{change['a']:.3f} → {change['b']:.3f}, {change['difference']:+.3f}"
    if change["ci_low"] is None:
        return figures
    return f"{figures} [{change['ci_low']:+.3f}, {change['ci_high']:+.3f}] over {change['items']} items"
