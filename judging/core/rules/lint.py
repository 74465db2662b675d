"""Checks a data set's references against a program: format, fields, types, and whether each would score 5."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from judging.core.rules.evaluate import (
    ANSWER_LACKS,
    FIELD_MISSING,
    PENDING,
    REFERENCE_FORMAT,
    LineResult,
    RuleEvaluation,
    conclude,
    plan,
)
from judging.core.rules.formats import NotInFormat, check_depth
from judging.core.rules.program import BEST, BlockCall, Code, Program, Reason, Rule, Scored
from judging.core.rules.values import Number, Value, from_python, text_of

BREAKS_RULE, OTHER_TYPE = "reference.breaks_rule", "reference.other_type"
FIRST_ROWS = 12  # rows listed for each complaint

RunCode = Callable[[Code, list[BlockCall]], list[Scored | Reason]]
Kinds = tuple[tuple[str, str], ...]  # (field, kind of its value)


@dataclass(slots=True)
class ReferenceFinding:
    """A problem with references: the number of rows, the first of their lines, and the reason for the first row.

    `line`: the program's line that they violate. `code`: reference.format, .field_missing, .breaks_rule, .other_type.
    """

    code: str
    line: int
    name: str
    reason: Reason
    rows: int = 0
    first: list[int] = field(default_factory=list)

    def add(self, row: int) -> None:
        self.rows += 1
        if len(self.first) < FIRST_ROWS:
            self.first.append(row)


@dataclass(frozen=True, slots=True)
class ReferenceLint:
    """Of `rows` references, `faulty` have a complaint, `missing` of them because there is no reference.

    `complaints` are sorted by line of the program, then by frequency.
    """

    rows: int
    faulty: int
    complaints: list[ReferenceFinding]
    missing: int = 0


class References:
    """Checks references in batches. `run` runs Python blocks; without it they are skipped, as judged lines are."""

    def __init__(self, program: Program, run: RunCode | None = None) -> None:
        self._program, self._run = program, run
        self._lines = {rule.target.name: rule.place.line for rule in reversed(program.rules)}
        self._all = next((rule.place.line for rule in program.rules if rule.target.kind == "all"), 0)
        self._rows = self._faulty = self._missing = 0
        self._found: dict[tuple[int, str, str], ReferenceFinding] = {}
        self._kinds: dict[tuple[str, str], ReferenceFinding] = {}
        # Rows without any other complaint, by the kinds of their fields.
        self._faultless: Counter[Kinds] = Counter()

    def add(self, batch: Sequence[tuple[int, Any]]) -> None:
        """Check references (a text, a decoded JSON value or None), each given with its row's line number."""
        planned = [_planned(self._program, reference) for _row, reference in batch]
        scored = self._scored([one for one in planned if isinstance(one, RuleEvaluation)])
        for (row, reference), one in zip(batch, planned, strict=True):
            if isinstance(one, RuleEvaluation):
                lines = next(scored)
                self._note(row, [_of_line(line) for line in lines if _has_problem(line)], _kinds(lines))
            else:
                self._missing += reference is None and bool(one)
                self._note(row, one, ())

    def found(self) -> ReferenceLint:
        """The result so far."""
        usual = self._usual()
        odd = [
            self._odd(name, kind, usual[name]) for name, kind in self._kinds if usual.get(name, kind) != kind
        ]
        faulty = self._faulty + sum(
            rows
            for kinds, rows in self._faultless.items()
            if any(usual[name] != kind for name, kind in kinds)
        )
        every = [*self._found.values(), *odd]
        complaints = sorted(every, key=lambda one: (one.line, -one.rows))
        return ReferenceLint(self._rows, faulty, complaints, self._missing)

    def _scored(self, evaluations: list[RuleEvaluation]) -> Iterator[tuple[LineResult, ...]]:
        """The lines of each evaluation, after running the Python blocks; all calls of a block run together."""
        found: list[dict[int, Scored | Reason]] = [{} for _ in evaluations]
        by_block: dict[str, list[tuple[int, BlockCall]]] = {}
        for index, evaluation in enumerate(evaluations):
            for call in evaluation.calls:
                by_block.setdefault(call.code.label, []).append((index, call))
        for calls in by_block.values() if self._run else ():
            assert self._run is not None
            results = self._run(calls[0][1].code, [call for _index, call in calls])
            for (index, call), one in zip(calls, results, strict=True):
                found[index][call.line] = one
        return (conclude(one, results).lines for one, results in zip(evaluations, found, strict=True))

    def _note(self, row: int, findings: Sequence[ReferenceFinding], kinds: Kinds) -> None:
        self._rows += 1
        for one in findings:
            self._found.setdefault((one.line, one.name, one.code), one).add(row)
        for name, kind in kinds:
            one = ReferenceFinding(OTHER_TYPE, self._lines.get(name, self._all), name, Reason(OTHER_TYPE))
            self._kinds.setdefault((name, kind), one).add(row)
        if findings:
            self._faulty += 1
        else:
            self._faultless[kinds] += 1

    def _usual(self) -> dict[str, str]:
        """The most common kind of value of each field."""
        usual: dict[str, str] = {}
        for name, kind in sorted(self._kinds, key=lambda one: -self._kinds[one].rows):
            usual.setdefault(name, kind)
        return usual

    def _odd(self, name: str, kind: str, usual: str) -> ReferenceFinding:
        one = self._kinds[name, kind]
        reason = Reason(OTHER_TYPE, {"name": name, "met": kind, "usual": usual})
        return ReferenceFinding(OTHER_TYPE, one.line, name, reason, one.rows, one.first)


def kind_of(value: Value) -> str:
    """The JSON type of a value: text, number, bool, null, list or object."""
    if isinstance(value, bool):
        return "bool"
    kinds = ((str, "text"), (Number, "number"), (list, "list"), (dict, "object"))
    return next((kind for of, kind in kinds if isinstance(value, of)), "null")


def _planned(program: Program, reference: Any) -> RuleEvaluation | list[ReferenceFinding]:
    """Evaluate the reference as if it were an answer; returns complaints if that is not possible."""
    needing = next((rule for rule in program.rules if _looks_at_reference(rule)), None)
    if reference is None:
        return [_complaint(needing, Reason(FIELD_MISSING, {"why": "none"}))] if needing else []
    try:
        check_depth(reference)
    except NotInFormat as error:
        return [_complaint(needing, Reason(REFERENCE_FORMAT, {"why": error.reason}))] if needing else []
    evaluation = plan(program, text_of(from_python(reference)), reference)
    if evaluation.failure is not None:
        params = {"why": evaluation.failure.code, **evaluation.failure.params}
        return [_complaint(needing, Reason(REFERENCE_FORMAT, params))] if needing else []
    return evaluation


def _kinds(lines: Sequence[LineResult]) -> Kinds:
    """The kinds of the fields that the lines use, without duplicates."""
    named = [line for line in lines if line.rule.target.kind != "whole" and line.reason.code != ANSWER_LACKS]
    return tuple(
        {line.name: kind_of(line.answer) for line in named if line.reason.code != FIELD_MISSING}.items()
    )


def _has_problem(line: LineResult) -> bool:
    return line.score != BEST and line.reason.code not in (PENDING.code, "not_asked")


def _looks_at_reference(rule: Rule) -> bool:
    return rule.needs_reference or rule.target.kind == "all"


def _complaint(rule: Rule, reason: Reason) -> ReferenceFinding:
    name = rule.target.written
    return ReferenceFinding(
        reason.code, rule.place.line, name, Reason(reason.code, {"name": name, **reason.params})
    )


def _of_line(line: LineResult) -> ReferenceFinding:
    code, reason = line.reason.code, line.reason
    if code == ANSWER_LACKS:  # the reference takes the place of the answer here
        code, reason = FIELD_MISSING, Reason(FIELD_MISSING, {"name": line.name, "why": "lacks"})
    elif code not in (FIELD_MISSING, REFERENCE_FORMAT):
        code = BREAKS_RULE
    return ReferenceFinding(code, line.rule.place.line, line.name, reason)
