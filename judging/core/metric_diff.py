"""Compares two versions of a metric: which settings differ, and how its texts differ line by line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import chain
from typing import Any, Literal

from judging.core.metric_definition import JudgeModel, Label, MetricDefinition
from judging.core.scripts import ScriptKind

Kind = Literal["same", "gone", "new", "skipped"]
MOST_COMPARISONS = 4_000_000  # of pairs of lines; longer texts are shown as replaced as a whole
CONTEXT = 3  # unchanged lines shown around a change

_METRIC_SETTINGS = (
    *(
        "name",
        "gives",
        "labels",
        "compares",
        "baseline",
        "both_bad",
        "three_steps",
        "any_pairs",
        "all_answers",
    ),
    *("min_score", "max_score", "whole", "step", "at_once", "structured", "ask_again"),
    *("undefined", "sandbox", "jury", "quorum"),
)
_JUDGE_SETTINGS = (
    "endpoint",
    "url",
    "model",
    "protocol",
    "api_key_env",
    "params",
    "parse",
    "repeats",
    "both_orders",
)
_JUDGE_TEXTS = ("system_prompt", "template")
_NO_JUDGE = JudgeModel(name="", template="")


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting's value before and after; `name` is the field's name in the definition."""

    name: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class DiffLine:
    """A line of a text with its line numbers (None if absent); `skipped`: the number of lines left out."""

    kind: Kind
    text: str = ""
    before: int | None = None
    after: int | None = None
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class TextChange:
    """How a text differs; `name` is the field's name in the definition, or a script's kind with its number, if it is
    not the first of its kind."""

    name: str
    lines: tuple[DiffLine, ...]
    number: int = 1


@dataclass(frozen=True, slots=True)
class MetricPart:
    """What differs in the metric (`judge` is None) or in one judge model, which may be `gone` or `new` as a whole."""

    judge: str | None
    kind: Kind
    settings: tuple[Setting, ...] = ()
    texts: tuple[TextChange, ...] = ()

    @property
    def differs(self) -> bool:
        return self.kind != "same" or bool(self.settings or self.texts)


def difference(before: MetricDefinition, after: MetricDefinition) -> tuple[MetricPart, ...]:
    """The parts that differ: the metric first, then its judge models in their new order, then removed ones."""
    settings = _changed_settings(before, after, _METRIC_SETTINGS)
    texts = (*_changed_scripts(before, after), *_changed_texts(before, after, ("rules",)))
    whole = MetricPart(None, "same", (*settings, *_moved_steps(before, after)), texts)
    return tuple(part for part in (whole, *_judges(before.judges, after.judges)) if part.differs)


def _moved_steps(before: MetricDefinition, after: MetricDefinition) -> tuple[Setting, ...]:
    """The order of the steps, if the same steps are in another order. Judge models in a row have none."""
    was, now = _rows_of_steps(before), _rows_of_steps(after)
    if was == now or sorted(chain.from_iterable(was)) != sorted(chain.from_iterable(now)):
        return ()
    return (Setting("steps", *(" → ".join(", ".join(row) for row in rows) for rows in (was, now))),)


def _rows_of_steps(metric: MetricDefinition) -> list[list[str]]:
    return [
        [metric.scripts[stage].kind]
        if isinstance(stage, int)
        else ["rules"]
        if metric.rules
        else sorted(metric.judges[number].name for number in stage)
        for stage in metric.stages
    ]


def _changed_scripts(before: MetricDefinition, after: MetricDefinition) -> tuple[TextChange, ...]:
    """Scripts are compared with those of the same kind and number of this kind."""
    old, new = _numbered(before), _numbered(after)
    return tuple(
        TextChange(kind, tuple(lines_of(was, now)), number)
        for kind, number in dict.fromkeys((*new, *old))
        if (was := old.get((kind, number), "")) != (now := new.get((kind, number), ""))
    )


def _numbered(metric: MetricDefinition) -> dict[tuple[ScriptKind, int], str]:
    sources: dict[tuple[ScriptKind, int], str] = {}
    for script in metric.scripts:
        number = 1 + sum(kind == script.kind for kind, _ in sources)
        sources[script.kind, number] = script.source
    return sources


def _judges(before: tuple[JudgeModel, ...], after: tuple[JudgeModel, ...]) -> Iterator[MetricPart]:
    old = dict(_known(before))
    for key, judge in _known(after):
        earlier = old.pop(key, None)
        yield _judge(judge.name, earlier or _NO_JUDGE, judge, "same" if earlier else "new")
    for judge in old.values():
        yield _judge(judge.name, judge, _NO_JUDGE, "gone")


def _judge(name: str, before: JudgeModel, after: JudgeModel, kind: Kind) -> MetricPart:
    settings = _changed_settings(before, after, _JUDGE_SETTINGS)
    return MetricPart(name, kind, settings, _changed_texts(before, after, _JUDGE_TEXTS))


def _known(judges: tuple[JudgeModel, ...]) -> Iterator[tuple[tuple[str, int], JudgeModel]]:
    """Judge models keyed by name and occurrence, because names can repeat."""
    seen: dict[str, int] = {}
    for judge in judges:
        seen[judge.name] = seen.get(judge.name, 0) + 1
        yield (judge.name, seen[judge.name]), judge


def _changed_settings(before: Any, after: Any, names: tuple[str, ...]) -> tuple[Setting, ...]:
    values = [Setting(name, getattr(before, name), getattr(after, name)) for name in names]
    return tuple(setting for setting in values if setting.before != setting.after)


def _changed_texts(before: Any, after: Any, names: tuple[str, ...]) -> tuple[TextChange, ...]:
    texts = [(name, getattr(before, name) or "", getattr(after, name) or "") for name in names]
    return tuple(TextChange(name, tuple(lines_of(old, new))) for name, old, new in texts if old != new)


def lines_of(before: str, after: str) -> Iterator[DiffLine]:
    """The changed lines with some context; the lines between are replaced by their number."""
    old, new = before.split("\n") if before else [], after.split("\n") if after else []
    if len(old) * len(new) > MOST_COMPARISONS:
        opcodes: list[tuple[str, int, int, int, int]] = [("replace", 0, len(old), 0, len(new))]
    else:
        opcodes = list(SequenceMatcher(None, old, new, autojunk=False).get_opcodes())
    for place, (tag, old_from, old_to, new_from, new_to) in enumerate(opcodes):
        if tag == "equal":
            head = CONTEXT if place else 0
            tail = CONTEXT if place < len(opcodes) - 1 else 0
            yield from _unchanged(old, old_from, old_to, new_from - old_from, head, tail)
            continue
        for number in range(old_from, old_to):
            yield DiffLine("gone", old[number], before=number + 1)
        for number in range(new_from, new_to):
            yield DiffLine("new", new[number], after=number + 1)


def _unchanged(old: list[str], start: int, end: int, shift: int, head: int, tail: int) -> Iterator[DiffLine]:
    between = end - start - head - tail
    for number in range(start, end):
        if between < 2 or number < start + head or number >= end - tail:
            yield DiffLine("same", old[number], number + 1, number + 1 + shift)
        elif number == start + head:
            yield DiffLine("skipped", skipped=between)


def as_text(value: Any) -> str:
    """A setting's value for display; '' for none."""
    if value is None or value in ("", {}, ()):
        return ""
    if isinstance(value, tuple):
        return ", ".join(as_text(part) for part in value)
    if isinstance(value, Label):
        meaning = f"{value.label}: {value.description}" if value.description else value.label
        return meaning if value.value is None else f"{meaning} = {as_text(value.value)}"
    if isinstance(value, float) and value == int(value):
        return str(int(value))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
