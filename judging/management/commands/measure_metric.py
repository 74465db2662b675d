"""manage.py measure_metric: measure a gallery metric with a judge model, and write its record."""

from __future__ import annotations

import datetime
import signal
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from django.core.management.base import BaseCommand, CommandError, CommandParser

from evalsite.rounding import fixed
from evalsite.storage import data_dir
from evalsite.web.numbers import whole
from judging.core.gallery import LANGUAGES, Card, Example, gallery, read_examples
from judging.core.gallery.fields import guessed_fields, unmapped
from judging.core.gallery.measured import Pair, measured
from judging.core.gallery.record import EXAMPLES, Record
from judging.core.metric_definition import JudgeModel, MetricDefinition
from judging.endpoints.models import Endpoint
from judging.management.command_line import HAS_ERRORS, WRONG_USAGE, add_json_option, refusals
from judging.messages import reason_sentence
from judging.metrics.gallery.page import with_endpoint
from judging.runs.services import frozen
from judging.sandboxes import shared_sandbox
from judging.trust.gallery.labelled import answers_of
from judging.trust.gallery.measuring import Judged, Measuring, Spending

CALLS_PER_CALL = 8
"""The budget, as a multiple of the calls that are needed where none is repeated: the tries that a request may take."""


class Command(BaseCommand):
    help = "Judge labelled answers with a metric of the gallery, and write how well the judge agrees with the labels."

    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", metavar="NAME", help="the metric's id in the gallery, such as faithful")
        judge = parser.add_mutually_exclusive_group()
        judge.add_argument("--endpoint", help="an endpoint of this DATA_DIR, by name or ID")
        judge.add_argument("--url", help="address of a server that speaks chat completions, with --model")
        parser.add_argument("--model", default="", help="with --url")
        parser.add_argument(
            "--api-key-env", default="", metavar="V", help="environment variable with the key"
        )
        parser.add_argument(
            "--data",
            type=Path,
            metavar="FILE",
            help="labelled answers as in examples.jsonl; else the examples",
        )
        parser.add_argument("--lang", choices=LANGUAGES, default="en", help="language of the prompt")
        parser.add_argument("--out", type=Path, metavar="FILE", required=True, help="file for the record")
        add_json_option(parser)

    def handle(self, *, name: str, out: Path, **options: Any) -> None:
        card = gallery().get(name)
        if card is None:
            raise CommandError(f"There is no metric {name} in the gallery.", returncode=WRONG_USAGE)
        with refusals():
            examples = read_labelled(options["data"]) if options["data"] else card.examples
            out.open("ab").close()
        if not examples:
            raise CommandError(
                f"{name} has no examples; give labelled answers by --data.", returncode=WRONG_USAGE
            )
        data_dir.prepare()
        definition = definition_of(card, examples, options)
        record, problem = record_measured(card, definition, examples, options)
        if record.n + record.unread:
            with refusals():
                out.write_bytes(record.to_json())
        self.stdout.write(record.to_json().decode().strip() if options["json"] else in_words(card, record))
        if problem:
            code, _colon, detail = problem.partition(": ")
            why = reason_sentence(code, detail)
            raise CommandError(f"Stopped before all answers were judged. {why}", returncode=HAS_ERRORS)


def read_labelled(path: Path) -> list[Example]:
    """The labelled answers of a file. Raises CommandError with the line, or OSError."""
    try:
        return read_examples(path.read_bytes())
    except msgspec.DecodeError as error:
        place = ", ".join(getattr(error, "__notes__", []))
        raise CommandError(f"{path}, {place}: {error}", returncode=HAS_ERRORS) from None


def definition_of(card: Card, examples: list[Example], options: Mapping[str, Any]) -> MetricDefinition:
    """The metric with its judge and the columns of the labelled answers. Raises CommandError."""
    columns = dict.fromkeys(column for example in examples for column in example.row)
    mapping = guessed_fields(card.needs, columns) if options["data"] else card.example_mapping(examples)
    if missing := unmapped(card.needs, mapping):
        raise CommandError(
            f"No column of {options['data']} holds {', '.join(missing)}.", returncode=HAS_ERRORS
        )
    definition = card.definition(options["lang"], mapping)
    if not card.asks_judge:
        return definition
    if options["endpoint"]:
        return frozen(with_endpoint(definition, endpoint_called(options["endpoint"])))
    if not (options["url"] and options["model"]):
        raise CommandError(
            "Name the judge: --endpoint ENDPOINT, or --url URL --model M.", returncode=WRONG_USAGE
        )
    judge = JudgeModel(
        name=options["model"],
        url=options["url"],
        model=options["model"],
        api_key_env=options["api_key_env"],
        template=definition.judges[0].template,
        both_orders=definition.judges[0].both_orders,
    )
    return msgspec.structs.replace(definition, judges=(judge,))


def endpoint_called(name_or_id: str) -> Endpoint:
    """The endpoint with this name or id. Raises CommandError if there is none, or several with the name."""
    named = list(Endpoint.objects.filter(name=name_or_id, archived_at=None)[:2])
    rows = named or list(Endpoint.objects.filter(pk=whole(name_or_id) or 0))
    if len(rows) == 1:
        return rows[0]
    why = (
        "Several endpoints have this name; give the ID" if rows else "There is no endpoint of this name or ID"
    )
    raise CommandError(f"{why}: {name_or_id}.", returncode=WRONG_USAGE)


def record_measured(
    card: Card, definition: MetricDefinition, examples: list[Example], options: Mapping[str, Any]
) -> tuple[Record, str]:
    """The record, and the code of what ended the work early."""
    answers, stop = answers_of(card, examples), threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    work = Measuring(
        definition=definition,
        answers=answers,
        spending=Spending(CALLS_PER_CALL * max(1, definition.calls) * len(answers)),
        store=_progress(len(answers)),
        sandbox=shared_sandbox(),
        stop=stop,
    )
    problem = work.run() or ("stopped" if stop.is_set() else "")
    known = Record(
        judge=definition.judges[0].model if definition.judges else "",
        date=datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
        language=options["lang"],
        data=options["data"].name if options["data"] else EXAMPLES,
        calls=work.spending.calls,
        tokens=work.spending.prompt_tokens + work.spending.completion_tokens,
    )
    pairs = [Pair(work.results[key].verdict, answers[key].verdict, answers[key].unit) for key in work.results]
    return measured(known, card.gives, pairs), problem


def _progress(total: int) -> Any:
    def show(results: Mapping[str, Judged], _spending: Spending) -> None:
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{len(results)} of {total} judged ")

    return show


def in_words(card: Card, record: Record) -> str:
    """The record in a sentence."""
    kind = f"self-check (n = {record.n})" if record.is_self_check else f"{record.data} (n = {record.n})"
    unread = f", {record.unread} without a verdict" if record.unread else ""
    rate = "" if record.agreement is None else f"; agreement {fixed(record.agreement, 3)}"
    if record.agreement_low is not None and record.agreement_high is not None:
        rate += f" (95 % interval {fixed(record.agreement_low, 3)} to {fixed(record.agreement_high, 3)})"
    return f"{card.id}, {kind}: {record.equal} as labelled{unread}{rate}; {record.calls} calls."
