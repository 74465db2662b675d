"""Checks a data set's references against a program: format, fields, types, and whether each would score 5."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from datasets.core.texts import Text, gettext_noop, pgettext_noop
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
from judging.core.rules.formats import NotInFormat, check_depth, read_reference
from judging.core.rules.program import BEST, BlockCall, Code, Program, Reason, Rule, Scored
from judging.core.rules.values import Number, Value, from_python, text_of

BREAKS_RULE, OTHER_TYPE = "reference.breaks_rule", "reference.other_type"
REASONS: dict[str, Text] = {
    "reference.other_type": gettext_noop(
        "“%(name)s” is %(met)s in these rows and %(usual)s in most others. Fix the rows."
    ),
}

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
        self._findings: dict[tuple[int, str, str], ReferenceFinding] = {}
        self._kinds: dict[tuple[str, str], ReferenceFinding] = {}
        # Rows without any other complaint, by the kinds of their fields.
        self._faultless: Counter[Kinds] = Counter()

    def add(self, batch: Sequence[tuple[int, Any]]) -> None:
        """Check references (a text, a decoded JSON value or None), each given with its row's line number."""
        entries = [_planned(self._program, reference) for _row, reference in batch]
        scored = self._scored([entry for entry in entries if isinstance(entry, RuleEvaluation)])
        for (row, reference), entry in zip(batch, entries, strict=True):
            if isinstance(entry, RuleEvaluation):
                lines = next(scored)
                self._record(row, [_of_line(line) for line in lines if _has_problem(line)], _kinds(lines))
            else:
                self._missing += reference is None and bool(entry)
                self._record(row, entry, ())

    def result(self) -> ReferenceLint:
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
        every = [*self._findings.values(), *odd]
        complaints = sorted(every, key=lambda complaint: (complaint.line, -complaint.rows))
        return ReferenceLint(self._rows, faulty, complaints, self._missing)

    def _scored(self, evaluations: list[RuleEvaluation]) -> Iterator[tuple[LineResult, ...]]:
        """The lines of each evaluation, after running the Python blocks; all calls of a block run together."""
        by_evaluation: list[dict[int, Scored | Reason]] = [{} for _ in evaluations]
        by_block: dict[str, list[tuple[int, BlockCall]]] = {}
        for index, evaluation in enumerate(evaluations):
            for call in evaluation.calls:
                by_block.setdefault(call.code.label, []).append((index, call))
        for calls in by_block.values() if self._run else ():
            assert self._run is not None
            results = self._run(calls[0][1].code, [call for _index, call in calls])
            for (index, call), result in zip(calls, results, strict=True):
                by_evaluation[index][call.line] = result
        return (
            conclude(evaluation, results).lines
            for evaluation, results in zip(evaluations, by_evaluation, strict=True)
        )

    def _record(self, row: int, findings: Sequence[ReferenceFinding], kinds: Kinds) -> None:
        self._rows += 1
        for finding in findings:
            self._findings.setdefault((finding.line, finding.name, finding.code), finding).add(row)
        for name, kind in kinds:
            finding = ReferenceFinding(OTHER_TYPE, self._lines.get(name, self._all), name, Reason(OTHER_TYPE))
            self._kinds.setdefault((name, kind), finding).add(row)
        if findings:
            self._faulty += 1
        else:
            self._faultless[kinds] += 1

    def _usual(self) -> dict[str, str]:
        """The most common kind of value of each field."""
        usual: dict[str, str] = {}
        for name, kind in sorted(self._kinds, key=lambda pair: -self._kinds[pair].rows):
            usual.setdefault(name, kind)
        return usual

    def _odd(self, name: str, kind: str, usual: str) -> ReferenceFinding:
        finding = self._kinds[name, kind]
        reason = Reason(OTHER_TYPE, {"name": name, "met": kind, "usual": usual})
        return ReferenceFinding(OTHER_TYPE, finding.line, name, reason, finding.rows, finding.first)


KINDS: dict[str, Text] = {
    "text": pgettext_noop("kind of value", "a text"),
    "number": pgettext_noop("kind of value", "a number"),
    "bool": pgettext_noop("kind of value", "true or false"),
    "null": pgettext_noop("kind of value", "null"),
    "list": pgettext_noop("kind of value", "a list"),
    "object": pgettext_noop("kind of value", "an object"),
}


def kind_of(value: Value) -> str:
    """The JSON type of a value, a key of KINDS."""
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
    text = text_of(from_python(reference))
    evaluation = plan(program, text, reference)
    if evaluation.failure is not None:  # as an answer it is not forgiven what a reference is
        evaluation = plan(program, _forgiven(program, text), reference)
    if evaluation.failure is not None:
        params = {"why": evaluation.failure.code, **evaluation.failure.params}
        return [_complaint(needing, Reason(REFERENCE_FORMAT, params))] if needing else []
    return evaluation


def _forgiven(program: Program, text: str) -> str:
    """A reference's text without what references are forgiven; as it is if it lacks the format all the same."""
    try:
        return read_reference(program.format, text)[1]
    except NotInFormat:
        return text


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
        code, reason = FIELD_MISSING, Reason(FIELD_MISSING, {"why": "lacks", **reason.params})
    elif code not in (FIELD_MISSING, REFERENCE_FORMAT):
        code = BREAKS_RULE
    return ReferenceFinding(code, line.rule.place.line, line.name, reason)
