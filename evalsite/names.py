"""Names put into sentences."""

from __future__ import annotations

import re
from collections.abc import Mapping

_HAN = re.compile(r"[\u4e00-\u9fff]")


def fitted(message: str, names: Mapping[str, object]) -> str:
    """The message, not filled in yet, as the names need it: Chinese has a blank beside a Latin name and none beside a
    Chinese one ("heron 更好", "左侧更好"). Placeholders are %(name)s or {name}."""
    for name, value in names.items():
        text = str(value)
        placeholder = rf"(?:%\({name}\)s|\{{{name}\}})"
        if _HAN.match(text[:1]):
            message = re.sub(rf"(?<=[\u4e00-\u9fff]) ({placeholder})", r"\1", message)
        if _HAN.match(text[-1:]):
            message = re.sub(rf"({placeholder}) (?=[\u4e00-\u9fff])", r"\1", message)
    return message


def with_names(message: str, names: Mapping[str, object]) -> str:
    """The message with the names filled in, with blanks as they need them. Placeholders are %(name)s."""
    return fitted(message, names) % names
