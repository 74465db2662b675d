"""A metric as data: its judge models, prompts, scripts or rule program, and how votes are combined to a score.

Stored as JSON, so a run's frozen copy is exactly what it was judged with.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, Literal, NamedTuple

import msgspec

from datasets.core.kinds import (
    BOTH_BAD,
    CATEGORY,
    CHECKLIST,
    COMPARISON,
    COMPARISON_CODES,
    KINDS,
    PASS_FAIL,
    SCORE,
)
from judging.core.judges.protocols import CHAT
from judging.core.reading.gives import Gives
from judging.core.rules.check import read_program
from judging.core.scripts import ScriptKind
from judging.core.values import Value, scale_level, verdict_code

ParserSpec = str | dict[str, str]
Jury = Literal["mean", "median", "majority"]
Undefined = Literal["strict", "lenient"]
SandboxMode = Literal["batch", "item"]
Compares = Literal["reference", "all", "baseline"]
Structured = Literal["auto", "on", "off"]
StepType = Literal["PREPROCESS", "JUDGE_MODEL", "RULES", "POSTPROCESS"]
STEP_TYPES: tuple[StepType, ...] = ("PREPROCESS", "JUDGE_MODEL", "RULES", "POSTPROCESS")
SCRIPT_KINDS: dict[StepType, ScriptKind] = {"PREPROCESS": "preprocess", "POSTPROCESS": "postprocess"}
_SCRIPT_STEPS: dict[ScriptKind, StepType] = {kind: step for step, kind in SCRIPT_KINDS.items()}
JURIES: tuple[Jury, ...] = ("mean", "median", "majority")
UNDEFINED: tuple[Undefined, ...] = ("strict", "lenient")
SANDBOX: tuple[SandboxMode, ...] = ("batch", "item")
STRUCTURED: tuple[Structured, ...] = ("auto", "on", "off")


_READING = ("min_score", "max_score", "gives", "labels", "both_bad", "three_steps", "whole", "step")
"""What is read from replies."""


class Label(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One of a category metric's labels. `value`: what it counts as in a mean, or None."""

    label: str
    description: str = ""
    value: float | None = None


class JudgeModel(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One judge model of a metric: its endpoint (an id or a URL) and its requests."""

    name: str
    template: str
    endpoint: int | None = None
    url: str = ""
    model: str = ""
    protocol: str = CHAT
    api_key_env: str = ""
    system_prompt: str | None = None
    params: dict[str, Any] = {}
    parse: ParserSpec = "score"
    repeats: int = 1
    both_orders: bool = False

    @property
    def calls(self) -> int:
        """Number of requests for one judgement, if all succeed."""
        return self.repeats * (2 if self.both_orders else 1)


class Script(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A script step. `after`: how many of the metric's judge models (or 1: its rule program) stand before it."""

    kind: ScriptKind
    source: str
    after: int = 0


class Step(NamedTuple):
    """A step of a metric. `number`: of its script among the scripts, or of its judge model among the judge models."""

    type: StepType
    number: int


class MetricDefinition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A named pipeline of `steps`; `undefined` is strict or lenient, `sandbox` batch or item.

    `judges` and `scripts` are in the order in which they run; each script knows its place among the judges. `rules`:
    the text of a rule program, used in place of scoring judge models; a judge model next to it is called for the
    program's judged lines. `jury`: how the votes of the last judges in a row are combined where no script gives the
    value; `quorum`: the minimum number of valid votes. Without `scale_declared` an imported metric has no lowest and
    highest score.

    `gives`: the kind of its values (`datasets.core.kinds`); '' if it does not say, see `kind`. Categories have
    `labels`. Comparisons: whether an answer is compared with its row's reference, every candidate's or the one of
    candidate `baseline`; whether `both_bad` is offered; whether stronger forms count as the plain ones (`three_steps`);
    `any_pairs`: all pairs of more than four candidates; `all_answers`: every answer of one with every answer of the
    other. Scores: only `whole` numbers, only multiples of `step` from `min_score` (0: any). Checklists: whether one
    request asks about all criteria (`at_once`). `structured`: whether judges are asked for JSON by a schema;
    `ask_again`: how often a judge whose reply cannot be read is asked once more.
    """

    name: str
    min_score: float = 1
    max_score: float = 10
    undefined: Undefined = "strict"
    sandbox: SandboxMode = "batch"
    scripts: tuple[Script, ...] = ()
    judges: tuple[JudgeModel, ...] = ()
    rules: str = ""
    jury: Jury = "mean"
    quorum: int = 1
    gives: str = ""
    labels: tuple[Label, ...] = ()
    compares: Compares = "reference"
    baseline: str = ""
    both_bad: bool = False
    three_steps: bool = False
    any_pairs: bool = False
    all_answers: bool = False
    whole: bool = False
    step: float = 0
    at_once: bool = False
    structured: Structured = "off"
    ask_again: int = 0
    scale_declared: bool = True

    @property
    def kind(self) -> str:
        """What it gives; '' if that is whatever its last script returns."""
        return self.gives if self.gives or self.scored_by_script else self.asks_for

    @property
    def asks_for(self) -> str:
        """What its judges are asked for, whatever a script makes of it."""
        written = COMPARISON if any(judge.parse == COMPARISON for judge in self.judges) else SCORE
        return self.gives or written

    @property
    def compares_reference(self) -> bool:
        """Whether its scores, 1 to 5, compare an answer with its row's reference."""
        return self.kind == COMPARISON and not self.compares_candidates

    def verdict_of(self, value: Value | None) -> str:
        """The verdict that a number of a comparison with the reference stands for, such as A=B, and the end of the
        scale for a checklist's share of points beyond it; '' for all other values, such as the mean of several
        verdicts."""
        if self.gives == CHECKLIST and isinstance(value, int | float) and not 0 <= value <= 1:
            return "0" if value < 0 else "1"
        return verdict_code(value) if self.compares_reference else ""

    @property
    def asks_by_criterion(self) -> bool:
        """Whether a request asks about one criterion of the row's rubric."""
        return self.gives == CHECKLIST and not self.at_once

    @property
    def judging_steps(self) -> int:
        """How many steps judge: its judge models, or 1 for a rule program."""
        return 1 if self.rules else len(self.judges)

    @property
    def stages(self) -> list[int | range]:
        """What runs one after the other: scripts, by their number, and judge models in a row, by their numbers. A rule
        program is `range(1)`."""
        stages: list[int | range] = []
        judging = 0
        for number, script in enumerate(self.scripts):
            if script.after > judging:
                stages.append(range(judging, script.after))
                judging = script.after
            stages.append(number)
        if judging < self.judging_steps:
            stages.append(range(judging, self.judging_steps))
        return stages

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps in the order in which they run; judge models in a row may run together."""
        steps: list[Step] = []
        for stage in self.stages:
            if isinstance(stage, int):
                steps.append(Step(_SCRIPT_STEPS[self.scripts[stage].kind], stage))
            else:
                steps += [Step("RULES" if self.rules else "JUDGE_MODEL", number) for number in stage]
        return tuple(steps)

    @property
    def first_row(self) -> range:
        """The numbers of the first judge models in a row: what the steps before them do is known without asking."""
        later = [script.after for script in self.scripts if script.after]
        return range(min(later, default=self.judging_steps))

    @property
    def first_scripts(self) -> tuple[Script, ...]:
        """The scripts before the first judge."""
        return tuple(script for script in self.scripts if not script.after)

    @property
    def last_row(self) -> range:
        """The numbers of the last judge models in a row, whose replies are read. Empty without judges."""
        before = [script.after for script in self.scripts if script.after < self.judging_steps]
        return range(max(before, default=0), self.judging_steps)

    @property
    def voters(self) -> tuple[JudgeModel, ...]:
        """The judge models of `last_row`."""
        return self.judges[self.last_row.start :]

    @property
    def scripts_before_judges(self) -> tuple[Script, ...]:
        """The scripts that run before the last judge, on which its replies are based."""
        return tuple(script for script in self.scripts if script.after < self.judging_steps)

    @property
    def value_scripts(self) -> list[int]:
        """The numbers of the scripts whose results can be the value: the postprocesses after the last judge, or the
        preprocesses of a metric of nothing else."""
        last = [number for number, script in enumerate(self.scripts) if script.after == self.judging_steps]
        post = [number for number in last if self.scripts[number].kind == "postprocess"]
        return post if post or self.judging_steps else last

    @property
    def scored_by_script(self) -> bool:
        """Whether its values are what a script returns."""
        return bool(self.value_scripts) or not self.judging_steps

    @property
    def compares_candidates(self) -> bool:
        """Whether its values compare two candidates' answers."""
        return self.gives == COMPARISON and self.compares != "reference"

    @property
    def votes_by_majority(self) -> bool:
        """Whether several votes give a value only if more than half of them agree."""
        return self.gives in (PASS_FAIL, CATEGORY) or self.compares_candidates

    @property
    def label_names(self) -> tuple[str, ...]:
        return tuple(label.label for label in self.labels)

    def fits(self, value: Value) -> bool:
        """Whether a value is of the type that `gives` says."""
        if self.gives == PASS_FAIL:
            return isinstance(value, bool)
        if self.gives == CATEGORY:
            return value in self.label_names
        if self.compares_candidates:
            return value in (*COMPARISON_CODES, BOTH_BAD)
        return isinstance(value, int | float) and not isinstance(value, bool)

    def reading_of(self, judge: JudgeModel) -> Gives:
        """What is read from a judge's replies: a value of the metric's kind, or as the judge's `parse` says."""
        written = COMPARISON if judge.parse == COMPARISON else SCORE
        return Gives(
            KINDS[self.gives].read_as if self.gives else written,
            self.name,
            self.min_score,
            self.max_score,
            whole=self.whole,
            step=self.step,
            labels=self.label_names,
            both_bad=self.both_bad and self.compares_candidates,
            three_steps=self.three_steps,
            of_candidates=self.compares_candidates,
        )

    def read_as(self, other: MetricDefinition) -> MetricDefinition:
        """This definition with what `other` reads from replies, and how it combines several."""
        fields = (*_READING, "jury", "quorum")
        judges = zip(self.judges, other.judges, strict=True)
        return msgspec.structs.replace(
            self,
            judges=tuple(msgspec.structs.replace(judge, parse=its.parse) for judge, its in judges),
            **{name: getattr(other, name) for name in fields},
        )

    def reads_as(self, other: MetricDefinition) -> bool:
        """Whether both read the same from replies and combine them in the same way, with as many judges."""
        return len(self.judges) == len(other.judges) and self == self.read_as(other)

    def pairs(self, candidates: Sequence[str]) -> list[tuple[str, str]]:
        """The pairs (A, B) of these candidates that it compares; none if it does not compare candidates.

        Raises ValueError if there is no candidate named as its baseline.
        """
        if not self.compares_candidates:
            return []
        if self.compares == "all":
            return list(combinations(candidates, 2))
        if self.baseline not in candidates:
            raise ValueError(self.baseline)
        return [(name, self.baseline) for name in candidates if name != self.baseline]

    @property
    def sees_one_order(self) -> bool:
        """Whether a judge sees each pair of candidates in one order only."""
        return self.compares_candidates and not all(judge.both_orders for judge in self.judges)

    def judge_name(self, number: int) -> str:
        """A judge's name; a later judge with the same name gets its number appended."""
        names = [judge.name for judge in self.judges]
        return names[number] if names.index(names[number]) == number else f"{names[number]} #{number + 1}"

    @property
    def calls(self) -> int:
        """Number of requests for one judgement, if all succeed.

        For a rule program, one per line scored by a judge model; `@all` counts as one field.
        """
        return round(self.calls_over(1))

    def calls_over(self, fields: float, criteria: float = 1) -> float:
        """The same for references with this many fields, which `@all` stands for, and rubrics with as many criteria."""
        if self.rules:
            program = read_program(self.rules).program
            judged = [rule for rule in program.rules if rule.function.by == "judge"] if program else []
            return sum(fields if rule.target.kind == "all" else 1 for rule in judged)
        each = criteria if self.asks_by_criterion else 1
        return sum(
            judge.calls * (each if number in self.last_row else 1) for number, judge in enumerate(self.judges)
        )

    @property
    def votes(self) -> int:
        """The maximum number of votes on one response; a comparison in both orders counts as one."""
        return sum(judge.repeats for judge in self.voters)

    def level(self, value: str | None, score: float | None) -> int | None:
        """The level (from 1) of a stored value with this score on the scale; None without a number on a scale."""
        if score is None:
            return None
        if value in ("true", "false"):
            return scale_level(score, 0, 1)
        return scale_level(score, self.min_score, self.max_score) if self.scale_declared else None

    def to_json(self) -> str:
        return msgspec.json.encode(self).decode()

    @classmethod
    def from_json(cls, text: str) -> MetricDefinition:
        """Raises msgspec.ValidationError if the text is not a valid definition."""
        return _decode(text)


_decode = msgspec.json.Decoder(MetricDefinition).decode
