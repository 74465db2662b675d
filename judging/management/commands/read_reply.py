"""manage.py read_reply: read judges' replies of a file as a run would, without a database."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.utils import translation
from django.utils.translation import gettext as _

from datasets.core.kinds import CATEGORY, READABLE_KINDS
from evalsite.rounding import significant
from evalsite.terminal import terminal_language
from judging.core.reading.gives import Gives
from judging.core.reading.reader import Reading, read_reply
from judging.core.reading.statements import Statement
from judging.management.command_line import HAS_ERRORS, add_json_option, json_line, refusals
from judging.messages import reason_sentence

_GIVES_FIELDS = {field.name for field in fields(Gives)} - {"kind"}
_NUMBERS = ("min_score", "max_score", "step")
_FLAGS = ("whole", "both_bad")


class WrongLine(Exception):
    """A line that cannot be read; the message says why."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the file: its number from 1, its other fields, the reply, and its reading or the error."""

    number: int
    fields: dict[str, Any]
    reply: str = ""
    reading: Reading | None = None
    error: str = ""

    def document(self) -> dict[str, Any]:
        if self.reading is None:
            return {"line": self.number, "error": self.error}
        return self.fields | reading_document(self.reading, self.reply)


class Command(BaseCommand):
    help = "Read the judge's replies of FILE (- is standard input), one a line, as a run would."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", metavar="FILE")
        parser.add_argument("--gives", choices=READABLE_KINDS, metavar="KIND", help=" ".join(READABLE_KINDS))
        parser.add_argument("--name", metavar="NAME", help="name of the metric")
        parser.add_argument("--min-score", type=float)
        parser.add_argument("--max-score", type=float)
        parser.add_argument("--whole", action="store_true", default=None, help="only whole numbers")
        parser.add_argument("--step", type=float)
        parser.add_argument("--label", action="append", dest="labels", metavar="LABEL")
        parser.add_argument("--both-bad", action="store_true", default=None, help="“both bad” is offered")
        add_json_option(parser)

    def handle(self, *, file: str, **options: Any) -> None:
        names = (*_GIVES_FIELDS, "gives")
        defaults = {name: options[name] for name in names if options.get(name) is not None}
        has_errors = False
        with translation.override(terminal_language()):
            for line in read_lines(lines_of(file), defaults):
                has_errors |= line.reading is None
                text = json_line(line.document()) if options["json"] else sentence(line)
                text = text.encode("utf-8", "backslashreplace").decode()  # half a character, as \ud83d
                (self.stdout if options["json"] or line.reading else self.stderr).write(text)
        if has_errors:
            sys.exit(HAS_ERRORS)


def lines_of(file: str) -> Iterator[bytes]:
    if file == "-":
        yield from sys.stdin.buffer
        return
    with refusals(), Path(file).open("rb") as source:
        yield from source


def read_lines(lines: Iterator[bytes], defaults: dict[str, Any]) -> Iterator[Line]:
    """Read the replies, in order. `defaults` apply where a line does not say otherwise; blank lines are left out."""
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            document = object_of(line)
            gives = gives_of(defaults | document)
            reply, finish_reason = text_in(document, "reply"), text_in(document, "finish_reason", "")
        except WrongLine as error:
            yield Line(number, {}, error=str(error))
            continue
        yield Line(number, document, reply, read_reply(reply, gives, finish_reason or None))


def object_of(line: bytes) -> dict[str, Any]:
    """The line's JSON object. Raises WrongLine."""
    try:
        document = json.loads(line.decode("utf-8-sig"), parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise WrongLine(_("The line is not valid JSON.")) from None
    if not isinstance(document, dict):
        raise WrongLine(_("The line is not a JSON object."))
    return document


def _no_number(name: str) -> None:
    """NaN and Infinity are no JSON. Raises ValueError."""
    raise ValueError(name)


def gives_of(fields: dict[str, Any]) -> Gives:
    """What the judge gives. Raises WrongLine."""
    kind = fields.get("gives")
    if kind not in READABLE_KINDS:
        raise WrongLine(_("“gives” must be one of %(kinds)s.") % {"kinds": ", ".join(READABLE_KINDS)})
    values = {name: fields[name] for name in _GIVES_FIELDS if fields.get(name) is not None}
    for name in _NUMBERS:
        if name in values and not is_number(values[name]):
            raise WrongLine(_("“%(name)s” must be a number.") % {"name": name})
    for name in _FLAGS:
        if not isinstance(values.get(name, False), bool):
            raise WrongLine(_("“%(name)s” must be true or false.") % {"name": name})
    if "name" in values:
        values["name"] = text_in(values, "name")
    if "labels" in values:
        values["labels"] = labels_of(values["labels"])
    if kind == CATEGORY and not values.get("labels"):
        raise WrongLine(_("A category needs “labels”."))
    gives = Gives(kind, **values)
    if gives.min_score >= gives.max_score:
        raise WrongLine(_("“min_score” must be below “max_score”."))
    return gives


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def labels_of(labels: Any) -> tuple[str, ...]:
    """The labels, given as texts or as objects with `label`. Raises WrongLine."""
    if isinstance(labels, list):
        texts = [label.get("label") if isinstance(label, dict) else label for label in labels]
        names = tuple(text for text in texts if isinstance(text, str))
        if len(names) == len(texts):
            return names
    raise WrongLine(_("“labels” must be a list of texts."))


def text_in(fields: dict[str, Any], name: str, default: str | None = None) -> str:
    value = fields.get(name)
    value = default if value is None else value
    if not isinstance(value, str):
        raise WrongLine(_("“%(name)s” must be text.") % {"name": name})
    return value


def reading_document(reading: Reading, reply: str) -> dict[str, Any]:
    """The JSON of a reading, whose keys are specified; evidence is the part of the reply that was read."""
    return {
        "value": reading.value,
        "reason": reading.reason,
        "detail": reading.detail,
        "evidence": reply[slice(*reading.evidence)] if reading.evidence else "",
        "form": reading.form,
        "candidates": [candidate_document(candidate, reply) for candidate in reading.candidates],
    }


def candidate_document(candidate: Statement, reply: str) -> dict[str, Any]:
    return {
        "value": candidate.value,
        "reason": candidate.reason,
        "evidence": reply[slice(*candidate.evidence)],
        "form": candidate.form,
    }


def sentence(line: Line) -> str:
    """A line of readable output."""
    if line.reading is None:
        return _("line %(line)s: ") % {"line": line.number} + line.error
    reading = line.reading
    if reading.value is None:
        detail = f" ({' '.join(reading.detail.split())})" if reading.detail else ""
        return _("line %(line)s: ") % {"line": line.number} + reason_sentence(reading.reason) + detail
    if isinstance(reading.value, (bool, str)):
        shown = str(reading.value) if isinstance(reading.value, str) else json.dumps(reading.value)
    else:
        shown = significant(reading.value, 6)
    evidence = " ".join(line.reply[slice(*reading.evidence or (0, 0))].split())
    return _("line %(line)s: ") % {"line": line.number} + f"{shown} ({reading.form}: {evidence})"
