"""manage.py drill: whether a judge notices known defects planted in answers."""

from __future__ import annotations

import json
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from datasets.models import Candidate, Version
from evalsite.rounding import fixed
from evalsite.storage import data_dir
from evalsite.tasks import workers
from judging.core.metric_definition import MetricDefinition
from judging.core.statistics.drill import CONSTANT, HARMFUL, NOISY, ORDER, TEMPTING
from judging.management.command_line import (
    HAS_ERRORS,
    WRONG_USAGE,
    CannotStart,
    add_json_option,
    json_line,
    read_metrics,
    refusals,
)
from judging.management.commands.import_results import version_of
from judging.management.working import ProgressLine, judge_until_finished, refuse_missing_keys, why_stopped
from judging.records.models import Run, RunState
from judging.runs.services import refuse_broken_scripts
from judging.transfer.export.files import jsonl_lines, write_lines
from judging.trust.drills import drill_create, drill_result

_SENTENCES = {
    **dict.fromkeys(HARMFUL, "the verdict falls too seldom where it should"),
    **dict.fromkeys(TEMPTING, "the verdict rises more often than it falls"),
    ORDER: "the side that a change of order turns to is mostly the same",
    NOISY: "two judgements of the same answer agree too little",
    CONSTANT: "nearly all verdicts are the same",
}


class Command(BaseCommand):
    help = "Plant known defects in the answers of a data set, judge them, and write drill.json and judgements.jsonl."

    requires_system_checks = ()  # checks import every view, which takes a third of a second

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("dataset", metavar="DATASET", help="a data set file, or a data set's name")
        parser.add_argument(
            "--metrics", type=Path, required=True, metavar="YAML", help="a file with one metric"
        )
        parser.add_argument("--model", default="", metavar="NAME", help="draw answers of this model only")
        parser.add_argument("--rows", type=int, metavar="N", help="draw at most so many rows")
        parser.add_argument("--seed", type=int, default=0, metavar="S", help="of the draw and the defects")
        parser.add_argument("--out", type=Path, metavar="DIR", required=True, help="folder for the results")
        add_json_option(parser)

    def handle(self, *, dataset: str, metrics: Path, out: Path, **options: Any) -> None:
        if options["rows"] is not None and options["rows"] < 1:
            raise CommandError("--rows takes a number from 1.", returncode=WRONG_USAGE)
        stop = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stop.set())
        data_dir.prepare()
        with refusals():
            metric = the_metric(metrics)
            out.mkdir(parents=True, exist_ok=True)
            version = version_of(dataset, "")
            refuse_unknown_model(version, options["model"])
            run = drill_create(
                version=version,
                metric=metric,
                user=None,
                model=options["model"],
                rows=options["rows"],
                seed=options["seed"],
                only_worker=workers.owner(),
            )
            with ProgressLine(run, shown=sys.stderr.isatty()):
                run = judge_until_finished(run, stop)
            document = write_drill(run, out)
        if run.state != RunState.FINISHED:
            raise CommandError(f"Stopped{why_stopped(run)}.", returncode=HAS_ERRORS)
        if run.errors:
            self.stderr.write(f"{run.errors} of {run.total} judgements failed and count nowhere.")
        self.stdout.write(json_line(document) if options["json"] else in_words(document, out))


def the_metric(path: Path) -> MetricDefinition:
    """The only metric of a file. Raises CommandError, CannotStart or OSError."""
    try:
        file = read_metrics(path)
    except CannotStart as refusal:
        raise CommandError(str(refusal), returncode=WRONG_USAGE) from None
    if len(file.metrics) != 1 or not file.metrics[0].judges:
        raise CommandError(
            f"{path}: a drill takes a file with one metric that has a judge model.", returncode=WRONG_USAGE
        )
    refuse_missing_keys(path, file)
    refuse_broken_scripts(file.metrics)
    return file.metrics[0]


def refuse_unknown_model(version: Version, model: str) -> None:
    """Raise CommandError if the data set has no answers of this model."""
    names = list(Candidate.uploaded.filter(version=version).order_by("name").values_list("name", flat=True))
    if model and model not in names:
        raise CommandError(
            f"The data set has no answers of {model}. Its models: {', '.join(names)}.", returncode=WRONG_USAGE
        )


def write_drill(run: Run, out: Path) -> dict[str, Any]:
    """Write both files; returns the document."""
    document = drill_result(run)
    write_lines(jsonl_lines(run), out / "judgements.jsonl")
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, indent=2) + "\n"
    write_lines([text.encode()], out / "drill.json")
    return document


def in_words(document: dict[str, Any], out: Path) -> str:
    """A line for each defect, and a sentence for each flag."""
    lines = []
    for name, entry in document["defects"].items():
        low, high = entry["ci_low"], entry["ci_high"]
        interval = "" if low is None else f", lower − higher {fixed(low, 2)} to {fixed(high, 2)}"
        few = ", too few" if entry["flagged"] is None else ""
        lines.append(f"  {name}: noticed in {entry['noticed']} of {entry['items']}{interval}{few}")
    flags = [f"Flagged: {name}: {_SENTENCES[name]}." for name in document["flagged"]]
    lines += flags or ["Nothing is flagged."]
    lines.append(f"Written: {out / 'drill.json'} and {out / 'judgements.jsonl'}")
    return "\n".join(lines)
