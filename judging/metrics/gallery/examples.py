"""The examples of a card as its page shows them: the whole conversation, and the row's fields by their names."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.utils.translation import gettext as _

from datasets.messages import translated
from evalsite.templatetags.show import turn_name
from judging.core.gallery import Card, Example
from judging.core.gallery.fields import FIELDS

ROLES = ("user", "assistant")


class Named(NamedTuple):
    """A text of an example and what it is."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class ShownExample:
    """An example. `turns`: the messages before the question; `fields`: what the metric reads of the row; `answers`: two
    of a comparison, named, else one."""

    example: Example
    turns: list[Named]
    fields: list[Named]
    answers: list[Named]


def shown_examples(card: Card, language: str) -> list[ShownExample]:
    """The examples of a card in one language."""
    return [_shown(example) for example in card.examples if example.language == language]


def _shown(example: Example) -> ShownExample:
    turns = [Named(turn_name(ROLES[at % 2]), text) for at, text in enumerate(example.turns)]
    fields = [Named(_field_name(name), _text(value)) for name, value in example.row.items()]
    answers = [Named("A", example.answer), Named("B", example.other)]
    return ShownExample(example, turns, fields, answers if example.other else [Named("", example.answer)])


def _field_name(name: str) -> str:
    if name == "rubric":
        return _("Rubric")
    return translated((FIELDS["reference"] if name == "ref_answer" else FIELDS[name]).label)


def _text(value: Any) -> str:
    """A value of a row as people read it: each text of a list on its own line."""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return "\n".join(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
