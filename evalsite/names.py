"""Names put into sentences, and sentences put together."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from django.utils.translation import get_language, gettext

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


def sentence_space() -> str:
    """The separator between sentences; empty in Chinese."""
    return "" if (get_language() or "").startswith("zh") else " "


def join_sentences(sentences: Iterable[object]) -> str:
    """The sentences one after the other, as one text in the user's language."""
    return sentence_space().join(map(str, sentences))


def labelled(label: object, value: object) -> str:
    """A label and its value as one text, with the colon of the user's language."""
    return gettext("%(label)s: %(value)s") % {"label": label, "value": value}


def bracketed(text: object, more: object) -> str:
    """A text and what stands in brackets after it, in the brackets of the user's language."""
    return gettext("%(text)s (%(more)s)") % {"text": text, "more": more}
