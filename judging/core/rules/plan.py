"""One answer against one reference, as far as we can score it ourselves; what others must score becomes a request.

evaluation = plan(program, answer, reference)
found = {request.line: … for request in evaluation.requests}     asking.read_reply, code.run_code
result = conclude(evaluation, found)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from judging.core.rules.asking import prompt_for
from judging.core.rules.fields import MISSING, Found, look_up
from judging.core.rules.formats import Fields, NotInFormat, check_depth, read_fields
from judging.core.rules.program import Code, Field, Format, Program, Rule
from judging.core.rules.scoring import WORST, Reason, Scored
from judging.core.rules.values import Value, from_python, json_text, text_of

FIELD_MISSING, REFERENCE_FORMAT = "reference.field_missing", "reference.format"
ANSWER_LACKS = "field_missing"  # a reason with a score, 1


@dataclass(frozen=True, slots=True)
class Question:
    """To be asked of the judge model. `line` is an index of the evaluation's lines."""

    line: int
    prompt: str


@dataclass(frozen=True, slots=True)
class Call:
    """A Python block to be run in the sandbox. `arguments`: JSON text of its two parameters."""

    line: int
    code: Code
    arguments: str


class Line(msgspec.Struct, frozen=True, gc=False):
    """A rule applied to one field. Without a score: `reason.code` is `pending`, or an error of the row.

    `answer` and `reference` are the values that were looked at, None where there is none or none was needed.
    """

    rule: Rule
    name: str
    score: int | float | None
    reason: Reason
    answer: Value = None
    reference: Value = None


PENDING = Reason("pending")


class Evaluation(msgspec.Struct, frozen=True):
    """`failure` says why the answer lacks the format; then there are no lines. Requests stand in the lines' order."""

    program: Program
    lines: tuple[Line, ...] = ()
    failure: Reason | None = None
    questions: tuple[Question, ...] = ()
    calls: tuple[Call, ...] = ()


def plan(program: Program, answer: str, reference: Any) -> Evaluation:
    """Scores the mechanical lines. `reference`: a text, a decoded JSON value, or None. Raises nothing."""
    try:
        answered = _Side(read_fields(program.format, answer), answer)
    except NotInFormat as error:
        return Evaluation(program, failure=Reason(error.reason, error.params))
    planner = _Planner(answered, _Reference(program.format, reference))
    for rule in program.rules:
        planner.add(rule)
    return planner.evaluation(program)


class _Side(msgspec.Struct, frozen=True):
    """The answer, or the reference: its fields, and all of it."""

    fields: Fields
    whole: Value

    def value_of(self, target: Field, name: str) -> Found:
        return text_of(self.whole) if target.kind == "whole" else look_up(self.fields, name, target.path)


class _RowError(Exception):
    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.code)
        self.reason = reason


class _Reference:
    """The reference, read when a line first needs it."""

    def __init__(self, form: Format, given: Any) -> None:
        self._form = form
        self._given = given
        self._side: _Side | None = None

    def side(self, name: str) -> _Side:
        """Raises _RowError where there is none or it has not the format."""
        if self._given is None:
            raise _RowError(Reason(FIELD_MISSING, {"name": name, "why": "none"}))
        if self._side is None:
            try:
                self._side = _side_of(self._form, self._given)
            except NotInFormat as error:
                raise _RowError(Reason(REFERENCE_FORMAT, {"why": error.reason, **error.params})) from None
        return self._side

    def names(self, rule: Rule) -> list[str]:
        """The fields that `@全部字段` stands for."""
        shown = rule.target.written
        names = list(self.side(shown).fields)
        if not names:
            raise _RowError(Reason(FIELD_MISSING, {"name": shown, "why": "empty"}))
        return names

    def value(self, target: Field, name: str) -> Value:
        value = self.side(name).value_of(target, name)
        if value is MISSING:
            raise _RowError(Reason(FIELD_MISSING, {"name": name, "why": "lacks"}))
        return value


def _side_of(form: Format, given: Any) -> _Side:
    if isinstance(given, str):
        return _Side(read_fields(form, given), given)
    if form.kind == "xml":
        raise NotInFormat("not_xml", line="1", column="1")
    check_depth(given)
    value = from_python(given)
    if form.kind == "text":
        return _Side({}, value)
    if not isinstance(value, dict):
        raise NotInFormat("not_object")
    return _Side(value, value)


@dataclass(slots=True)
class _Planner:
    """Collects lines, and the requests of those that others score."""

    answer: _Side
    reference: _Reference
    lines: list[Line] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)

    def add(self, rule: Rule) -> None:
        if rule.target.kind != "all":
            return self._add_line(rule, rule.target.written)
        try:
            names = self.reference.names(rule)
        except _RowError as error:
            self.lines.append(Line(rule, rule.target.written, None, error.reason))
            return None
        for name in names:
            self._add_line(rule, name)
        return None

    def evaluation(self, program: Program) -> Evaluation:
        return Evaluation(program, tuple(self.lines), None, tuple(self.questions), tuple(self.calls))

    def _add_line(self, rule: Rule, name: str) -> None:
        answer, wanted = self.answer.value_of(rule.target, name), None
        if rule.needs_reference:
            try:
                wanted = self.reference.value(rule.target, name)
            except _RowError as error:
                shown = None if answer is MISSING else answer
                self.lines.append(Line(rule, name, None, error.reason, shown))
                return
        elif rule.function.needs_reference:
            wanted = str(rule.argument)
        if answer is MISSING:
            missing = Reason(ANSWER_LACKS, {"name": name})
            self.lines.append(Line(rule, name, WORST, missing, None, wanted))
        else:
            self._add_scored(rule, name, answer, wanted)

    def _add_scored(self, rule: Rule, name: str, answer: Value, reference: Value) -> None:
        if rule.function.score is not None:
            scored: Scored = rule.function.score(answer, reference, rule.argument)
            self.lines.append(Line(rule, name, scored.score, scored.reason, answer, reference))
            return
        index = len(self.lines)
        self.lines.append(Line(rule, name, None, PENDING, answer, reference))
        if isinstance(rule.argument, Code):
            arguments = json_text({"ref_answer": reference, "model_answer": answer})
            self.calls.append(Call(index, rule.argument, arguments))
        else:
            self.questions.append(Question(index, prompt_for(rule, name, answer, reference)))
