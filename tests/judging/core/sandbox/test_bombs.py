"""Scripts that exceed their limits fail for their own item only."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from judging.core.sandbox.pool import Sandbox
from tests.judging.core.sandbox.scripting import OUTSIDE, failure_of, result_of, run, script

ENDLESS = {
    "a loop": "while True: pass",
    "a loop that swallows all": "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
    "a loop that tries to stop its clock": (
        "try: signal.setitimer(signal.ITIMER_PROF, 0)\nexcept OSError: pass\nwhile True: pass"
    ),
    "a regular expression": "import re; re.match('(a*)*b', 'a' * 40)",
    "one long calculation": "return 10 ** 10 ** 9",
    "a call that never looks up": "import itertools; return sum(itertools.repeat(1))",
    "a sleep": "import time; time.sleep(1000)",
    "a wait for input": "modules['os'].read(3, 1)",
}


@pytest.fixture(scope="module")
def ended(sandbox: Sandbox) -> dict[str, str]:
    """Failure code of each endless script. They run concurrently, since some only end at their time limit."""
    with ThreadPoolExecutor(len(ENDLESS)) as threads:
        failures = threads.map(lambda body: failure_of(sandbox, body, OUTSIDE).code, ENDLESS.values())
        return dict(zip(ENDLESS, failures, strict=True))


@pytest.mark.parametrize("name", ENDLESS)
def test_what_does_not_end_is_a_timeout(name: str, ended: dict[str, str]) -> None:
    assert ended[name] == "timeout"


def test_a_timeout_names_the_scripts_line(sandbox: Sandbox) -> None:
    assert failure_of(sandbox, "x = 1\nwhile True:\n    x += 1").line in (4, 5)


GREEDY = {
    "one big text": "return len('x' * 10 ** 10)",
    "a growing list": "kept = []\nwhile True: kept.append(bytes(10 ** 6))",
    "a growing number": "return 1 << 10 ** 10",
}


@pytest.mark.parametrize("body", GREEDY.values(), ids=GREEDY.keys())
def test_more_memory_than_allowed_is_a_failure_of_memory(body: str, sandbox: Sandbox) -> None:
    assert failure_of(sandbox, body).code == "memory"


def test_memory_is_free_again_for_the_next_item(sandbox: Sandbox) -> None:
    source = script("return len('x' * (10 ** 10 if data.n == 0 else 10 ** 7))")
    assert [one.result for one in run(sandbox, source, 2)] == [None, 10**7]


def test_endless_recursion_is_an_exception_with_its_line(sandbox: Sandbox) -> None:
    failure = failure_of(sandbox, "return f()", "def f():\n    return f()")
    assert (failure.code, failure.line, failure.message[:14]) == ("exception", 2, "RecursionError")


def test_recursion_past_pythons_own_limit_ends_for_its_item_only(sandbox: Sandbox) -> None:
    body = "sys.setrecursionlimit(10 ** 9)\nreturn f([]) if data.n == 1 else data.n"
    source = script(body, OUTSIDE + "def f(x):\n    return max([x], key=f)")
    first, second, third = run(sandbox, source, 3)
    assert (first.result, third.result) == (0, 2)
    assert second.failure is not None


DEADLY = {
    "by leaving": "os._exit(0)",
    "by a crash": "ctypes.string_at(0)",
    "by aborting": "os.abort()",
    "by raising SystemExit": "raise SystemExit",
    "by closing everything it can": "os.closerange(0, 100); os._exit(1)",
}


@pytest.mark.parametrize("body", DEADLY.values(), ids=DEADLY.keys())
def test_a_script_that_ends_its_worker_spoils_its_own_item_only(body: str, sandbox: Sandbox) -> None:
    outcomes = run(sandbox, script(f"if data.n == 2: {body}\nreturn data.n", OUTSIDE), 5)
    assert [one.result for one in outcomes] == [0, 1, None, 3, 4]
    assert outcomes[2].failure is not None


def test_every_item_may_kill_its_worker(sandbox: Sandbox) -> None:
    outcomes = run(sandbox, script("os._exit(1)", OUTSIDE), 4)
    assert [one.failure.code for one in outcomes if one.failure] == ["killed"] * 4


def test_a_hung_item_is_the_only_one_blamed(sandbox: Sandbox) -> None:
    outcomes = run(sandbox, script("return data.n != 1 or sum(repeat(1))", "from itertools import repeat"), 3)
    assert [one.failure and one.failure.code for one in outcomes] == [None, "timeout", None]


def test_printing_without_end_is_cut(sandbox: Sandbox) -> None:
    (outcome,) = run(sandbox, script("for _ in range(100): print('x' * 10000)\nreturn 1"))
    assert (outcome.result, outcome.printed_was_cut, len(outcome.printed)) == (1, True, 16 * 1024)


def test_a_text_over_the_limit_is_no_result(sandbox: Sandbox) -> None:
    assert (
        failure_of(sandbox, "return 'x' * 70000").message == "preprocess returned a text of 70000 characters"
    )


def test_changed_fields_over_the_limit_are_a_failure_of_output(sandbox: Sandbox) -> None:
    assert failure_of(sandbox, "data.long = 'x' * 100000").code == "output"


def test_a_script_whose_own_top_level_does_not_end_fails_once_for_all_items(sandbox: Sandbox) -> None:
    outcomes = run(sandbox, "while True: pass", 50)
    assert {one.failure.code for one in outcomes if one.failure} == {"timeout"}
    assert len(outcomes) == 50


def test_a_sandbox_goes_on_after_every_bomb(sandbox: Sandbox) -> None:
    assert result_of(sandbox, "return 'well'") == "well"
