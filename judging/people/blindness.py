"""What of the rows themselves may tell raters which model they rate, and which turns can be hidden from them.

Raters see the turns of a conversation by role and text, so only those can tell: custom fields and the names of messages
are never on their pages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from datasets.models import Row, Version
from judging.core.people.telltales import Telltale, telltales
from judging.people.showing import Message, conversation_of

LOOKED_AT = 1000
_VALUES_SHOWN, _CHARACTERS_SHOWN = 5, 40

HIDEABLE: dict[str, str | Promise] = {
    "system": gettext_lazy("System turn"),
    "assistant": gettext_lazy("Earlier answers"),
    "tool": gettext_lazy("Tool turns"),
}
"""Roles whose turns can be hidden; without the user's nobody could rate."""


@dataclass(frozen=True, slots=True)
class Blindness:
    """The roles that can be hidden, what may tell of those that are shown, and, where there are more rows, how many
    of a version were checked."""

    roles: list[str]
    warnings: list[str]
    only_first: int | None


def blindness(versions: Iterable[Version], names: Sequence[str], hidden: Sequence[str]) -> Blindness:
    """What the first rows of these versions tell, for answers that are called by these names."""
    rows: list[Mapping[str, str]] = []
    more = False
    for version in versions:
        rows += _turns_by_role(version)
        more = more or version.valid_rows > LOOKED_AT
    seen = {role for row in rows for role in row}
    found = [one for one in telltales(rows, names) if one.field not in hidden]
    roles = [role for role in HIDEABLE if role in seen]
    return Blindness(roles, [_sentence(one) for one in found], LOOKED_AT if more else None)


def _turns_by_role(version: Version) -> Iterator[dict[str, str]]:
    rows = Row.objects.filter(version=version, valid=True).order_by("line")
    for row in rows[:LOOKED_AT].iterator(500):
        yield _by_role(conversation_of(row, version.format)[0])


def _by_role(messages: Sequence[Message]) -> dict[str, str]:
    texts: dict[str, list[str]] = {}
    for one in messages:
        if one["role"] in HIDEABLE:
            texts.setdefault(one["role"], []).append(str(one["content"] or ""))
    return {role: "\n".join(said) for role, said in texts.items()}


def _sentence(found: Telltale) -> str:
    field = HIDEABLE[found.field]
    if found.name:
        return _("%(field)s: contains the name “%(name)s”.") % {"field": field, "name": found.name}
    shown = [f"“{_shortened(value)}”" for value in found.values[:_VALUES_SHOWN]]
    listed = " / ".join(shown + ["…"] * (len(found.values) > _VALUES_SHOWN))
    return _("%(field)s: only a few short values (%(values)s), which may tell models apart.") % {
        "field": field,
        "values": listed,
    }


def _shortened(text: str) -> str:
    return text if len(text) <= _CHARACTERS_SHOWN else text[: _CHARACTERS_SHOWN - 1] + "…"
