"""Explains the difference of a candidate's mean between two runs, split into shares that sum to it.

Items are matched by their key. From the first run to the second, the items' values change in steps: the first run's
overrides are removed; its stored replies are read by the second run's parser, then also by its scripts; then they are
replaced by the second run's judgements; then its overrides are added. For one step, let C be the items scored before
and after it, c₁ and c₂ their means before and after, m₁ and m₂ the means over all items scored before and after. Then

    m₂ − m₁ = Σ_C (y₂ − y₁) / |C|  +  Σ_{only after} (y₂ − c₂) / n₂  −  Σ_{only before} (y₁ − c₁) / n₁

exactly, so each item has a contribution in each step, and each contribution has one cause: that of the step or, for the
step to the second run's judgements, the first of `CAUSES` that differs for the item. The steps add up to the
difference.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from judging.core.metric_definition import JudgeModel, MetricDefinition
from judging.core.statistics.intervals import difference_interval
from judging.core.statistics.numeric import ROUNDING

CAUSES = ("rows", "answers", "judge", "prompt", "scripts", "parser", "overrides", "missing", "noise")
SETTINGS = ("judge", "prompt", "scripts", "parser")
ASKING = frozenset({"judge", "prompt"})  # these change requests; the others change how replies are read


@dataclass(frozen=True, slots=True)
class Side:
    """An item in one run. `content`, `answers` and `prompts` are digests.

    `prompts`: of the prompts sent to judges, '' if none were. `value`: the item's mean, None if nothing is scored;
    `own`: the mean without overrides that the other run lacks. `override`: the reviewers' overrides as one text, ''
    without any.
    """

    content: str
    answers: str
    value: float | None
    own: float | None
    override: str = ""
    prompts: str = ""


@dataclass(frozen=True, slots=True)
class SharedItem:
    """An item and its values in both runs.

    `settings`: those of SETTINGS used for this item that differ between the runs. `read`: {cause: the item's mean in
    the first run, with its replies read by the second run's parser ("parser") or also its scripts ("scripts")}, where
    available. `cluster`: the conversation or group that it belongs to, None for an independent item.
    """

    key: Hashable
    before: Side | None
    after: Side | None
    settings: frozenset[str] = frozenset()
    read: Mapping[str, float | None] = field(default_factory=dict)
    cluster: Hashable | None = None


@dataclass(frozen=True, slots=True)
class Share:
    """The contribution of one cause to the difference of the means with its 95 % interval, and the keys of the items
    that it concerns.

    An item with several causes is listed under each.
    """

    cause: str
    difference: float
    items: tuple[Hashable, ...]
    ci_low: float | None = None
    ci_high: float | None = None


@dataclass(frozen=True, slots=True)
class MeanChange:
    """The means of two runs with their difference (second − first), its 95 % interval and its shares.

    `items`: how many are scored in at least one of the runs. Figures are None if a run has no scored item.
    `noise_alone`: ±, what the judge's own variation explains; see `statistics.noise`.
    """

    before: float | None
    after: float | None
    difference: float | None
    ci_low: float | None
    ci_high: float | None
    items: int
    shares: tuple[Share, ...]
    noise_alone: float | None = None


def changed_settings(before: MetricDefinition, after: MetricDefinition) -> frozenset[str]:
    """The `SETTINGS` that differ between two definitions of a metric. A rule program counts as a script.

    The parser is not a cause if a script gives the value in both.
    """
    differences = {
        "judge": [_judge(judge) for judge in before.judges] != [_judge(judge) for judge in after.judges],
        "prompt": [_prompt(judge) for judge in before.judges] != [_prompt(judge) for judge in after.judges],
        "scripts": _scripts(before) != _scripts(after),
        "parser": not (before.value_scripts and after.value_scripts) and not before.reads_as(after),
    }
    return frozenset(name for name, differs in differences.items() if differs)


def _judge(judge: JudgeModel) -> tuple[object, ...]:
    return judge.endpoint, judge.url, judge.model, judge.params, judge.repeats, judge.both_orders


def _prompt(judge: JudgeModel) -> tuple[object, ...]:
    return judge.template, judge.system_prompt or ""


def _scripts(metric: MetricDefinition) -> tuple[object, ...]:
    return metric.scripts, metric.rules


def readings(before: MetricDefinition, after: MetricDefinition) -> list[tuple[str, MetricDefinition]]:
    """The definitions with which the first run's replies can be read again, in steps towards the second run's.

    Each comes with the cause that its step shows. Empty if the runs have different numbers of judges. For rule programs
    see `judging.runs.rerun.reparse`.
    """
    if len(before.judges) != len(after.judges):
        return []
    settings, now, steps = changed_settings(before, after), before, []
    if "parser" in settings:
        now = now.read_as(after)
        steps.append(("parser", now))
    if "scripts" in settings and before.scripts_before_judges == after.scripts_before_judges:
        now = msgspec.structs.replace(now, scripts=after.scripts, sandbox=after.sandbox)
        steps.append(("scripts", now))
    return steps


def change_between(items: Iterable[SharedItem], width: float | None = None) -> MeanChange:
    """The change of one candidate's mean under one metric; `width`: of its scale, None if it has none."""
    scored = [item for item in items if _value(item.before) is not None or _value(item.after) is not None]
    before = _mean([value for item in scored if (value := _value(item.before)) is not None])
    after = _mean([value for item in scored if (value := _value(item.after)) is not None])
    if before is None or after is None:
        return MeanChange(before, after, None, None, None, len(scored), ())
    influences = _influences(scored, before, after)
    low, high = _interval(after - before, influences, scored, width)
    return MeanChange(before, after, after - before, low, high, len(scored), _shares(scored, width))


_READ = ("parser", "scripts")  # in the order of the steps
_STEPS = ("overrides", *_READ, "", "overrides")  # '': the second run's judgements
_JUDGED = _STEPS.index("")

_Values = tuple[float | None, ...]


def _value(side: Side | None) -> float | None:
    return None if side is None else side.value


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _shares(scored: Sequence[SharedItem], width: float | None) -> tuple[Share, ...]:
    """The shares by cause, in the order of CAUSES."""
    values = [_values(item) for item in scored]
    whole = all(
        any(item_values[step] is not None for item_values in values) for step in range(len(_STEPS) + 1)
    )
    if not whole:  # a step without any scored item: the steps cannot be separated
        values = [(_value(item.before),) * (_JUDGED + 1) + (_value(item.after),) * 2 for item in scored]
    parts: dict[str, dict[Hashable, float]] = {}
    touched: set[Hashable] = set()
    for step, name in enumerate(_STEPS):
        pairs = [(item_values[step], item_values[step + 1]) for item_values in values]
        for item, part in zip(scored, _contributions(pairs), strict=True):
            if part:
                by = parts.setdefault(name or _cause(item, apart=whole), {})
                by[item.key] = by.get(item.key, 0.0) + part
                touched.add(item.key)
    for item in scored:
        if item.key not in touched:
            parts.setdefault(_idle_cause(item, apart=whole), {})[item.key] = 0.0
    causes = sorted(parts, key=_order)
    return tuple(_share(cause, parts[cause], scored, width) for cause in causes)


def _share(
    cause: str, parts: Mapping[Hashable, float], scored: Sequence[SharedItem], width: float | None
) -> Share:
    """`parts`: the items' contributions c. The interval is over all n scored items, with influences c − Σ c / n."""
    whole = math.fsum(parts.values())
    influences = [parts.get(item.key, 0.0) - whole / len(scored) for item in scored]
    return Share(cause, whole, tuple(parts), *_interval(whole, influences, scored, width))


def _values(item: SharedItem) -> _Values:
    """The item's values before the first step and after each step."""
    before, after = item.before, item.after
    if before is None or after is None or _other_text(before, after):
        first, last = _value(before), _value(after)
        return (first,) * (_JUDGED + 1) + (last,) * 2
    read, values = before.own, [before.value, before.own]
    for name in _READ:
        read = item.read.get(name, read)
        values.append(read)
    return (*values, after.own, after.value)


def _contributions(pairs: Sequence[tuple[float | None, float | None]]) -> list[float]:
    """What each item contributes to the difference of one step (see the module docstring)."""
    if all(a == b for a, b in pairs):
        return [0.0] * len(pairs)
    common = [(a, b) for a, b in pairs if a is not None and b is not None]
    centre_a, centre_b = _mean([a for a, _ in common]) or 0.0, _mean([b for _, b in common]) or 0.0
    count_a, count_b = (sum(pair[side] is not None for pair in pairs) for side in (0, 1))
    contributions = []
    for a, b in pairs:
        if a is not None and b is not None:
            contributions.append((b - a) / len(common))
        elif b is not None:
            contributions.append((b - centre_b) / count_b)
        else:
            contributions.append(0.0 if a is None else (centre_a - a) / count_a)
    return contributions


def _other_text(before: Side, after: Side) -> bool:
    return before.content != after.content or before.answers != after.answers


def _cause(item: SharedItem, *, apart: bool) -> str:
    """Why the second run's judgements differ; `apart`: overrides and readings of replies are separate steps."""
    before, after = item.before, item.after
    if before is None or after is None or before.content != after.content:
        return "rows"
    if before.answers != after.answers:
        return "answers"
    settings = item.settings - item.read.keys() if apart else item.settings
    if settings:
        return "+".join(filter(None, (_asking_cause(item, settings & ASKING), _named(settings - ASKING))))
    if before.override != after.override and not apart:
        return "overrides"
    said = (before.own, after.own) if apart else (before.value, after.value)
    return "missing" if None in said else "noise"


def _idle_cause(item: SharedItem, *, apart: bool) -> str:
    """The cause for an item whose values do not change: the first one that differs for it."""
    cause = _cause(item, apart=apart)
    if cause != "noise":
        return cause
    if item.read:
        return min(item.read, key=SETTINGS.index)
    assert item.before is not None
    assert item.after is not None
    return "noise" if item.before.override == item.after.override else "overrides"


def _asking_cause(item: SharedItem, asking: frozenset[str]) -> str:
    """The judge alone is the cause if both runs sent it the same prompt."""
    before, after = item.before, item.after
    same = before is not None and after is not None and before.prompts and before.prompts == after.prompts
    return "judge" if same and "judge" in asking else _named(asking)


def _named(settings: Iterable[str]) -> str:
    return "+".join(sorted(settings, key=SETTINGS.index))


def _order(cause: str) -> tuple[int, int]:
    first = CAUSES.index(cause.split("+")[0])
    return first, cause.count("+")


def _influences(scored: Sequence[SharedItem], before: float, after: float) -> list[float]:
    """u = (y₂ − m₂)/n₂ − (y₁ − m₁)/n₁ of each item on the difference of the means; a term is 0 if its run lacks it."""
    count_a = sum(_value(item.before) is not None for item in scored)
    count_b = sum(_value(item.after) is not None for item in scored)
    values = [(_value(item.before), _value(item.after)) for item in scored]
    return [
        (0.0 if b is None else (b - after) / count_b) - (0.0 if a is None else (a - before) / count_a)
        for a, b in values
    ]


def _interval(
    difference: float, influences: Sequence[float], scored: Sequence[SharedItem], width: float | None
) -> tuple[float | None, float | None]:
    """The 95 % interval of a difference from the items' influences u, which sum to 0.

    With the influences summed over each of the G independent units (items, or clusters), se² = G/(G − 1) · Σ u²; see
    `intervals.difference_interval`. A paired interval if all items are shared.
    """
    by_unit: dict[Hashable, list[float]] = {}
    for item, influence in zip(scored, influences, strict=True):
        unit = (False, item.key) if item.cluster is None else (True, item.cluster)
        by_unit.setdefault(unit, []).append(influence)
    units = len(by_unit)
    if units < 2:
        return None, None
    squares = math.fsum(math.fsum(parts) ** 2 for parts in by_unit.values())
    error = math.sqrt(squares * units / (units - 1))
    largest = max(
        (abs(_value(side) or 0.0) for item in scored for side in (item.before, item.after)), default=0
    )
    same = error <= ROUNDING * max(1.0, largest)
    return difference_interval(difference, 0.0 if same else error, units, width)
