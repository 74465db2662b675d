"""Scripts pasted from a document are recognised, and repaired where this is unambiguous."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from judging.core.paste_repair import PROBLEMS, PasteRepair, repaired, repaired_pattern, repaired_program
from judging.core.rules.check import read_program
from judging.core.sandbox.pool import Sandbox
from judging.core.scripts import RECOMMENDED, run_script

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
    (outcome,) = run_script(sandbox, "postprocess", repair.source, [item])
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


AVERAGE = r"""def postprocess(judge_reqs, judge_resps, judge_models, data, resp, **kwargs):
scores = []
for jr in judge_resps:
try:
content = jr['content']
scores.append(int(re.findall(r"\\d+", content)[-1]))
except:
continue
if scores:
return round(sum(scores) / len(scores), 2)
return None
"""


def test_a_line_that_could_end_a_loop_is_marked_as_uncertain() -> None:
    repair = repaired(AVERAGE)
    assert repair is not None
    assert (repair.problems, repair.uncertain) == (("backslashes", "indentation", "uncertain"), (9,))
    assert "    if scores:  # indentation?\n" in repair.source


MISPRINT = """def preprocess(judge_reqs, judge_resps, judge_models, data, resp, **kwargs):
return judge_resps[-1]["content"]
"""


def test_a_postprocess_that_was_printed_as_preprocess_gets_its_name(sandbox: Sandbox) -> None:
    repair = repaired(MISPRINT, "postprocess")
    assert repair is not None
    assert repair.problems == ("indentation", "name")
    item = {"judge_resps": [{"content": "ok"}], "data": {}, "resp": {}}
    (outcome,) = run_script(sandbox, "postprocess", repair.source, [item])
    assert outcome.result == "ok"


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("def preprocess(judge_reqs, **kwargs):\n    return 1\n", "preprocess"),
        ("def preprocess(data, resp):\n    return 1\n", "postprocess"),
        (
            "def preprocess(judge_reqs):\n    return 1\n\ndef postprocess(judge_resps):\n    return 2\n",
            "postprocess",
        ),
    ],
)
def test_a_function_keeps_a_name_that_may_be_meant(source: str, kind: str) -> None:
    assert repaired(source, kind) is None


PASTED_PROGRAM = """# DSL
• 主题:精确匹配
  ·年份:Python代码:代码1
＠全部字段:精确匹配
• @聚合方式:min
＠格式限制:JSON
<代码1>
def same(ref_answer, model_answer):
return 5 if ref_answer == model_answer else 1
</代码1>
"""
PROGRAM = """# DSL
主题:精确匹配
年份:Python代码:代码1
@全部字段:精确匹配
@聚合方式:min
@格式限制:JSON
<代码1>
def same(ref_answer, model_answer):
    return 5 if ref_answer == model_answer else 1
</代码1>
"""


def test_a_pasted_program_is_repaired() -> None:
    repair = repaired_program(PASTED_PROGRAM)
    assert repair == PasteRepair(PROGRAM, ("bullets", "at_sign", "indentation"))
    assert read_program(PROGRAM).problems == ()


def test_uncertain_lines_are_counted_in_the_program() -> None:
    program = PASTED_PROGRAM.replace(
        "return 5", "if model_answer is None:\nmodel_answer = ''\nprint(1)\nreturn 5"
    )
    repair = repaired_program(program)
    assert repair is not None
    assert [program.splitlines()[line - 1] for line in repair.uncertain] == ["print(1)"]


@pytest.mark.parametrize(
    "program",
    [
        PROGRAM,
        "",
        "# DSL\n@单个字段:自然语言规则:规则1\n@格式限制:字符串\n<规则1>\n• five\n＠all\n</规则1>\n",
        "# DSL\n@type:精确匹配\na@b＠c:精确匹配\n@格式限制:JSON\n",
    ],
)
def test_a_program_without_traces_of_copying_stays_as_it_is(program: str) -> None:
    assert repaired_program(program) is None


def test_every_problem_has_a_sentence() -> None:
    repair, program = repaired(AVERAGE + MISPRINT, "postprocess"), repaired_program(PASTED_PROGRAM)
    assert repair is not None
    assert program is not None
    assert {*repair.problems, *program.problems} <= PROBLEMS.keys()
