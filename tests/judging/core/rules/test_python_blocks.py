"""Python blocks in a real sandbox."""

import pytest

from judging.core.rules.program import BlockCall, Reason, Scored
from judging.core.rules.python_blocks import run_code
from judging.core.sandbox.pool import Sandbox
from tests.judging.core.rules.programs import planned, with_lines


def calls(block: str, answer: str, reference: str) -> tuple[BlockCall, ...]:
    text = with_lines("a:Python代码:代码1") + f"\n<代码1>\n{block}\n</代码1>"
    return planned(text, f'{{"a": {answer}}}', f'{{"a": {reference}}}').calls


def ran(sandbox: Sandbox, block: str, answer: str = "1", reference: str = "1") -> Scored | Reason:
    (call,) = calls(block, answer, reference)
    return run_code(sandbox, call.code, [call])[0]


def returned(sandbox: Sandbox, expression: str, answer: str = "1", reference: str = "1") -> object:
    found = ran(sandbox, f"def f(ref_answer, model_answer):\n    return {expression}", answer, reference)
    return found.score if isinstance(found, Scored) else found.code


@pytest.mark.parametrize(
    ("expression", "score"), [("5", 5), ("1", 1), ("2.5", 2.5), ("round(3.7)", 4), ("5.0", 5.0)]
)
def test_a_number_from_1_to_5_is_the_score(sandbox: Sandbox, expression: str, score: float) -> None:
    assert returned(sandbox, expression) == score


@pytest.mark.parametrize(
    ("kind", "expression", "score"),
    [("fractions", "Fraction(7, 2)", 3.5), ("decimal", "Decimal(4)", 4), ("decimal", "Decimal('4.5')", 4.5)],
)
def test_exact_numbers_of_the_standard_library_are_numbers(
    sandbox: Sandbox, kind: str, expression: str, score: float
) -> None:
    head = f"from {kind} import *\ndef f(ref_answer, model_answer):"
    assert ran(sandbox, f"{head}\n    return {expression}") == Scored(
        score, Reason("code_returned", {"label": "代码1", "score": f"{score:g}"})
    )


@pytest.mark.parametrize(
    "expression",
    [
        "True",
        "None",
        "'5'",
        "0",
        "5.01",
        "float('nan')",
        "float('inf')",
        "10**30",
        "[5]",
        "'\\ud800'",
        "'\\0'",
    ],
)
def test_anything_else_is_an_error(sandbox: Sandbox, expression: str) -> None:
    assert returned(sandbox, expression) == "code.result"


def test_the_error_says_what_came_back(sandbox: Sandbox) -> None:
    found = ran(sandbox, "def f(ref_answer, model_answer):\n    return ref_answer == model_answer")
    assert found == Reason("code.result", {"label": "代码1", "met": "bool True"})


@pytest.mark.parametrize(
    "head", ["ref_answer, model_answer", "model_answer, ref_answer", "*, ref_answer, model_answer"]
)
def test_the_values_go_to_the_parameters_of_their_names(sandbox: Sandbox, head: str) -> None:
    block = f"def f({head}):\n    return 5 if (ref_answer, model_answer) == ('r', 'a') else 1"
    assert ran(sandbox, block, '"a"', '"r"') == Scored(
        5, Reason("code_returned", {"label": "代码1", "score": "5"})
    )


@pytest.mark.parametrize(
    ("value", "expression"),
    [
        ("12345678901234567890123", "model_answer == 12345678901234567890123"),
        ("1.50", "model_answer == 1.5"),
        ("true", "model_answer is True"),
        ("null", "model_answer is None"),
        ('{"b": [1, "二"]}', "model_answer == {'b': [1, '二']} and type(model_answer) is dict"),
    ],
)
def test_values_are_python_values(sandbox: Sandbox, value: str, expression: str) -> None:
    assert returned(sandbox, f"5 if {expression} else 1", value, "0") == 5


def test_a_block_keeps_its_own_names(sandbox: Sandbox) -> None:
    block = (
        "from __future__ import annotations\nimport json\ndef preprocess(x): return x + 3\n"
        "def _score(x): return preprocess(x)\ndef f(ref_answer, model_answer): return _score(ref_answer)"
    )
    assert isinstance(found := ran(sandbox, block), Scored)
    assert found.score == 4


def test_a_failure_names_the_programs_line(sandbox: Sandbox) -> None:
    found = ran(sandbox, "\ndef f(ref_answer, model_answer):\n    return int(model_answer)", '"x"')
    assert isinstance(found, Reason)
    assert (found.code, found.params["code_line"]) == ("code.failed", "8")
    assert found.params["detail"].startswith("ValueError: invalid literal")


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("__import__('os').getpid()", "exception"),
        ("[0] * 10**10", "memory"),
        ("max(iter(int, 1))", "timeout"),
    ],
)
def test_a_block_is_locked_up(sandbox: Sandbox, expression: str, why: str) -> None:
    found = ran(sandbox, f"def f(ref_answer, model_answer):\n    return {expression}")
    assert isinstance(found, Reason)
    assert (found.code, found.params["why"]) == ("code.failed", why)


def test_a_block_that_does_not_load_fails_with_its_reason(sandbox: Sandbox) -> None:
    found = ran(sandbox, "import socket\ndef f(ref_answer, model_answer): return 5")
    assert isinstance(found, Reason)
    assert "'socket' can't be imported" in found.params["detail"]


def test_calls_of_one_block_go_in_one_batch(sandbox: Sandbox) -> None:
    block = "def f(ref_answer, model_answer): return model_answer"
    batch = [calls(block, str(number), "0")[0] for number in (1, 2, 9)]
    found = run_code(sandbox, batch[0].code, batch)
    assert [one.score if isinstance(one, Scored) else one.code for one in found] == [1, 2, "code.result"]
