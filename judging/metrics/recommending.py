"""Scripts to insert with one click, and repairs of pasted ones, as the editors offer them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.http import QueryDict
from django.utils.translation import gettext_lazy

from judging.core.pasted import repaired, repaired_pattern
from judging.core.recommended import RECOMMENDED, Recommended
from judging.core.scripts import KINDS, ScriptKind

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

LABELS: dict[str, StrPromise] = {
    "strip_think": gettext_lazy("Strip <think>"),
    "json_field": gettext_lazy("Extract a JSON field"),
    "length": gettext_lazy("Answer length"),
    "comparison": gettext_lazy("Extract the comparison"),
    "mean": gettext_lazy("Mean of judges"),
    "majority": gettext_lazy("Majority of judges"),
}


@dataclass(frozen=True, slots=True)
class Offer:
    script: Recommended
    label: StrPromise


def offers() -> dict[ScriptKind, list[Offer]]:
    """The recommended scripts of each kind."""
    return {
        kind: [Offer(one, LABELS[one.name]) for one in RECOMMENDED.values() if one.kind == kind]
        for kind in KINDS
    }


def with_script(typed: QueryDict) -> QueryDict:
    """What is typed after the button that was pressed: `script:NAME` inserts a script, `repair:KIND` repairs one,
    `repair:FIELD` the regular expression of a judge model."""
    action, _colon, name = typed.get("change", "").partition(":")
    changed = typed.copy()
    if action == "script" and name in RECOMMENDED:
        changed[RECOMMENDED[name].kind] = RECOMMENDED[name].source
    elif action == "repair" and name in KINDS:
        repair = repaired(typed.get(name, "").replace("\r\n", "\n"))
        changed[name] = repair.source if repair else typed.get(name, "")
    elif action == "repair" and name.endswith("-pattern"):
        changed[name] = repaired_pattern(typed.get(name, "")) or typed.get(name, "")
    return changed
