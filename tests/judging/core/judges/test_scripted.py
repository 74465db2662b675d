import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from judging.core.judges.scripted import Answer, Latency, ScriptedJudge
from tests.judging.core.judges.helpers import ask_once


def test_replies_come_in_their_order_and_the_last_repeats() -> None:
    with ScriptedJudge(["a", "b"]) as judge:
        assert [ask_once(judge.url).content for _ in range(3)] == ["a", "b", "b"]


def test_a_function_may_answer() -> None:
    with ScriptedJudge(lambda request: request.prompt.upper()) as judge:
        assert ask_once(judge.url, "hi").content == "HI"


def test_requests_are_kept_for_looking_at() -> None:
    with ScriptedJudge() as judge:
        ask_once(judge.url, "what?")
    assert [request.prompt for request in judge.requests] == ["what?"]


def test_many_are_answered_at_once() -> None:
    with ScriptedJudge(Answer(content="x", delay=0.05)) as judge, ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda _: ask_once(judge.url).content, range(8))) == ["x"] * 8


def test_latency_is_the_same_for_the_same_seed() -> None:
    first, second = (Latency(0.5, 0.6, seed=3).stream() for _ in range(2))
    assert [first() for _ in range(5)] == [second() for _ in range(5)]


def test_latency_without_spread_is_fixed() -> None:
    assert {Latency(0.5).stream()() for _ in range(3)} == {0.5}


@pytest.mark.parametrize("command", [["manage.py", "demo_judge"], ["-m", "judging.core.judges.scripted"]])
def test_it_serves_as_a_program(command: list[str]) -> None:
    with subprocess.Popen(
        [sys.executable, *command, "--port", "0"], stdout=subprocess.PIPE, text=True
    ) as program:
        try:
            assert program.stdout is not None
            url = program.stdout.readline().strip()
            assert re.search(r"\[\[\d\]\]", ask_once(url).content)
        finally:
            program.terminate()
