"""manage.py evaluate: run a complete evaluation without a browser, with a worker in this process."""

from __future__ import annotations

import json
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connection

from evalsite.storage import data_dir
from judging.evaluation import CannotStart, EvaluatedRun, begin, go_on, work_to_the_end
from judging.runs.models import Run

PROGRESS_SECONDS = 1.0


class Command(BaseCommand):
    help = (
        "Upload FILE, judge it with the metrics of a YAML file, and write judgements.jsonl and report.json."
    )

    requires_system_checks = ()  # checks import every view, which takes a third of a second

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", nargs="?", type=Path, metavar="FILE")
        parser.add_argument("--metrics", type=Path, metavar="YAML", help="the metrics file")
        parser.add_argument("--out", type=Path, metavar="DIR", required=True, help="folder for the results")
        parser.add_argument("--name", default="", help="the run's name, unique in DATA_DIR")
        parser.add_argument("--resume", metavar="RUN", help="resume a stopped run, by name or ID")
        parser.add_argument("--json", action="store_true", help="one JSON document on standard output")

    def handle(self, *, out: Path, json: bool, **options: Any) -> None:
        refuse_wrong_usage(options)
        stop = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stop.set())
        data_dir.prepare()
        try:
            out.mkdir(parents=True, exist_ok=True)
            run = go_on(options["resume"]) if options["resume"] else begin_from(options)
            with ProgressLine(run, shown=sys.stderr.isatty()):
                evaluation = work_to_the_end(run, out, stop)
        except CannotStart as refusal:
            raise CommandError(str(refusal), returncode=1) from None
        except OSError as error:
            raise CommandError(f"{error.filename}: {error.strerror}", returncode=2) from None
        self.stdout.write(as_json(evaluation) if json else in_words(evaluation, out))
        if not evaluation.ended:
            raise CommandError(
                f"Stopped. Nothing is lost: manage.py evaluate --resume {run.pk} --out {out}", returncode=1
            )


def refuse_wrong_usage(options: dict[str, Any]) -> None:
    """Raise CommandError (status 2) for invalid arguments."""
    if options["resume"]:
        if options["file"] or options["metrics"] or options["name"]:
            raise CommandError("--resume can't be combined with FILE, --metrics or --name.", returncode=2)
        return
    if not options["file"] or not options["metrics"]:
        raise CommandError("Usage: manage.py evaluate FILE --metrics YAML --out DIR", returncode=2)
    for path in (options["file"], options["metrics"]):
        try:
            with path.open("rb"):
                pass
        except OSError as error:
            raise CommandError(f"{path}: {error.strerror}", returncode=2) from None


def begin_from(options: dict[str, Any]) -> Run:
    return begin(options["file"], options["metrics"], options["name"])


def as_json(evaluation: EvaluatedRun) -> str:
    return json.dumps(evaluation.document(), ensure_ascii=False, allow_nan=False)


def in_words(evaluation: EvaluatedRun, out: Path) -> str:
    """A readable summary in a few lines."""
    run, result = evaluation.run, evaluation.document()
    lines = [
        f"Run {run.pk} ({run.name}): {run.total} judgements, {result['scored']} scored, {result['no_score']} without "
        f"a score, {result['unparsed']} unparsed, {result['errors']} errors, {result['not_run']} not run."
    ]
    for candidate, metrics in evaluation.report["candidates"].items():
        for metric, figures in metrics.items():
            mean, low, high = figures["mean"], figures["ci_low"], figures["ci_high"]
            shown = "no score" if mean is None else f"{mean:.3f}"
            interval = "" if low is None else f"  (95 % interval {low:.3f} to {high:.3f})"
            lines.append(f"  {candidate} · {metric}: {shown}{interval}")
    lines.append(f"Written: {out / 'judgements.jsonl'} and {out / 'report.json'}")
    return "\n".join(lines)


class ProgressLine:
    """A progress line on standard error, updated once a second; only on a terminal."""

    def __init__(self, run: Run, *, shown: bool) -> None:
        self.run = run
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._show, daemon=True) if shown else None

    def __enter__(self) -> None:
        if self.thread:
            self.thread.start()

    def __exit__(self, *_: object) -> None:
        self.over.set()
        if self.thread:
            self.thread.join()
            sys.stderr.write("\n")

    def _show(self) -> None:
        while not self.over.wait(PROGRESS_SECONDS):
            now = Run.objects.get(pk=self.run.pk)
            sys.stderr.write(f"\r{now.done} of {now.total or '?'} judged, {now.errors} errors ")
            sys.stderr.flush()
        connection.close()
