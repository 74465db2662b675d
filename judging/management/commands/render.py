"""manage.py render: render a template with one row and answer of a file, without a database."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from datasets.core.reader import read
from datasets.core.rows import RawRow
from datasets.core.variables import row_and_response, row_data
from evalsite.command_line import PROGRAM
from evalsite.rounding import significant
from judging.core.prompts import RenderItem, render
from judging.core.sandbox.job import SandboxFailure
from judging.core.sandbox.pool import Sandbox
from judging.core.scripts import run_preprocess
from judging.management.command_line import (
    HAS_ERRORS,
    WRONG_USAGE,
    add_json_option,
    json_line,
    refusals,
    text_of,
)
from judging.sandboxes import shared_sandbox

Pair = tuple[dict[str, Any], dict[str, Any]]


class Command(BaseCommand):
    help = "Render the template file TEMPLATE with a row of FILE and one of its answers."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE")
        parser.add_argument("template", type=Path, metavar="TEMPLATE")
        parser.add_argument("--row", type=int, metavar="LINE", help="line where the row starts")
        parser.add_argument("--model", metavar="NAME", help="candidate name")
        parser.add_argument("--response", type=int, metavar="K", help="number of the answer, from 1")
        parser.add_argument("--preprocess", type=Path, metavar="SCRIPT")
        parser.add_argument("--min-score", type=score, default=1)
        parser.add_argument("--max-score", type=score, default=10)
        add_json_option(parser)

    def handle(self, *, file: Path, template: Path, **options: Any) -> None:
        scale = checked_scale(options["min_score"], options["max_score"])
        source = text_of(template)
        script = text_of(options["preprocess"]) if options["preprocess"] else None
        pair = select_pair(file, options["row"], options["model"], options["response"])
        with refusals():
            document = render_document(shared_sandbox(), source, script, pair, scale)
        if options["json"]:
            self.stdout.write(json_line(document))
        elif document["prompt"] is not None:
            self.stdout.write(document["prompt"], ending="")
        if document["error"]:
            raise CommandError(in_words(document["error"]), returncode=HAS_ERRORS)


def score(text: str) -> float:
    """Parse an end of the scale. argparse reports a ValueError as wrong usage."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def checked_scale(low: float, high: float) -> tuple[float, float]:
    """Both ends of the scale. Raises CommandError (status 2) unless `low` is below `high`."""
    if low >= high:
        raise CommandError(
            f"--min-score {significant(low, 6)} must be below --max-score {significant(high, 6)}.",
            returncode=WRONG_USAGE,
        )
    return low, high


def select_pair(file: Path, line: int | None, model: str | None, number: int | None) -> Pair:
    """The row and answer as templates see them. Raises CommandError (status 2) if not found."""
    with refusals(), read(file, digest=False) as reading:
        row = next((row for row in reading if (row.valid if line is None else row.line == line)), None)
        fmt = reading.detection.format
    if row is None or fmt is None:
        where = "has no valid row" if line is None else f"has no row that starts at line {line}"
        raise CommandError(f"{file} {where}.", returncode=WRONG_USAGE)
    if not row.valid:
        raise CommandError(
            f"The row at line {line} has errors; run {PROGRAM} validate to list them.", returncode=WRONG_USAGE
        )
    return row_and_response(row_data(row.data, fmt), answer_of(row, model, number))


def answer_of(row: RawRow, model: str | None, number: int | None) -> str:
    """The JSON of the selected answer, by default the first; an empty object if the row has none."""
    answers = [answer for answer in row.responses if model is None or answer[0] == model]
    if model is None:
        answers = [answer for answer in answers if answer[0] == answers[0][0]]
    if not row.responses and model is None and number is None:
        return "{}"
    response_number = 1 if number is None else number
    for _, index, text in answers:
        if index == response_number:
            return text
    whose = f"of model {model!r}" if model is not None else "of any model"
    raise CommandError(
        f"The row at line {row.line} has no answer {response_number} {whose}.", returncode=WRONG_USAGE
    )


def render_document(
    sandbox: Sandbox, source: str, script: str | None, pair: Pair, scores: tuple[float, float]
) -> dict[str, Any]:
    """The JSON document."""
    data, response = pair
    result = None
    if script is not None:
        (ran,) = run_preprocess(sandbox, script, [pair])
        if ran.failure:
            error = failure_document(ran.failure)
            return {"prompt": None, "preprocess_result": None, "undefined": [], "error": error}
        result = ran.result
        data |= ran.changed["data"]
        response |= ran.changed["response"]
    item = RenderItem(data, response, result, min_score=scores[0], max_score=scores[1])
    (prompt,) = render(sandbox, source, [item])
    return {
        "prompt": prompt.text,
        "preprocess_result": result,
        "undefined": list(dict.fromkeys(note.name for note in prompt.undefined)),
        "error": failure_document(prompt.error) if prompt.error else None,
    }


def failure_document(failure: SandboxFailure) -> dict[str, Any]:
    return {"line": failure.line, "message": failure.message}


def in_words(error: dict[str, Any]) -> str:
    return f"line {error['line']}: {error['message']}" if error["line"] else str(error["message"])
