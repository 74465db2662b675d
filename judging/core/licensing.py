"""What a judge's licence is bound to, and the split of a data set's rows that it is measured with. Seeded."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from datasets.core.kinds import CATEGORY, CHECKLIST, PASS_FAIL
from judging.core.metric_definition import JudgeModel, MetricDefinition
from judging.core.statistics.licence import Judged
from judging.core.statistics.verdicts import STEPS
from judging.core.values import Value

Part = Literal["train", "dev", "test"]
TRAIN, DEV, TEST = "train", "dev", "test"
FEWEST_TEST = 60
_NAMES = frozenset(("name", "endpoint", "url", "api_key_env"))


def definition_hash(definition: MetricDefinition) -> str:
    """SHA-256, as hex, of what decides a metric's values: `definition` as a run freezes it.

    Templates, system prompts, parser, scripts and judges in order, kind with its scale and labels, each judge's model
    and parameters, repeats, orders, jury; without names, keys and addresses, so that equal content has one hash.
    """
    return hashlib.sha256(msgspec.json.encode(_content(definition), order="sorted")).hexdigest()


def _content(definition: MetricDefinition) -> dict[str, Any]:
    ends = {"min_score": float(definition.min_score), "max_score": float(definition.max_score)}
    return {**_values(definition), **ends, "judges": [_values(judge) for judge in definition.judges]}


def _values(struct: MetricDefinition | JudgeModel) -> dict[str, Any]:
    """Its values without names; of those that equal a default only the protocol. (msgspec itself leaves out a default
    only where it is the same object, so equal structs have different JSON.)"""
    values: dict[str, Any] = {}
    for field in msgspec.structs.fields(struct):
        value = getattr(struct, field.name)
        if field.name in _NAMES or (field.name != "protocol" and value == field.default):
            continue
        if value or field.default is not msgspec.NODEFAULT:
            values[field.name] = msgspec.to_builtins(value)
    return values


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many rows a split has for each part."""

    train: int = 20
    dev: int = 40
    test: int = FEWEST_TEST


def sizes_of(rows: int) -> Sizes:
    """The usual split of so many rows to be rated: 20 train, 40 dev, the rest test, at least 60."""
    usual = Sizes()
    return Sizes(usual.train, usual.dev, max(FEWEST_TEST, rows - usual.train - usual.dev))


def draw_parts(
    keys: Sequence[str],
    aside: Collection[str],
    sizes: Sizes,
    seed: int,
    train: Collection[str] = (),
    weights: Mapping[str, float] | None = None,
) -> dict[str, Part]:
    """{key of a row: its part}. The test is drawn first, every row with the same probability, from the rows set aside,
    or from all where none are; train and dev are drawn from the others, never from rows set aside. `train`: rows that
    were looked at, which are train whatever is drawn and count in its size. `weights`: with which train and dev are
    drawn (`weighted_chances`), never the test; None: evenly."""
    order = random.Random(f"split:{seed}")
    reserved = set(aside)
    looked_at = (set(train) & set(keys)) - reserved
    pool = sorted(reserved & set(keys)) if reserved else sorted(set(keys) - looked_at)
    test = order.sample(pool, min(sizes.test, len(pool)))
    others = sorted(set(keys) - set(test) - reserved - looked_at)
    further = max(0, sizes.train - len(looked_at))
    size = min(further + sizes.dev, len(others))
    rest = order.sample(others, size) if weights is None else _weighted_sample(others, weights, size, order)
    dev = rest[: min(sizes.dev, len(rest))]
    trained = [*sorted(looked_at), *rest[len(dev) :]]
    drawn: list[tuple[Part, list[str]]] = [("test", test), ("dev", dev), ("train", trained)]
    return {key: part for part, of_part in drawn for key in of_part}


@dataclass(frozen=True, slots=True)
class Growth:
    """What a further draw can add to a test without giving rows different chances.

    `tested` of the `earlier` rows are in the test, `left` of them can still be drawn for it; `new` rows were in no
    earlier draw.
    """

    earlier: int
    tested: int
    left: int
    new: int

    @property
    def fewest(self) -> int:
        """So many of the new rows must join the test, to be as likely in it as the earlier ones."""
        return self.tested * self.new // self.earlier if self.earlier else 0

    @property
    def most(self) -> int:
        """With more, the new rows would be more likely, as no earlier ones are left."""
        if not self.earlier:
            return self.new
        both = self.earlier + self.new
        return min(self.left + self.new, (self.left * both + self.tested * self.new) // self.earlier)

    def divided(self, further: int) -> tuple[int, int]:
        """How many earlier and how many new rows join the test, so that all have the same probability, to the rounding.
        Raises ValueError outside of `fewest` and `most`."""
        if not self.fewest <= further <= self.most:
            raise ValueError(further)
        both = self.earlier + self.new
        of_new = (2 * (self.tested + further) * self.new + both) // (2 * both)
        of_new = min(further, self.new, max(of_new, further - self.left))
        return further - of_new, of_new


def draw_further(
    pools: tuple[Collection[str], Collection[str]],
    others: Collection[str],
    counts: tuple[int, int],
    sizes: Sizes,
    seed: int,
) -> dict[str, Part]:
    """{key of a row: its part} of a further draw, evenly: `counts` rows of each of the two `pools`, earlier and new
    rows, for the test; then dev and train from `others`, without the drawn ones."""
    order = random.Random(f"further:{seed}")
    tested = [
        key for pool, count in zip(pools, counts, strict=True) for key in order.sample(sorted(pool), count)
    ]
    rest = sorted(set(others) - set(tested))
    drawn = order.sample(rest, min(sizes.dev + sizes.train, len(rest)))
    parts: dict[str, Part] = dict.fromkeys(tested, "test")
    parts |= dict.fromkeys(drawn[: sizes.dev], "dev")
    return parts | dict.fromkeys(drawn[sizes.dev :], "train")


def weighted_chances(keys: Sequence[str], weights: Mapping[str, float], size: int) -> dict[str, float]:
    """{key: the probability with which it is among `size` drawn rows}, in proportion to the weights, at most 1."""
    chances: dict[str, float] = {}
    rest, left = list(keys), size
    while rest and left > 0:
        total = sum(weights.get(key, 1.0) for key in rest)
        certain = [key for key in rest if left * weights.get(key, 1.0) >= total]
        if not certain:
            break
        chances |= dict.fromkeys(certain, 1.0)
        rest, left = [key for key in rest if key not in chances], left - len(certain)
    total = sum(weights.get(key, 1.0) for key in rest)
    return chances | {key: max(0, left) * weights.get(key, 1.0) / total for key in rest}


def _weighted_sample(
    keys: Sequence[str], weights: Mapping[str, float], size: int, order: random.Random
) -> list[str]:
    """`size` rows in random order, each with its probability of `weighted_chances`: a systematic sample of the rows in
    random order, whose probabilities are exact. Source: Madow 1949."""
    chances = weighted_chances(keys, weights, size)
    shuffled = list(keys)
    order.shuffle(shuffled)
    start, reached, drawn = order.random(), 0.0, []
    for key in shuffled:
        before, reached = reached, reached + chances[key]
        if int(reached - start + 1) > int(before - start + 1):
            drawn.append(key)
    order.shuffle(drawn)
    return drawn


def judged_as(kind: str) -> Judged:
    """How the values of a kind (`datasets.core.kinds`) are measured; a checklist by its criteria."""
    return "passes" if kind in (PASS_FAIL, CHECKLIST) else "labels" if kind == CATEGORY else "ordered"


def coded(values: Sequence[Value], places: Mapping[str, int]) -> list[float]:
    """Values as numbers: a comparison by its direction (−1, 0, 1), another label by its place in `places`."""
    return [
        float(value)
        if not isinstance(value, str)
        else float((STEPS[value] > 0) - (STEPS[value] < 0))
        if value in STEPS
        else float(places[value])
        for value in values
    ]


def places_of(*columns: Sequence[Value]) -> dict[str, int]:
    """A number for each label."""
    labels = sorted({value for column in columns for value in column if isinstance(value, str)})
    return {label: place for place, label in enumerate(labels)}
