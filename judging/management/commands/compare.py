"""manage.py compare: explain why the results of two runs differ."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from evalsite.storage import data_dir
from judging.management.command_line import add_json_option, json_line, run_named
from judging.records.seal import sealed_count
from judging.reports.comparison.services import comparison_document
from judging.reports.labels import decimal, interval, sealed_sentence, shares_signed, signed


class Command(BaseCommand):
    help = "Explain why two runs differ: the difference of the means, split by cause. Read-only."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("run_a", metavar="RUN_A", help="earlier run, name or number")
        parser.add_argument("run_b", metavar="RUN_B", help="later run, name or number")
        add_json_option(parser)

    def handle(self, *, run_a: str, run_b: str, **options: Any) -> None:
        data_dir.prepare()
        runs = run_named(run_a), run_named(run_b)
        document = comparison_document(*runs)
        if sealed := sealed_count(runs):
            self.stderr.write(f"Excluded: {sealed_sentence(sealed)}")
        self.stdout.write(json_line(document) if options["json"] else plain_comparison(document))


def plain_comparison(document: dict[str, dict[str, Any]]) -> str:
    """Format the document as lines of text."""
    if not document:
        return "The runs have no metric and candidate in common."
    lines = []
    for metric, candidates in document.items():
        for candidate, change in candidates.items():
            lines.append(f"{metric} · {candidate}: {_figures(change)}")
            lines += _shares(change)
    return "\n".join(lines)


def _shares(change: dict[str, Any]) -> list[str]:
    shares = change["shares"]
    texts = shares_signed([share["difference"] for share in shares], change["difference"] or 0.0)
    return [
        f"    {text}{_interval(share)}  {share['cause']} ({share['items']} items)"
        for share, text in zip(shares, texts, strict=True)
    ]


def _figures(change: dict[str, Any]) -> str:
    if change["difference"] is None:
        return "no mean in one of the runs"
    figures = f"{decimal(change['a'])} → {decimal(change['b'])}, {signed(change['difference'])}"
    if change["ci_low"] is not None:
        figures = f"{figures}{_interval(change)} over {change['items']} items"
    if change["noise_alone"] is None:
        return figures
    return f"{figures}; the judge's own variation explains ±{decimal(change['noise_alone'])}"


def _interval(figure: dict[str, Any]) -> str:
    return "" if figure["ci_low"] is None else f" {interval(figure['ci_low'], figure['ci_high'])}"
