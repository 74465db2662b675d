"""The recommended scripts work as named, in the real sandbox."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from judging.core.replies import VERDICTS
from judging.core.sandbox.pool import Sandbox
from judging.core.scripts import RECOMMENDED, load_failure, run_preprocess, run_script


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


def before(sandbox: Sandbox, name: str, content: str) -> tuple[Any, Any]:
    """Run a recommended preprocess script; return its result and the answer as the judge sees it."""
    (outcome,) = run_preprocess(sandbox, RECOMMENDED[name].source, [({}, {"content": content})])
    assert outcome.failure is None, outcome.failure
    return outcome.result, outcome.changed.get("response", {}).get("content", content)


def after(sandbox: Sandbox, name: str, *replies: str | None) -> Any:
    asked = {
        "judge_reqs": [{"messages": []} for _ in replies],
        "judge_resps": [
            {"content": reply} if reply is not None else {"content": None, "error": "down"}
            for reply in replies
        ],
        "judge_models": [{"name": "judge"} for _ in replies],
    }
    (outcome,) = run_script(
        sandbox, "postprocess", RECOMMENDED[name].source, [{**asked, "data": {}, "resp": {}}]
    )
    assert outcome.failure is None, outcome.failure
    return outcome.result


@pytest.mark.parametrize("name", RECOMMENDED)
def test_it_loads(name: str, sandbox: Sandbox) -> None:
    one = RECOMMENDED[name]
    assert load_failure(sandbox, one.kind, one.source) is None


@pytest.mark.parametrize(
    ("content", "left"),
    [
        ("<think>4 or 5?\n</think>\n5", "5"),
        ("<Think>a</Think>1 <think>b</think>2", "1 2"),
        ("<think>without an end", ""),
        ("without a beginning</think> 5", "5"),
        ("5", "5"),
    ],
)
def test_thinking_is_taken_out_of_the_answer(content: str, left: str, sandbox: Sandbox) -> None:
    assert before(sandbox, "strip_think", content)[1] == left


@pytest.mark.parametrize(
    ("content", "left"),
    [
        ('{"answer": "5"}', "5"),
        ('```json\n{"answer": {"值": 5}}\n```', '{"值": 5}'),
        ('{"other": 1}', '{"other": 1}'),
        ("no JSON", "no JSON"),
        ("[1]", "[1]"),
    ],
)
def test_a_field_of_a_json_answer_is_judged_alone(content: str, left: str, sandbox: Sandbox) -> None:
    assert before(sandbox, "json_field", content)[1] == left


def test_the_length_is_a_number_of_characters(sandbox: Sandbox) -> None:
    assert before(sandbox, "length", " 你好 \n") == (2, " 你好 \n")


@pytest.mark.parametrize(("verdict", "score"), VERDICTS.items())
def test_the_last_verdict_of_the_last_judge_counts(verdict: str, score: int, sandbox: Sandbox) -> None:
    assert after(sandbox, "comparison", "[[A=B]]", f"first [[A>>B]], then [[ {verdict} ]]") == score


def test_without_a_verdict_there_is_no_score(sandbox: Sandbox) -> None:
    assert [after(sandbox, "comparison", reply) for reply in ("A is better", None)] == [None, None]


@pytest.mark.parametrize(
    ("replies", "mean", "majority"),
    [
        (("[[4]]", "first [[1]], then [[5]]", "[[4]]"), 4.33, 4),
        (("[[4]]", "[[5.5]]"), 4.75, None),
        (("[[4]]", None, "nothing"), 4, 4),
        ((None, "nothing"), None, None),
    ],
)
def test_judges_are_combined(
    replies: tuple[str | None, ...], mean: float | None, majority: float | None, sandbox: Sandbox
) -> None:
    assert (after(sandbox, "mean", *replies), after(sandbox, "majority", *replies)) == (mean, majority)
