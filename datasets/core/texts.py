"""Marks texts of core modules for translation; `datasets.messages` translates them."""

from typing import NamedTuple


class Plural(NamedTuple):
    """A text whose form depends on the param named `counted`."""

    singular: str
    plural: str
    counted: str


class InContext(NamedTuple):
    """A text that is translated differently in another context."""

    context: str
    text: str


Text = str | Plural | InContext


def gettext_noop(text: str) -> str:
    return text


def ngettext_noop(singular: str, plural: str, counted: str) -> Plural:
    return Plural(singular, plural, counted)


def pgettext_noop(context: str, text: str) -> InContext:
    return InContext(context, text)
