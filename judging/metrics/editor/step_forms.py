"""The steps of a metric's form: its judge models or rule program, and the scripts among them; adding, copying, moving
and removing them.

A preprocess before all other steps and a postprocess after them have fields of their own, which are always shown. Each
other step has a token: a judge model's number, `rules`, or `s` and the number of a script. Numbers stay when steps are
moved.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django import forms
from django.http import QueryDict
from django.utils.translation import gettext_lazy

from evalsite.web.numbers import whole
from judging.core.builtin import BUILTINS
from judging.core.metric_definition import MetricDefinition, Script
from judging.core.scripts import KINDS, Recommended, ScriptKind
from judging.metrics.editor.end_scripts import end_scripts, source_of
from judging.metrics.editor.judge_forms import CodeField, JudgeForm, unified
from judging.metrics.editor.scripts import recommended_scripts, script_failure, script_sentence

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise, StrPromise

MAX_JUDGES = 20
MAX_SCRIPTS = 20  # among the judge models
MAX_SCRIPT = 200_000  # characters
ORDER = "judge_order"  # the form field with the tokens in order
RULES = "rules"  # the token of a rule program
_TOKEN = re.compile(rf"s?\d{{1,3}}|{RULES}", re.ASCII)

KIND_NAMES: dict[ScriptKind, StrOrPromise] = {
    "preprocess": gettext_lazy("Preprocess"),
    "postprocess": gettext_lazy("Postprocess"),
}
KIND_HELP: dict[ScriptKind, StrOrPromise] = {
    "preprocess": gettext_lazy(
        "def preprocess(data, resp, **kwargs): kwargs holds what the steps before it gave. The steps after it see what "
        "it changes."
    ),
    "postprocess": gettext_lazy(
        "def postprocess(judge_reqs, judge_resps, judge_models, data, resp, **kwargs): sees the replies before it."
    ),
}


class ScriptForm(forms.Form):
    """A script among the other steps."""

    kind = forms.ChoiceField(choices=[(kind, kind) for kind in KINDS], widget=forms.HiddenInput)
    source = CodeField(rows=8, label=gettext_lazy("Script"), required=False, max_length=MAX_SCRIPT)

    def __init__(
        self, typed: QueryDict | None, *, number: int, before: MetricDefinition, checked: bool = True
    ) -> None:
        self.number = number
        self.token = f"s{number}"
        kind, source = typed_script(typed, number, before)
        initial = {"kind": kind, "source": source}
        super().__init__(typed if checked else None, prefix=f"script-{number}", initial=initial)
        self.script_kind: ScriptKind = kind

    @property
    def kind_name(self) -> StrOrPromise:
        return KIND_NAMES[self.script_kind]

    @property
    def help(self) -> StrOrPromise:
        return KIND_HELP[self.script_kind]

    @property
    def recommended(self) -> list[tuple[Recommended, StrPromise]]:
        """Scripts of its kind to insert, with their labels."""
        return recommended_scripts()[self.script_kind]

    def clean(self) -> dict[str, Any]:
        source = self.cleaned_data.get("source", "")
        failure = script_failure(self.script_kind, source) if source.strip() else None
        if failure is not None:
            self.add_error("source", script_sentence(self.script_kind, failure))
        return self.cleaned_data


def typed_script(typed: QueryDict | None, number: int, before: MetricDefinition) -> tuple[ScriptKind, str]:
    """The kind and source of a script as submitted, or as stored."""
    stored = before.scripts[number] if number < len(before.scripts) else Script(kind="preprocess", source="")
    if typed is None:
        return stored.kind, stored.source
    sent = typed.get(f"script-{number}-kind")
    kind = next((kind for kind in KINDS if kind == sent), stored.kind)
    return kind, unified(typed.get(f"script-{number}-source", stored.source))


@dataclass(frozen=True, slots=True)
class PlacedScript:
    """A script of the form, and the name of its field."""

    field: str
    script: Script


def placed_scripts(order: list[str], scripts: Mapping[str, tuple[ScriptKind, str]]) -> list[PlacedScript]:
    """The scripts that are not blank, in their order. `scripts`: kind and source by token, with the two at the ends by
    kind."""
    placed: list[PlacedScript] = []
    judges = 0
    for token in ("preprocess", *order, "postprocess"):
        if token == RULES or token.isdecimal():
            judges += 1
            continue
        kind, source = scripts[token]
        if source.strip():
            field = f"script-{token[1:]}-source" if token not in KINDS else token
            placed.append(PlacedScript(field, Script(kind=kind, source=source, after=judges)))
    return placed


def typed_scripts(typed: QueryDict | None, before: MetricDefinition) -> list[PlacedScript]:
    """The scripts as submitted, or as stored."""
    order = step_order(typed, before)
    sources: dict[str, tuple[ScriptKind, str]] = {}
    for kind in KINDS:
        stored = source_of(before, kind)
        sources[kind] = kind, unified(typed.get(kind, stored) if typed else stored)
    for number in script_numbers(order):
        sources[f"s{number}"] = typed_script(typed, number, before)
    return placed_scripts(order, sources)


def typed_rules(typed: QueryDict, before: MetricDefinition) -> MetricDefinition:
    """The program with its scripts as typed, for a preview. It is not validated."""
    return MetricDefinition(
        name="",
        rules=unified(typed.get("rules", before.rules)),
        judges=before.judges if before.rules else (),
        scripts=tuple(placed.script for placed in typed_scripts(typed, before)),
    )


def step_order(typed: QueryDict | None, before: MetricDefinition) -> list[str]:
    """The tokens of the form's steps, in order. Numbers below those of `before` existed when the form was opened."""
    if typed is None or ORDER not in typed:
        return [] if typed is not None and "judges" in typed else list(_tokens(before))
    sent = dict.fromkeys(token for token in typed.getlist(ORDER) if _TOKEN.fullmatch(token))
    judges = [token for token in sent if token.isdecimal()][:MAX_JUDGES]
    scripts = [token for token in sent if token.startswith("s")][:MAX_SCRIPTS]
    judging = [RULES] if RULES in sent else judges  # a metric has either
    return [token for token in sent if token in judging or token in scripts]


def _tokens(before: MetricDefinition) -> Iterator[str]:
    ends = end_scripts(before).values()
    for step in before.steps:
        if step.type in ("JUDGE_MODEL", "RULES"):
            yield str(step.number) if step.type == "JUDGE_MODEL" else RULES
        elif step.number not in ends:
            yield f"s{step.number}"


def judge_numbers(typed: QueryDict | None, before: MetricDefinition) -> list[int]:
    """The numbers of the form's judge models, in order."""
    return [int(token) for token in step_order(typed, before) if token.isdecimal()]


def script_numbers(order: list[str]) -> list[int]:
    """The numbers of the scripts among the other steps, in order."""
    return [int(token[1:]) for token in order if token.startswith("s")]


def ordered_scripts(
    order: list[str], ends: Mapping[str, str], forms: Iterable[ScriptForm]
) -> tuple[Script, ...]:
    """The scripts of valid forms, in their order. `ends`: the sources of the two at the ends."""
    sources: dict[str, tuple[ScriptKind, str]] = {kind: (kind, ends[kind]) for kind in KINDS}
    sources |= {form.token: (form.script_kind, form.cleaned_data["source"]) for form in forms}
    return tuple(placed.script for placed in placed_scripts(order, sources))


def with_step_change(typed: QueryDict, before: MetricDefinition) -> QueryDict:
    """The input after the pressed button: add (a judge model), step:KIND (adds a script), or copy, remove, up, down
    with a token. `down:preprocess` and `up:postprocess` move the script at an end among the others."""
    action, _colon, which = typed.get("change", "").partition(":")
    order, changed = step_order(typed, before), typed.copy()
    script = max([*script_numbers(order), len(before.scripts) - 1], default=-1) + 1
    if (
        action in ("add", "copy")
        and RULES not in order
        and len(order) - len(script_numbers(order)) < MAX_JUDGES
    ):
        _add_judge(changed, order, whole(which), before, is_copy=action == "copy")
    elif which in KINDS and action in ("step", "up", "down") and len(script_numbers(order)) < MAX_SCRIPTS:
        order.insert(_new_place(order, action, which), f"s{script}")
        changed[f"script-{script}-kind"] = which
        changed[f"script-{script}-source"] = "" if action == "step" else changed.get(which, "")
        if action != "step":
            changed[which] = ""
    elif which in order and action in ("up", "down", "remove") and (which, action) != (RULES, "remove"):
        place = order.index(which)
        order.remove(which)
        if action != "remove":
            order.insert(max(0, place + (-1 if action == "up" else 1)), which)
    changed.setlist(ORDER, order)
    changed["judges"] = "1"
    return changed


def _new_place(order: list[str], action: str, kind: str) -> int:
    """Where a script moved from an end is placed, or a new one: the last, but a preprocess before a rule program."""
    if action == "step" and kind == "preprocess" and RULES in order:
        return order.index(RULES)
    return 1 if action == "down" else len(order) - (action == "up")


def _add_judge(
    changed: QueryDict, order: list[str], source: int | None, before: MetricDefinition, *, is_copy: bool
) -> None:
    """Add a judge model at the end, or a copy after its original; with the fields of the one before it."""
    judges = [token for token in order if token.isdecimal()]
    free = max([*map(int, judges), len(before.judges) - 1], default=-1) + 1
    last = str(source) if is_copy and str(source) in judges else judges[-1] if judges else ""
    order.insert(order.index(last) + 1 if is_copy and last else len(order), str(free))
    _fill(changed, int(last) if last else None, free)
    if not is_copy:
        changed[f"judge-{free}-name"] = ""  # the name of another judge model
        builtin = BUILTINS.get(changed.get("add_from", ""))
        if builtin is not None:
            changed[f"judge-{free}-template"] = builtin.source


def _fill(typed: QueryDict, source: int | None, number: int) -> None:
    """Fill in a new judge model's fields, copied from another or blank."""
    blank = {"repeats": "1"}
    for name in JudgeForm.base_fields:
        value = typed.get(f"judge-{source}-{name}") if source is not None else blank.get(name, "")
        if value is not None and (name != "both_orders" or value):
            typed[f"judge-{number}-{name}"] = value
