"""The reference of a multiple-choice question: the number, letter or text of one of the choices beside it."""

import json
import re
from typing import Any

CHOICES = "choices"
_LETTER = re.compile(r"\(?([A-Za-z])[).:]?")


def in_json(value: Any) -> Any:
    """A cell's value, from JSON if it is a text with a list or an object."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("[", "{"):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def is_choice_text(answer: Any, choices: list[Any]) -> bool:
    """Whether an answer is the text of one of the choices."""
    return isinstance(answer, str) and answer in choices


def letter_number(answer: Any) -> int | None:
    """The number (from 0) of the choice that a letter such as `B`, `b` or `(B)` names; else None."""
    letter = _LETTER.fullmatch(answer.strip()) if isinstance(answer, str) else None
    return ord(letter[1].upper()) - ord("A") if letter else None
