"""Applies a program to one answer: scores mechanical lines at once, collects questions and calls, then concludes.

    evaluation = plan(program, answer, reference)
    results = {line: …}    results of questions (ask.read_reply) and calls (python_blocks.run_code) by line
    result = conclude(evaluation, results)

`judge_by_rules` does all of this for one item of a run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from datasets.core.texts import Text, gettext_noop
from datasets.core.variables import reference_in
from judging.core.results import JudgeCall, JudgedItem, Question, Ruled, RuledLine, Verdict
from judging.core.rules import keywords
from judging.core.rules.ask import prompt_for, read_call
from judging.core.rules.formats import (
    MISSING,
    Fields,
    FieldValue,
    NotInFormat,
    check_depth,
    look_up,
    read_fields,
    read_reference,
    root_around,
)
from judging.core.rules.functions import aggregate
from judging.core.rules.program import WORST, BlockCall, Code, Field, Format, Program, Reason, Rule, Scored
from judging.core.rules.values import Value, from_python, json_text, text_of
from judging.core.values import Outcome

FIELD_MISSING, REFERENCE_FORMAT = "reference.field_missing", "reference.format"
ANSWER_LACKS = "field_missing"  # a reason that comes with a score of 1
FORGIVEN = "forgiven"  # a parameter of reasons: the reference's trailing commas and comments were left out
_IN_THE_LINE = ("json_met", "json_wanted")  # already in the sentence about the line
NOT_ASKED, NO_JUDGE = "not_asked", "judge.missing"
PENDING = Reason("pending")

REASONS: dict[str, Text] = {
    "field_missing": gettext_noop("The answer has no field “%(name)s”."),
    "field_missing.root": gettext_noop(
        "The answer has no field “%(name)s” at its top: it stands inside “%(root)s”. Write “%(format)s:XML:%(root)s”."
    ),
    "pending": gettext_noop("Not scored yet."),
    "not_asked": gettext_noop("Not scored, because another line has an error."),
    "judge.missing": gettext_noop("This line needs a judge model, but none is set."),
    "reference.field_missing": gettext_noop("The reference has no field “%(name)s”. Fix the row."),
    "reference.field_missing.none": gettext_noop(
        "The row has no reference (neither ref_answer nor an answer in its messages), and this line needs one."
    ),
    "reference.field_missing.root": gettext_noop(
        "The reference has no field “%(name)s” at its top: it stands inside “%(root)s”. "
        "Write “%(format)s:XML:%(root)s”."
    ),
    "reference.field_missing.empty": gettext_noop(
        "The reference has no fields, so “%(name)s” matches none. Fix the row."
    ),
    "reference.format": gettext_noop("The reference doesn't match the program's format. Fix the row."),
}
"""Why a line has no score or a missing field, by code, or by code and `why`."""

Run = Callable[[BlockCall], Awaitable[Scored | Reason]]
# One reply per question, in order; None if stored replies are parsed again and have none for this question.
Ask = Callable[[Sequence[Question]], Awaitable[Sequence[JudgeCall | None]]]
LineResults = dict[int, Scored | Reason]

JUDGE = 0  # a rule metric has one judge model; a question's `repeat` is the index of its line
MOST_VALUE = 4000  # characters of a field's value that are stored with its score


@dataclass(frozen=True, slots=True)
class LineQuestion:
    """A question to the judge model. `line` is an index into the evaluation's lines."""

    line: int
    prompt: str


class LineResult(msgspec.Struct, frozen=True, gc=False):
    """A rule applied to one field. Without a score, `reason.code` is `pending` or an error of the row.

    `answer` and `reference` are the compared values, None if missing or not needed.
    """

    rule: Rule
    name: str
    score: int | float | None
    reason: Reason
    answer: Value = None
    reference: Value = None


class RuleEvaluation(msgspec.Struct, frozen=True):
    """A program's lines with their open questions and calls, in the order of the lines.

    `failure`: why the answer lacks the format; there are no lines then.
    """

    program: Program
    lines: tuple[LineResult, ...] = ()
    failure: Reason | None = None
    questions: tuple[LineQuestion, ...] = ()
    calls: tuple[BlockCall, ...] = ()


def plan(program: Program, answer: str, reference: Any) -> RuleEvaluation:
    """Score the mechanical lines. `reference` is a text, a decoded JSON value or None. Raises nothing."""
    try:
        answered = _Side(read_fields(program.format, answer), answer)
    except NotInFormat as error:
        return RuleEvaluation(program, failure=Reason(error.reason, error.params))
    planner = _Planner(answered, program.format, reference)
    for rule in program.rules:
        planner.add(rule)
    return RuleEvaluation(program, tuple(planner.lines), None, tuple(planner.questions), tuple(planner.calls))


class _Side(msgspec.Struct, frozen=True):
    """The answer or the reference: its fields, and all of it. `forgiven`: read without trailing commas and comments."""

    fields: Fields
    whole: Value
    forgiven: bool = False

    def value_of(self, target: Field, name: str) -> FieldValue:
        return text_of(self.whole) if target.kind == "whole" else look_up(self.fields, name, target.path)


class _RowError(Exception):
    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.code)
        self.reason = reason


def _side_of(form: Format, content: Any) -> _Side:
    if isinstance(content, str):
        fields, text = read_reference(form, content)
        return _Side(fields, text, forgiven=text != content)
    if form.kind == "xml":
        raise NotInFormat("not_xml", line="1", column="1")
    check_depth(content)
    value = from_python(content)
    if form.kind == "text":
        return _Side({}, value)
    if not isinstance(value, dict):
        raise NotInFormat("not_object")
    return _Side(value, value)


class _Planner:
    """Collects lines, with questions and calls for those that are not scored mechanically.

    The reference is parsed when a line first needs it.
    """

    def __init__(self, answer: _Side, form: Format, reference: Any) -> None:
        self.lines: list[LineResult] = []
        self.questions: list[LineQuestion] = []
        self.calls: list[BlockCall] = []
        self._answer = answer
        self._form, self._given = form, reference
        self._parsed: _Side | None = None

    def add(self, rule: Rule) -> None:
        name = rule.target.written
        if rule.target.kind != "all":
            self._add_line(rule, name)
            return
        try:
            fields = list(self._reference(name).fields)
            if not fields:
                raise _RowError(Reason(FIELD_MISSING, {"name": name, "why": "empty"}))
        except _RowError as error:
            self.lines.append(LineResult(rule, name, None, error.reason))
        else:
            for field_name in fields:
                self._add_line(rule, field_name)

    def _reference(self, name: str) -> _Side:
        """Raises _RowError if there is no reference or it lacks the format."""
        if self._given is None:
            raise _RowError(Reason(FIELD_MISSING, {"name": name, "why": "none"}))
        if self._parsed is None:
            try:
                self._parsed = _side_of(self._form, self._given)
            except NotInFormat as error:
                raise _RowError(Reason(REFERENCE_FORMAT, {"why": error.reason, **error.params})) from None
        return self._parsed

    def _reference_value(self, rule: Rule, name: str) -> Value:
        reference = self._reference(name)
        value = reference.value_of(rule.target, name)
        if value is MISSING:
            raise _RowError(
                Reason(FIELD_MISSING, {"name": name, "why": "lacks", **_inside(reference, rule, name)})
            )
        return value

    def _add_line(self, rule: Rule, name: str) -> None:
        answer, wanted = self._answer.value_of(rule.target, name), None
        if rule.needs_reference:
            try:
                wanted = self._reference_value(rule, name)
            except _RowError as error:
                shown = None if answer is MISSING else answer
                self.lines.append(LineResult(rule, name, None, error.reason, shown))
                return
        elif rule.function.needs_reference:
            wanted = str(rule.argument)
        if answer is MISSING:
            missing = Reason(ANSWER_LACKS, {"name": name, **_inside(self._answer, rule, name)})
            self.lines.append(LineResult(rule, name, WORST, missing, None, wanted))
        else:
            self._add_scored(rule, name, answer, wanted)

    def _add_scored(self, rule: Rule, name: str, answer: Value, reference: Value) -> None:
        if rule.function.score is not None:
            scored: Scored = rule.function.score(answer, reference, rule.argument)
            reason = self._of_reference(rule, scored.reason)
            self.lines.append(LineResult(rule, name, scored.score, reason, answer, reference))
            return
        index = len(self.lines)
        self.lines.append(LineResult(rule, name, None, self._of_reference(rule, PENDING), answer, reference))
        if isinstance(rule.argument, Code):
            arguments = json_text({"ref_answer": reference, "model_answer": answer})
            self.calls.append(BlockCall(index, rule.argument, arguments))
        else:
            self.questions.append(LineQuestion(index, prompt_for(rule, name, answer, reference)))

    def _of_reference(self, rule: Rule, reason: Reason) -> Reason:
        """The reason, saying so if it rests on a reference that was read without its trailing commas and comments."""
        forgiven = rule.needs_reference and self._parsed is not None and self._parsed.forgiven
        return _forgiving(reason) if forgiven else reason


def _forgiving(reason: Reason) -> Reason:
    return Reason(reason.code, {**reason.params, FORGIVEN: "yes"})


def _inside(side: _Side, rule: Rule, name: str) -> dict[str, str]:
    """Parameters of the reason for a missing field that stands inside an XML root; else none."""
    root = root_around(side.fields, name) if rule.target.kind == "named" else ""
    return {"why": "root", "root": root, "format": keywords.FORMAT.in_language(rule.language)} if root else {}


@dataclass(frozen=True, slots=True)
class LineError:
    """The first line without a score; `line` is its line in the program."""

    code: str
    line: int
    params: dict[str, str] = field(default_factory=dict)


class Result(msgspec.Struct, frozen=True):
    """A program's result: a `score`, unless there is an `error`.

    `failure`: why the answer lacks the format (score 1, no lines).
    """

    score: int | float | None
    lines: tuple[LineResult, ...]
    failure: Reason | None = None
    error: LineError | None = None

    @property
    def format_ok(self) -> bool:
        return self.failure is None

    def outcome(self) -> Outcome:
        """The judgement's outcome, never `unparsed`. An error's detail starts with the program's line."""
        if self.error is None:
            return Outcome("scored", self.score)
        details = "; ".join(
            text for name, text in self.error.params.items() if text and name not in _IN_THE_LINE
        )
        return Outcome.error(self.error.code, f"{self.error.line}: {details}")


def needs_answers(evaluation: RuleEvaluation) -> bool:
    """Whether questions and calls are worth making: not if a line without a score already decides the outcome."""
    return all(line.score is not None or line.reason.code == "pending" for line in evaluation.lines)


def conclude(evaluation: RuleEvaluation, results: Mapping[int, Scored | Reason]) -> Result:
    """Combine all lines into the result.

    `results`: by index of the line, its score or the reason why there is none.
    """
    if evaluation.failure is not None:
        return Result(WORST, (), evaluation.failure)
    lines = evaluation.lines
    if evaluation.questions or evaluation.calls:
        lines = tuple(_with_result(line, results.get(index)) for index, line in enumerate(lines))
    scores = [line.score for line in lines if line.score is not None]
    if len(scores) < len(lines):
        failed = [line for line in lines if line.score is None]
        first = next((line for line in failed if line.reason.code != NOT_ASKED), failed[0])
        params = {"name": first.name, **first.reason.params}
        return Result(None, lines, error=LineError(first.reason.code, first.rule.place.line, params))
    return Result(aggregate(evaluation.program.aggregate, scores), lines)


def _with_result(line: LineResult, result: Scored | Reason | None) -> LineResult:
    if line.reason.code != "pending":
        return line
    score, reason = (
        (result.score, result.reason) if isinstance(result, Scored) else (None, result or Reason(NOT_ASKED))
    )
    reason = _forgiving(reason) if FORGIVEN in line.reason.params else reason
    return msgspec.structs.replace(line, score=score, reason=reason)


def evaluate(program: Program, item: JudgedItem) -> RuleEvaluation:
    """Plan the program for an item's answer and its row's reference."""
    return plan(program, item.response.get("content") or "", reference_for(item))


def reference_for(item: JudgedItem) -> Any:
    """The reference of an item, with its numbers as written where available."""
    return reference_in(item.exact or item.data)


async def judge_by_rules(program: Program, item: JudgedItem, run: Run, ask: Ask | None) -> Ruled:
    """Score one item. Python blocks run first: if one fails, calling the judge model would be pointless.

    `ask` is None if the metric has no judge model.
    """
    evaluation = evaluate(program, item)
    if not needs_answers(evaluation):
        return ruled(evaluation)
    scored = await asyncio.gather(*(run(call) for call in evaluation.calls))
    results: LineResults = {call.line: result for call, result in zip(evaluation.calls, scored, strict=True)}
    if not evaluation.questions or any(isinstance(result, Reason) for result in scored):
        return ruled(evaluation, results)
    if ask is None:
        return ruled(
            evaluation, results | {question.line: Reason(NO_JUDGE) for question in evaluation.questions}
        )
    replies = await ask(
        [Question(JUDGE, question.line, question.prompt) for question in evaluation.questions]
    )
    verdicts = []
    for question, reply in zip(evaluation.questions, replies, strict=True):
        if reply is None:
            continue
        result = results[question.line] = read_call(reply)
        if reply.failure is None:
            value, reason = (result.score, "") if isinstance(result, Scored) else (None, result.code)
            verdicts.append(Verdict(reply.judge, reply.repeat, value, reason))
    return ruled(evaluation, results, tuple(call for call in replies if call is not None), tuple(verdicts))


def ruled(
    evaluation: RuleEvaluation,
    results: LineResults | None = None,
    calls: tuple[JudgeCall, ...] = (),
    verdicts: tuple[Verdict, ...] = (),
) -> Ruled:
    """The evaluation with the results of its open lines, in the stored form."""
    result = conclude(evaluation, results or {})
    failure = result.failure
    return Ruled(
        result.outcome(),
        tuple(map(_ruled_line, result.lines)),
        {"reason": failure.code, "params": failure.params} if failure else None,
        calls,
        verdicts,
    )


def _ruled_line(line: LineResult) -> RuledLine:
    answer = None if line.reason.code == ANSWER_LACKS else json_text(line.answer)[:MOST_VALUE]
    rule, reason = line.rule, line.reason
    return RuledLine(rule.place.line, line.score, line.name, rule.word, reason.code, reason.params, answer)
