"""A metric as data: its judge models, prompts, scripts or rule program, and how votes come to a score.

It is kept as JSON, so a run's frozen copy is exactly what was judged by.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from judging.core.rules.check import read_program
from judging.core.values import scale_level

ParserSpec = str | dict[str, str]
Jury = Literal["mean", "median", "majority"]
JURIES: tuple[Jury, ...] = ("mean", "median", "majority")


class JudgeModel(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One judge model of a metric: its endpoint (an id or an address) and what it is asked."""

    name: str
    template: str
    endpoint: int | None = None
    url: str = ""
    model: str = ""
    api_key_env: str = ""
    system_prompt: str | None = None
    params: dict[str, Any] = {}
    parse: ParserSpec = "score"
    repeats: int = 1
    both_orders: bool = False

    @property
    def calls(self) -> int:
        """Requests for one judgement, if all succeed."""
        return self.repeats * (2 if self.both_orders else 1)


class MetricDefinition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A named pipeline. Scripts are source texts; `undefined` is strict or lenient, `sandbox` batch or item.

    `rules`: the text of a rule program, in place of judge models that score; the one judge model next to it is called
    for the program's own lines. `jury`: how the judges' votes come to a score where no postprocess says; `quorum`:
    how many of them must be readable. `values`: of an imported metric, the kind of its values; one without a
    `scale_declared` has no lowest and no highest score.
    """

    name: str
    min_score: float = 1
    max_score: float = 10
    undefined: Literal["strict", "lenient"] = "strict"
    sandbox: Literal["batch", "item"] = "batch"
    preprocess: str = ""
    judges: tuple[JudgeModel, ...] = ()
    rules: str = ""
    postprocess: str = ""
    jury: Jury = "mean"
    quorum: int = 1
    values: Literal["", "number", "bool", "category", "comparison"] = ""
    scale_declared: bool = True

    def judge_name(self, number: int) -> str:
        """A judge's name; of two of one name the later has its number behind it."""
        names = [judge.name for judge in self.judges]
        return names[number] if names.index(names[number]) == number else f"{names[number]} #{number + 1}"

    @property
    def calls(self) -> int:
        """Requests for one judgement, if all succeed. Of a rule program one for each line that a judge model scores;
        `@all` counts as one field."""
        return round(self.calls_over(1))

    def calls_over(self, fields: float) -> float:
        """The same where the references have so many fields, which `@all` represents."""
        if self.rules:
            program = read_program(self.rules).program
            judged = [rule for rule in program.rules if rule.function.by == "judge"] if program else []
            return sum(fields if rule.target.kind == "all" else 1 for rule in judged)
        return sum(judge.calls for judge in self.judges)

    @property
    def votes(self) -> int:
        """How many votes on one response there are at most; a comparison in both orders is one."""
        return sum(judge.repeats for judge in self.judges)

    def level(self, value: str | None, score: float | None) -> int | None:
        """Where on the scale a stored value with this score is, from 1; None without a number on a scale."""
        if score is None:
            return None
        if value in ("true", "false"):
            return scale_level(score, 0, 1)
        return scale_level(score, self.min_score, self.max_score) if self.scale_declared else None

    def to_json(self) -> str:
        return msgspec.json.encode(self).decode()

    @classmethod
    def from_json(cls, text: str) -> MetricDefinition:
        """Raises msgspec.ValidationError for a text that is no definition."""
        return msgspec.json.decode(text, type=cls)
