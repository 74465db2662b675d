"""Every error code with its position."""

import pytest

from judging.core.rules.check import read_program
from tests.judging.core.rules.faulty_programs import CODE, GOOD, RULES
from tests.judging.core.rules.programs import codes, places, program, with_lines

SCORES = "def f(ref_answer, model_answer):\n    return 5"


@pytest.mark.parametrize(("text", "found"), RULES)
def test_an_error_has_its_code_and_its_place(text: str, found: list[tuple[str, int, int]]) -> None:
    assert places(text) == found


def test_all_errors_are_reported_at_once() -> None:
    text = "a:foo\nb:字数限制\n@聚合方式:avg\n@格式限制:YAML\nc:d\n<规则1>"
    assert set(codes(text)) >= {
        "missing_header",
        "unknown_function",
        "argument_missing",
        "unknown_aggregate",
        "unknown_format",
        "header_after_format",
        "block_unclosed",
    }


def test_problems_come_in_the_order_of_the_text() -> None:
    found = [(line, column) for _, line, column in places("x\n<规则1>\na:rule:规则2\n@聚合方式:avg")]
    assert found == sorted(found)


@pytest.mark.parametrize(
    ("line", "near"),
    [
        ("a:精准匹配", "精确匹配"),
        ("a:exactmatch", "exact_match"),
        ("a:Exact Match", "exact_match"),
        ("a:ｌｅｎｇｔｈ", "length"),
        ("a:python代码", "Python代码"),
        ("a:完全不同的东西", ""),
    ],
)
def test_an_unknown_function_suggests_what_was_meant(line: str, near: str) -> None:
    (problem,) = read_program(with_lines(line)).problems
    assert problem.params["near"] == near


def test_a_misspelt_setting_suggests_its_name() -> None:
    problem = read_program("# DSL\na:精确匹配\n@聚合方法:min\n@格式限制:JSON").problems[0]
    assert (problem.code, problem.params["near_name"]) == ("unknown_function", "@聚合方式")


def test_formats_aggregates_and_labels_suggest_too() -> None:
    text = "# DSL\na:rule:规则l\n@聚合方式:medium\n@格式限制:json\n<规则1>\n</规则1>"
    near = [problem.params.get("near", "") for problem in read_program(text).problems]
    assert near == ["规则1", "median", "JSON", ""]


def test_an_unused_block_is_a_warning_and_the_program_is_usable() -> None:
    reading = read_program(f"{GOOD}@格式限制:JSON\n<规则1>\n</规则1>")
    assert (reading.errors, len(reading.warnings), reading.program is None) == ([], 1, False)


def test_a_block_that_is_never_closed_does_not_hide_the_next() -> None:
    text = "# DSL\na:rule:rule1\nb:rule:rule2\n@格式限制:JSON\n<rule1>\nx\n<rule2>\ny\n</rule2>"
    assert codes(text) == ["block_unclosed"]


def test_a_block_that_is_never_closed_does_not_hide_the_format() -> None:
    text = "# DSL\na:rule:rule1\n<rule1>\nx\n@格式限制:JSON"
    assert sorted(codes(text)) == ["block_before_format", "block_unclosed"]


@pytest.mark.parametrize(
    "head",
    [
        "def f(ref_answer, model_answer):",
        "def f(model_answer, ref_answer):",
        "def f(*, model_answer, ref_answer=None):",
        "def f(ref_answer, model_answer, most=3, *rest, low=1, **more):",
    ],
)
def test_the_function_is_found_by_its_parameters(head: str) -> None:
    block = f"import re\ndef helper(a, b):\n    return 1\n{head}\n    return 5"
    assert program(with_lines("a:python:代码1") + "\n" + CODE.format(block)).needs_judge is False


@pytest.mark.parametrize(
    "block",
    [
        "def f(ref_answer, model_answer, third):\n    return 5",
        "def f(ref_answer, /, model_answer):\n    return 5",
        "def f(ref_answer, model_answer, *, must):\n    return 5",
        "def f(**named):\n    return 5",
        "async def f(ref_answer, model_answer):\n    return 5",
        "class A:\n    def f(ref_answer, model_answer):\n        return 5",
        "f = lambda ref_answer, model_answer: 5",
        "",
    ],
)
def test_what_cannot_be_called_with_the_two_names_is_no_function(block: str) -> None:
    assert codes(with_lines("a:python:代码1") + "\n" + CODE.format(block)) == ["python_no_function"]


def test_two_functions_with_both_parameters_are_one_too_many() -> None:
    block = "def f(ref_answer, model_answer):\n    return 5\ndef g(model_answer, ref_answer):\n    return 1"
    text = "# DSL\na:python:代码1\n@格式限制:JSON\n" + CODE.format(block)
    assert places(text) == [("python_no_function", 7, 1)]


@pytest.mark.parametrize(
    "block", ["(" * 5000, "x = " + "-" * 100_000 + "1", "a" + ".b" * 100_000, "a\0b", "x = '\ud800'", "\\"]
)
def test_hostile_python_is_a_syntax_error(block: str) -> None:
    assert codes(with_lines("a:python:代码1") + "\n" + CODE.format(block)) == ["python_syntax"]


@pytest.mark.parametrize(
    ("block", "line", "column"),
    [
        ("return 5", 5, 1),
        (f"{SCORES}\n中 = 1; break", 7, 8),
        (f"{SCORES}\nfor one in []: pass\nelse: continue", 8, 7),
        (f"{SCORES}\nclass A:\n    def f(self): return 1\n    return 2", 9, 5),
        (f"{SCORES}\nwhile True:\n    def g(): break", 8, 14),
        (f"{SCORES}\nyield 3", 7, 1),
        (f"{SCORES}\ndef g(x=(yield)): pass", 7, 10),
        (f"{SCORES}\ndef g(): await x", 7, 10),
        (f"{SCORES}\nasync def g():\n    def h():\n        async with x: pass", 9, 9),
        (f"{SCORES}\nnonlocal y", 7, 1),
        (f"{SCORES}\ndef g(a, a): pass", 7, 10),
    ],
)
def test_python_that_only_a_compiler_refuses_is_found_in_its_place(
    block: str, line: int, column: int
) -> None:
    text = f"# DSL\na:python:代码1\n@格式限制:JSON\n<代码1>\n{block}\n</代码1>"
    assert places(text) == [("python_syntax", line, column)]


def test_python_that_is_allowed_is_not_minded() -> None:
    block = (
        f"{SCORES}\nasync def g():\n    async for one in x:\n        if await one: break\n        continue\n"
        "def h():\n    while True:\n        with x: yield 1\n        break\nk = lambda: (yield)"
    )
    assert places(with_lines("a:python:代码1") + f"\n<代码1>\n{block}\n</代码1>") == []


def test_a_block_that_would_be_compiled_for_minutes_is_read_at_once() -> None:
    depth = 40
    nested = "".join(f"{' ' * level}try: pass\n{' ' * level}finally:\n" for level in range(depth))
    block = f"{SCORES}\n{nested}{' ' * depth}pass"
    assert places(with_lines("a:python:代码1") + f"\n<代码1>\n{block}\n</代码1>") == []
