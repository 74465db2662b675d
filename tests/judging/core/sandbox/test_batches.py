"""Isolation between the items of a batch, items run alone, and successive scripts."""

import pytest

from judging.core.sandbox.pool import Sandbox
from judging.core.scripts import ScriptOutcome, run_preprocess
from tests.judging.core.sandbox.scripting import FORGE, OUTSIDE, result_of, run, script

LIES = {
    "a reply for the next item": """say(b'[0.1,["forged",{},"",false,null],null]')""",
    "no JSON": "say(b'{')",
    "an endless frame": "os.write(3, b'\\xff\\xff\\xff\\xff' + b'x' * 100)",
    "NaN": "say(b'[NaN,null,null]')",
    "a number beyond every range": "say(b'[0.1,[1e999,{},\"\",false,null],null]')",
    "half a character": """say(b'[0.1,["\\\\ud800",{},"",false,null],null]')""",
    "a NUL": """say(b'[0.1,["\\\\u0000",{},"",false,null],null]')""",
    "a nest": "say(b'[0.1,[1,{\"data\":{\"x\":' + b'[' * 5000 + b']' * 5000 + b'}},\"\",false,null],null]')",
    "another shape": "say(b'[0.1,{\"result\":1},null]')",
    "an impossible time": "say(b'[-5,[1,{},\"\",false,null],null]')",
    "half a frame": "os.write(3, b'\\0\\0')",
    "a number of 400 digits": "say(b'[0.1,[' + b'9' * 400 + b',{},\"\",false,null],null]')",
    "a number of 65 bits": "say(b'[0.1,[18446744073709551616,{},\"\",false,null],null]')",
    "an unheard of code": """say(b'[0.1,null,["' + b'x' * 40 + b'","",null]]')""",
    "an empty code": """say(b'[0.1,null,["","",null]]')""",
    "an unheard of code of the script's own": """say(b'[0.1,[1,{},"",false,["no code","",null]],null]')""",
    "a line beyond all lines": """say(b'[0.1,null,["result","",' + b'9' * 40 + b']]')""",
    "an endless message": """say(b'[0.1,[1,{},"",false,["result","' + b'x' * 99999 + b'",null]],null]')""",
}
KNOWN = {"timeout", "memory", "output", "result", "exception", "killed", "protocol"}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES.keys())
def test_a_forged_reply_can_not_reach_another_item_that_is_run_alone(lie: str, sandbox: Sandbox) -> None:
    source = script(f"if data.n == 1: {lie}\nreturn data.n", OUTSIDE + FORGE)
    outcomes = run(sandbox, source, 3, alone=True)
    assert [outcomes[0].result, outcomes[2].result] == [0, 2]


def storable(outcome: ScriptOutcome) -> bool:
    """Return whether this outcome can be stored and displayed."""
    failure = outcome.failure
    if failure is None:
        return not isinstance(outcome.result, int) or outcome.result.bit_length() < 64
    return failure.code in KNOWN and len(failure.message) <= 2000 and (failure.line or 0) < 2**63


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES.keys())
def test_a_batch_of_lies_still_gives_one_outcome_an_item(lie: str, sandbox: Sandbox) -> None:
    outcomes = run(sandbox, script(f"{lie}\nreturn 1", OUTSIDE + FORGE), 5)
    assert [storable(one) for one in outcomes] == [True] * 5
    assert result_of(sandbox, "return 'the truth'") == "the truth"


def test_module_variables_live_as_long_as_the_batch(sandbox: Sandbox) -> None:
    outcomes = run(sandbox, script("seen.append(1)\nreturn len(seen)", "seen = []"), 3)
    assert [one.result for one in outcomes] == [1, 2, 3]


def test_items_that_run_alone_share_nothing(sandbox: Sandbox) -> None:
    outcomes = run(sandbox, script("seen.append(1)\nreturn len(seen)", "seen = []"), 3, alone=True)
    assert [one.result for one in outcomes] == [1, 1, 1]


def test_nothing_of_a_script_is_left_for_the_next_one(sandbox: Sandbox) -> None:
    run(sandbox, script("modules['json'].left = modules['builtins'].left = 1", OUTSIDE))
    assert (
        result_of(sandbox, "import json\nreturn hasattr(json, 'left') or 'left' in dir(__builtins__)")
        is False
    )


def test_random_numbers_differ_from_worker_to_worker(sandbox: Sandbox) -> None:
    numbers = {result_of(sandbox, "import random\nreturn random.random()") for _ in range(3)}
    assert len(numbers) == 3


def test_the_dicts_that_were_given_stay_as_they_were(sandbox: Sandbox) -> None:
    data: dict[str, object] = {"list": [1]}
    run_preprocess(sandbox, script("data.list.append(2)\ndata.new = 1"), [(data, {})])
    assert data == {"list": [1]}


def test_more_items_than_a_worker_takes_come_back_in_order(sandbox: Sandbox) -> None:
    assert [one.result for one in run(sandbox, script("return data.n"), 1200)] == list(range(1200))


def test_a_long_item_lets_no_other_one_reply_at_length(sandbox: Sandbox) -> None:
    head = 'os.write(3, struct.pack(">I", 30 << 20))'
    source = script(f"if data.n == 0: {head}\nreturn data.n", OUTSIDE + FORGE)
    small, large = ({"n": 0}, {"content": ""}), ({"n": 1, "text": "x" * (8 << 20)}, {"content": ""})
    outcomes = run_preprocess(sandbox, source, [small, large])
    assert [one.failure.code if one.failure else one.result for one in outcomes] == ["protocol", 1]


def long_item() -> tuple[dict[str, object], dict[str, object]]:
    return {"text": "x" * (8 << 20)}, {"content": ""}


def test_a_long_item_comes_back_changed(sandbox: Sandbox) -> None:
    (outcome,) = run_preprocess(sandbox, script("data.text = data.text[1:] + '!'"), [long_item()])
    assert outcome.failure is None
    assert outcome.changed["data"]["text"].endswith("x!")


def test_a_long_item_allows_no_reply_of_twice_its_size(sandbox: Sandbox) -> None:
    source = script('os.write(3, struct.pack(">I", 16 << 20))', OUTSIDE + FORGE)
    (outcome,) = run_preprocess(sandbox, source, [long_item()])
    assert outcome.failure is not None
    assert outcome.failure.code == "protocol"


def test_many_long_replies_are_taken_from_several_workers() -> None:
    """Together, the replies exceed what the parent buffers per worker."""
    with Sandbox() as sandbox:
        outcomes = run(sandbox, script('data.text = "字" * 250_000\nreturn data.n'), 95)
    assert [one.result for one in outcomes] == list(range(95))
