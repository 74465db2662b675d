"""Shortcuts to parse a rule program, list its errors and compute scores."""

from typing import Any

from judging.core.rules.check import read_program
from judging.core.rules.evaluate import Result, RuleEvaluation, conclude, plan
from judging.core.rules.program import Program


def program(text: str) -> Program:
    reading = read_program(text)
    assert reading.program is not None, reading.problems
    return reading.program


def with_lines(*lines: str, form: str = "JSON", aggregate: str = "mean") -> str:
    return "\n".join(["# DSL", *lines, f"@聚合方式:{aggregate}", f"@格式限制:{form}"])


def places(text: str) -> list[tuple[str, int, int]]:
    """Code, line and column of every error."""
    return [(one.code, one.place.line, one.place.column) for one in read_program(text).problems]


def codes(text: str) -> list[str]:
    return [problem.code for problem in read_program(text).problems]


def planned(text: str, answer: str, reference: Any) -> RuleEvaluation:
    return plan(program(text), answer, reference)


def result(text: str, answer: str, reference: Any) -> Result:
    return conclude(planned(text, answer, reference), {})


def scores(text: str, answer: str, reference: Any) -> list[int | float | None]:
    """The scores of the lines, in order."""
    return [line.score for line in result(text, answer, reference).lines]


def one_score(function: str, answer: str, reference: str) -> int | float | None:
    """The score of one function on one field; answer and reference are JSON texts."""
    text = with_lines(f"f:{function}")
    return result(text, f'{{"f": {answer}}}', f'{{"f": {reference}}}').score
