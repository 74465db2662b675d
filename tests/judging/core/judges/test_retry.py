import json

import pytest

from judging.core.judges.client import NoGuard
from judging.core.judges.errors import JudgeError, Unreachable
from judging.core.judges.refused_parameters import SYSTEM_ROLE
from judging.core.judges.reply import Reply
from judging.core.judges.scripted import (
    Answer,
    Received,
    ScriptedJudge,
    rate_limited,
    refusal,
    server_error,
)
from judging.core.judges.settings import Request
from tests.judging.core.judges.helpers import Pauses, ask_until_done


def test_a_reply_at_once_is_one_call() -> None:
    with ScriptedJudge("[[7]]") as judge:
        asked = ask_until_done(judge.url)
    assert asked.reply is not None
    assert [(call.status, call.error_code, call.waited) for call in asked.calls] == [(200, "", 0.0)]


def test_a_fault_that_passes_is_outlived() -> None:
    with ScriptedJudge([server_error(), Answer(fault="cut"), "[[7]]"]) as judge:
        asked = ask_until_done(judge.url)
    assert asked.error is None
    assert [call.error_code for call in asked.calls] == ["server_error", "cut", ""]


def test_tries_are_counted_and_end() -> None:
    with ScriptedJudge(server_error()) as judge:
        asked = ask_until_done(judge.url, tries=3)
    assert asked.error is not None
    assert (asked.error.code, len(asked.calls)) == ("server_error", 3)


def test_what_no_retry_can_help_is_asked_once() -> None:
    with ScriptedJudge(refusal(404, "The model `m` does not exist")) as judge:
        assert len(ask_until_done(judge.url).calls) == 1


def test_an_empty_reply_is_not_asked_again_and_is_handed_over() -> None:
    with ScriptedJudge(Answer()) as judge:
        asked = ask_until_done(judge.url)
    assert (len(asked.calls), asked.error and asked.error.code) == (1, "empty_reply")
    assert asked.reply is not None
    assert asked.reply.content == ""


def test_waiting_grows_within_its_doubling_bounds() -> None:
    pauses = Pauses()
    with ScriptedJudge(server_error()) as judge:
        ask_until_done(judge.url, pauses, tries=6, base_seconds=1.0, longest_wait=4.0)
    assert len(pauses) == 5
    assert all(pause <= bound for pause, bound in zip(pauses, [1, 2, 4, 4, 4], strict=True))


def test_the_servers_own_time_is_waited_at_least() -> None:
    pauses = Pauses()
    with ScriptedJudge([rate_limited("7"), "[[7]]"]) as judge:
        ask_until_done(judge.url, pauses)
    assert 7.0 <= pauses[0] <= 7.5


def test_the_servers_own_time_is_capped() -> None:
    pauses = Pauses()
    with ScriptedJudge([rate_limited("86400"), "[[7]]"]) as judge:
        ask_until_done(judge.url, pauses, longest_retry_after=60.0)
    assert 60.0 <= pauses[0] <= 60.5


def test_no_wait_goes_beyond_the_whole_time() -> None:
    with ScriptedJudge(rate_limited("30")) as judge:
        asked = ask_until_done(judge.url, tries=99, total_seconds=100.0)
    assert sum(call.waited for call in asked.calls) <= 100.0
    assert asked.error is not None


class Witness(NoGuard):
    """Records how each attempt ended; `free` failed attempts don't count."""

    def __init__(self, free: int = 0) -> None:
        self.free = free
        self.outcomes: list[str] = []

    def after(self, reply: Reply | None, error: JudgeError | None) -> None:
        self.outcomes.append(error.code if error else "replied")

    def counts(self, error: JudgeError) -> bool:
        self.free -= 1
        return self.free < 0


def test_a_guard_is_notified_how_each_try_ended() -> None:
    guard = Witness()
    with ScriptedJudge([rate_limited("2"), refusal(503, "busy"), server_error(), "[[7]]"]) as judge:
        ask_until_done(judge.url, guard=guard)
    assert guard.outcomes == ["rate_limited", "overloaded", "server_error", "replied"]


def test_a_try_that_does_not_count_is_made_up_for() -> None:
    with ScriptedJudge(server_error()) as judge:
        asked = ask_until_done(judge.url, guard=Witness(free=3), tries=2)
    assert len(asked.calls) == 5


class Closed(NoGuard):
    async def before(self, request: Request) -> None:
        raise Unreachable("connect", "down")


def test_a_guard_may_end_the_asking_before_it_begins() -> None:
    with ScriptedJudge("[[7]]") as judge:
        asked = ask_until_done(judge.url, guard=Closed())
        assert judge.requests == []
    assert asked.error is not None
    assert (asked.error.code, asked.calls) == ("connect", ())


@pytest.mark.parametrize(
    "name",
    ["separate_reasoning", "stream_options", "stream", "temperature", "max_tokens", "top_p", "stop"],
)
def test_a_parameter_refused_by_name_is_left_out_and_learnt(name: str) -> None:
    with ScriptedJudge("[[7]]", refuses=frozenset({name})) as judge:
        asked = ask_until_done(judge.url)
    assert asked.reply is not None
    assert (asked.refuses, len(asked.calls)) == ({name}, 2)
    assert name not in asked.request


def test_a_refused_system_role_is_sent_as_the_users() -> None:
    def without_system(asked: Received) -> Answer:
        if asked.body["messages"][0]["role"] == "system":
            return refusal(400, "System role not supported")
        return Answer(asked.prompt)

    with ScriptedJudge(without_system) as judge:
        asked = ask_until_done(judge.url, system_prompt="be brief")
    assert asked.reply is not None
    assert (asked.reply.content, asked.refuses, len(asked.calls)) == ("be brief\n\nhi", {SYSTEM_ROLE}, 2)


def test_one_of_two_parameters_that_exclude_each_other_is_left_out() -> None:
    def only_one(asked: Received) -> Answer:
        if {"temperature", "top_p"} <= asked.body.keys():
            return refusal(400, "`temperature` and `top_p` cannot both be specified. Please use only one.")
        return Answer("[[7]]")

    with ScriptedJudge(only_one) as judge:
        asked = ask_until_done(judge.url)
    assert (asked.error, len(asked.calls), asked.request["temperature"]) == (None, 2, 0)


def test_a_refused_max_tokens_is_sent_under_its_newer_name() -> None:
    with ScriptedJudge("[[7]]", refuses=frozenset({"max_tokens"})) as judge:
        asked = ask_until_done(judge.url)
    assert asked.request["max_completion_tokens"] == 9


def test_a_refused_max_tokens_is_left_out_if_its_newer_name_is_refused_too() -> None:
    with ScriptedJudge("[[7]]", refuses=frozenset({"max_tokens", "max_completion_tokens"})) as judge:
        asked = ask_until_done(judge.url)
    assert asked.error is None
    assert asked.refuses == {"max_tokens", "max_completion_tokens"}


@pytest.mark.parametrize(
    ("body", "tries"),
    [
        ({"code": 1301, "msg": "敏感内容"}, 1),
        ({"base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}}, 1),
        ({"base_resp": {"status_code": 1002, "status_msg": "rate limit"}}, 3),
    ],
)
def test_a_filter_or_an_empty_balance_in_a_body_is_not_asked_again(
    body: dict[str, object], tries: int
) -> None:
    with ScriptedJudge(Answer(body=json.dumps(body).encode())) as judge:
        assert len(ask_until_done(judge.url, tries=3).calls) == tries


def test_several_refused_parameters_are_learnt_one_by_one() -> None:
    refuses = frozenset({"separate_reasoning", "stream_options", "temperature"})
    with ScriptedJudge("[[7]]", refuses=refuses) as judge:
        assert ask_until_done(judge.url).refuses == refuses


@pytest.mark.parametrize(
    ("refused", "learnt"),
    [
        ({"separate_reasoning"}, {"separate_reasoning"}),
        ({"stream_options"}, {"stream_options"}),
        ({"separate_reasoning", "stream_options"}, {"separate_reasoning", "stream_options"}),
        ({"stream"}, {"separate_reasoning", "stream_options", "stream"}),
    ],
)
def test_what_is_refused_without_a_name_is_searched_for(refused: set[str], learnt: set[str]) -> None:
    with ScriptedJudge("[[7]]", refuses=frozenset(refused), terse=True) as judge:
        asked = ask_until_done(judge.url)
    assert asked.reply is not None
    assert asked.refuses == learnt


def test_a_search_without_success_ends_with_the_first_refusal_and_learns_nothing() -> None:
    with ScriptedJudge(refusal(400, "no")) as judge:
        asked = ask_until_done(judge.url)
    assert asked.error is not None
    assert (asked.error.code, asked.refuses, len(asked.calls)) == ("bad_request", frozenset(), 5)


def test_the_search_can_be_switched_off() -> None:
    with ScriptedJudge(refusal(400, "no")) as judge:
        assert len(ask_until_done(judge.url, suspect_parameters=False).calls) == 1


def test_a_server_that_refuses_the_same_for_ever_is_given_up() -> None:
    with ScriptedJudge(refusal(400, "Unknown parameter: separate_reasoning")) as judge:
        asked = ask_until_done(judge.url)
    assert asked.error is not None
    assert len(asked.calls) <= 6


def test_a_limit_reached_while_searching_is_waited_out() -> None:
    replies = [refusal(400, "no"), rate_limited("0"), Answer(content="[[7]]")]
    with ScriptedJudge(replies) as judge:
        asked = ask_until_done(judge.url)
    assert (asked.error, asked.refuses) == (None, {"separate_reasoning"})
