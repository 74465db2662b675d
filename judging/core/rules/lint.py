"""A row's reference held against the program: does it parse, has it the fields, would it score 5 itself?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from judging.core.rules.formats import NotInFormat, check_depth
from judging.core.rules.plan import FIELD_MISSING, PENDING, REFERENCE_FORMAT, Line, plan
from judging.core.rules.program import Program, Rule
from judging.core.rules.scoring import BEST, Reason
from judging.core.rules.values import from_python, text_of

BREAKS_RULE = "reference.breaks_rule"


@dataclass(frozen=True, slots=True)
class Complaint:
    """`code`: reference.format, .field_missing or .breaks_rule; `line` is the program's line that minds."""

    code: str
    line: int
    name: str
    reason: Reason


def check_reference(program: Program, reference: Any) -> list[Complaint]:
    """What is wrong with a reference (a text, a decoded JSON value or None); judged lines and code are left out."""
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
    return [_of_line(line) for line in evaluation.lines if line.score != BEST and line.reason != PENDING]


def _looks_at_reference(rule: Rule) -> bool:
    return rule.needs_reference or rule.target.kind == "all"


def _complaint(rule: Rule, reason: Reason) -> Complaint:
    name = rule.target.written
    return Complaint(reason.code, rule.place.line, name, Reason(reason.code, {"name": name, **reason.params}))


def _of_line(line: Line) -> Complaint:
    code = line.reason.code if line.score is None else BREAKS_RULE
    return Complaint(code, line.rule.place.line, line.name, line.reason)
