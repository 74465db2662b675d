"""Why the mean of a candidate differs between two runs: the difference, split into shares that sum to it.

Items are matched by their key. Let C be the items scored in both runs, c₁ and c₂ their means there, and m₁, m₂ the
means over all scored items of each run. Then

    m₂ − m₁ = Σ_C (y₂ − y₁) / |C|  +  Σ_{only in 2} (y₂ − c₂) / n₂  −  Σ_{only in 1} (y₁ − c₁) / n₁

exactly, so every item has a contribution, and each item has one cause: the first of `CAUSES` that differs for it.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from judging.core.metric_definition import JudgeModel, MetricDefinition

CAUSES = ("rows", "answers", "judge", "prompt", "scripts", "parser", "overrides", "missing", "noise")
SETTINGS = ("judge", "prompt", "scripts", "parser")
ASKING = frozenset({"judge", "prompt"})  # the others say how replies are read
UPPER = 0.975  # of a two-sided 95 % interval


@dataclass(frozen=True, slots=True)
class Side:
    """An item in one run. `content`, `answers` and `prompts` are digests; `prompts` of what judges were sent, empty
    where nobody was asked. `value`: the item's mean, None where nothing is scored. `override`: the values that
    reviewers set, as one text, '' without any."""

    content: str
    answers: str
    value: float | None
    override: str = ""
    prompts: str = ""


@dataclass(frozen=True, slots=True)
class Item:
    """An item in both runs. `reread`: its mean in the first run if the replies stored there are read as the second
    run reads them; None where that is not known."""

    key: Hashable
    before: Side | None
    after: Side | None
    reread: float | None = None


@dataclass(frozen=True, slots=True)
class Share:
    """What one cause contributes to the difference of the means, and the keys of its items."""

    cause: str
    difference: float
    items: tuple[Hashable, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """The means of two runs with their difference (second − first), its 95 % interval and its shares.

    `items`: how many are scored in at least one of the runs. Figures are None where a run has no scored item.
    """

    before: float | None
    after: float | None
    difference: float | None
    ci_low: float | None
    ci_high: float | None
    items: int
    shares: tuple[Share, ...]


def changed_settings(before: MetricDefinition, after: MetricDefinition) -> frozenset[str]:
    """Which of `SETTINGS` differ between two definitions of a metric. A rule program counts as a script.

    A parser has no say where a postprocess script makes the score, so it is no cause there.
    """
    found = {
        "judge": [_judge(one) for one in before.judges] != [_judge(one) for one in after.judges],
        "prompt": [_prompt(one) for one in before.judges] != [_prompt(one) for one in after.judges],
        "scripts": _scripts(before) != _scripts(after),
        "parser": not (before.postprocess and after.postprocess) and _parser(before) != _parser(after),
    }
    return frozenset(name for name, differs in found.items() if differs)


def rereads(before: MetricDefinition, after: MetricDefinition) -> bool:
    """Whether reading the first run's replies as the second does tells asking and reading apart: both changed, and
    reading alone can be repeated."""
    changed = changed_settings(before, after)
    same_before = before.preprocess == after.preprocess and not before.rules and not after.rules
    same_judges = len(before.judges) == len(after.judges) > 0
    return bool(changed & ASKING) and bool(changed - ASKING) and same_before and same_judges


def _judge(judge: JudgeModel) -> tuple[object, ...]:
    return judge.endpoint, judge.url, judge.model, judge.params, judge.repeats, judge.both_orders


def _prompt(judge: JudgeModel) -> tuple[object, ...]:
    return judge.template, judge.system_prompt or ""


def _scripts(metric: MetricDefinition) -> tuple[object, ...]:
    return metric.preprocess, metric.rules, metric.postprocess


def _parser(metric: MetricDefinition) -> tuple[object, ...]:
    parsers = [judge.parse for judge in metric.judges]
    return parsers, metric.min_score, metric.max_score, metric.jury, metric.quorum


def change_between(items: Iterable[Item], settings: frozenset[str]) -> Change:
    """The change of one candidate's mean under one metric; `settings` as `changed_settings` gives them."""
    scored = [one for one in items if _value(one.before) is not None or _value(one.after) is not None]
    before = _mean([value for one in scored if (value := _value(one.before)) is not None])
    after = _mean([value for one in scored if (value := _value(one.after)) is not None])
    if before is None or after is None:
        return Change(before, after, None, None, None, len(scored), ())
    parts = _parts(scored, settings)
    causes = sorted({part.cause for part in parts}, key=_order)
    shares = tuple(_share(cause, parts) for cause in causes)
    difference = after - before
    low, high = _interval(scored, before, after)
    return Change(before, after, difference, low, high, len(scored), shares)


@dataclass(frozen=True, slots=True)
class _Part:
    cause: str
    key: Hashable
    difference: float


def _value(side: Side | None) -> float | None:
    return None if side is None else side.value


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _parts(scored: Sequence[Item], settings: frozenset[str]) -> list[_Part]:
    """What each item adds to the difference (see the head of this file), under its cause or causes."""
    pairs = [(_value(one.before), _value(one.after)) for one in scored]
    common = [(a, b) for a, b in pairs if a is not None and b is not None]
    centre_a, centre_b = _mean([a for a, _ in common]) or 0.0, _mean([b for _, b in common]) or 0.0
    count_a, count_b = (sum(pair[side] is not None for pair in pairs) for side in (0, 1))
    found: list[_Part] = []
    for one, (a, b) in zip(scored, pairs, strict=True):
        cause = _cause(one, settings)
        if a is not None and b is not None:
            found += [
                _Part(name, one.key, part / len(common)) for name, part in _split(one, a, b, cause, settings)
            ]
        elif b is not None:
            found.append(_Part(cause, one.key, (b - centre_b) / count_b))
        elif a is not None:
            found.append(_Part(cause, one.key, (centre_a - a) / count_a))
    return found


def _split(item: Item, a: float, b: float, cause: str, settings: frozenset[str]) -> list[tuple[str, float]]:
    """The item's difference under its cause; in two parts where replies read again tell reading from asking."""
    asking = _asking_cause(item, settings & ASKING)
    reading = _named(settings - ASKING)
    if item.reread is None or cause != f"{asking}+{reading}":
        return [(cause, b - a)]
    return [(asking, b - item.reread), (reading, item.reread - a)]


def _cause(item: Item, settings: frozenset[str]) -> str:
    before, after = item.before, item.after
    if before is None or after is None or before.content != after.content:
        return "rows"
    if before.answers != after.answers:
        return "answers"
    if settings:
        return "+".join(filter(None, (_asking_cause(item, settings & ASKING), _named(settings - ASKING))))
    if before.override != after.override:
        return "overrides"
    return "missing" if before.value is None or after.value is None else "noise"


def _asking_cause(item: Item, asking: frozenset[str]) -> str:
    """Judges that were sent the same prompt by both runs differ in the judge alone."""
    before, after = item.before, item.after
    same = before is not None and after is not None and before.prompts and before.prompts == after.prompts
    return "judge" if same and "judge" in asking else _named(asking)


def _named(settings: Iterable[str]) -> str:
    return "+".join(sorted(settings, key=SETTINGS.index))


def _order(cause: str) -> tuple[int, int]:
    first = CAUSES.index(cause.split("+")[0])
    return first, cause.count("+")


def _share(cause: str, parts: Sequence[_Part]) -> Share:
    mine = [part for part in parts if part.cause == cause]
    return Share(
        cause, math.fsum(part.difference for part in mine), tuple(dict.fromkeys(part.key for part in mine))
    )


def _interval(scored: Sequence[Item], before: float, after: float) -> tuple[float | None, float | None]:
    """95 % of the difference by its items' influences u = (y₂ − m₂)/n₂ − (y₁ − m₁)/n₁, those of a run that lacks the
    item 0: se² = N/(N − 1) · Σ u², t with N − 1 degrees of freedom. Paired where all items are shared.
    """
    from scipy.stats import t  # late: start-up does not wait for scipy

    if len(scored) < 2:
        return None, None
    count_a = sum(_value(one.before) is not None for one in scored)
    count_b = sum(_value(one.after) is not None for one in scored)
    squares = []
    for one in scored:
        a, b = _value(one.before), _value(one.after)
        influence = (0.0 if b is None else (b - after) / count_b) - (
            0.0 if a is None else (a - before) / count_a
        )
        squares.append(influence**2)
    error = math.sqrt(math.fsum(squares) * len(scored) / (len(scored) - 1))
    reach = float(t.ppf(UPPER, len(scored) - 1)) * error
    return after - before - reach, after - before + reach
