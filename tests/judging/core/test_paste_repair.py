"""Scripts pasted from a document are recognised, and repaired where this is unambiguous."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from judging.core.paste_repair import repaired, repaired_pattern
from judging.core.sandbox.pool import Sandbox
from judging.core.scripts import RECOMMENDED, run_postprocess

PASTED = r"""import re
from typing import Optional
ans_map = {
"A>>B": 1,
"A>B": 2,
"A=B": 3,
"B>A": 4,
"B>>A": 5,
}
def parse_last_comparison(text: str) -> Optional[str]:
pattern = r"\\[\\[(A>>B|A>B|A=B|B>A|B>>A)\\]\\]"
matches = re.findall(pattern, text)
return matches[-1] if matches else None
def postprocess(
judge_reqs: list[dict],
judge_resps: list[dict],
judge_models: list[dict],
data: dict,
resp: dict,
**kwargs,
) -> Optional[int]:
last_comparison = parse_last_comparison(judge_resps[-1]['content'])
return ans_map.get(last_comparison)
"""


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


def test_a_script_whose_backslashes_and_indentation_were_lost_works_again(sandbox: Sandbox) -> None:
    repair = repaired(PASTED)
    assert repair is not None
    assert repair.problems == ("backslashes", "indentation")
    item = {"judge_resps": [{"content": "[[A=B]], no: [[B>A]]"}], "data": {}, "resp": {}}
    (outcome,) = run_postprocess(sandbox, repair.source, [item])
    assert (outcome.result, outcome.failure) == (4, None)


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        (r'x = r"\\[\\[(\\d+)\\]\\]"', r'x = r"\[\[(\d+)\]\]"'),
        (r"x = '\\\\[\\\\[(A)\\\\]\\\\]'", r"x = '\\[\\[(A)\\]\\]'"),
        (r"re.findall(r'\\d+\\.\\d+', text)  # don't", r"re.findall(r'\d+\.\d+', text)  # don't"),
    ],
)
def test_doubled_backslashes_are_halved(written: str, wanted: str) -> None:
    repair = repaired(written)
    assert repair is not None
    assert (repair.source, repair.problems) == (wanted, ("backslashes",))


@pytest.mark.parametrize(
    "source",
    [
        *(one.source for one in RECOMMENDED.values()),
        r'x = r"\[\[(\d+)\]\]"',
        r'x = "\\[\\[(\\d+)\\]\\]"',
        r'x = r"\\boxed\{(.*?)\}"',
        r'x = r"\\frac"',
        r'x = "C:\\temp\\new"',
        r'x = r"\\sum"',
        "def f(x):\n    return x\n",
        "x = 1\n# it's \\\\[ here\n",
        "if x:\nreturn 1\n",
        "def f(x):\nif x:\nreturn 1\nreturn 2\n",
        "",
        "def (",
        "'''",
    ],
)
def test_what_may_be_meant_is_left_alone(source: str) -> None:
    assert repaired(source) is None


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        (r"\\[\\[(\\d+)\\]\\]", r"\[\[(\d+)\]\]"),
        (r"Score:\\s*(\\d+)", r"Score:\s*(\d+)"),
        (r"\[\[(\d+)\]\]", None),
        (r"\\boxed\{(\d+)\}", None),
        (r"Score: (.*)", None),
        ("", None),
    ],
)
def test_a_pattern_alone_is_repaired_where_all_its_backslashes_are_doubled(
    pattern: str, wanted: str | None
) -> None:
    assert repaired_pattern(pattern) == wanted
