"""The client and the connection test against servers that mean ill: an error with its code, in little memory."""

from __future__ import annotations

import asyncio
import tracemalloc

import pytest

from judging.core.judges.client import ask
from judging.core.judges.http_clients import HttpClients
from judging.core.judges.scripted import MODEL, Answer, Received, ScriptedJudge, refusal
from judging.core.judges.settings import build_request
from tests.judging.core.judges.helpers import LONG_TIMEOUTS, ask_once, failure_of, probed, settings_for
from tests.judging.core.judges.hostile import ANSWERS, LIST_WITH_NUL, LISTS, NUL, gzipped, http

MOST_MEMORY = 30 * 2**20  # bytes; less than half of what the bombs would take


@pytest.mark.parametrize("name", ANSWERS)
def test_what_a_hostile_server_sends_is_an_error_with_its_code(name: str) -> None:
    answer, code = ANSWERS[name]
    with ScriptedJudge(answer) as judge:
        error = failure_of(judge.url, timeouts=LONG_TIMEOUTS)
    assert error.code == code
    assert "\0" not in error.message


@pytest.mark.parametrize("name", [name for name in ANSWERS if "gzip" in name])
def test_a_compressed_reply_takes_little_memory(name: str) -> None:
    with ScriptedJudge(ANSWERS[name][0]) as judge:
        tracemalloc.start()
        failure_of(judge.url, timeouts=LONG_TIMEOUTS)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < MOST_MEMORY


@pytest.mark.parametrize("name", LISTS)
def test_a_broken_list_of_models_is_reported(name: str) -> None:
    with ScriptedJudge("OK", listing=LISTS[name]) as judge:
        found = probed(judge.url)
    assert (found.ok, found.models, found.list_broken) == (True, (), True)


@pytest.mark.parametrize("listing", [Answer(status=404), Answer(body=b"<html>"), Answer(body=b"{}")])
def test_a_missing_list_of_models_is_not(listing: Answer) -> None:
    with ScriptedJudge("OK", listing=listing) as judge:
        assert not probed(judge.url).list_broken


def test_a_test_keeps_no_nul() -> None:
    with ScriptedJudge(Answer(body=NUL), listing=Answer(body=LIST_WITH_NUL)) as judge:
        found = probed(judge.url)
    assert (found.model, found.models) == ("m\ufffd", ("a\ufffd",))


def test_a_reply_that_is_compressed_once_is_read() -> None:
    body = b'{"choices": [{"message": {"content": "[[7]]"}}]}'
    with ScriptedJudge(Answer(raw=http(gzipped(body, 1), "content-encoding: gzip"))) as judge:
        assert ask_once(judge.url).content == "[[7]]"


def test_no_cookie_is_sent_back() -> None:
    with ScriptedJudge(Answer("[[7]]", headers=(("set-cookie", "who=first; Path=/"),))) as judge:

        async def as_two_projects() -> None:
            async with HttpClients() as clients:
                for key in ("sk-first-key", "sk-other-key", "sk-other-key"):
                    settings = settings_for(judge.url, api_key=key)
                    await ask(clients.of(settings), settings, build_request(settings, "hi"))
                assert not list(clients.of(settings).cookies.jar)

        asyncio.run(as_two_projects())
    assert not [request for request in judge.requests if "cookie" in request.headers]


KEY = "sk-proj-0123456789abcdefghijklmnop"


@pytest.mark.parametrize("before", range(450, 510, 7))
@pytest.mark.parametrize(
    "key", [KEY, KEY.replace("9", "9<b>").replace("h", "h</b>"), KEY.replace("8", "8 \n")]
)
def test_no_part_of_the_key_is_in_an_error(before: int, key: str) -> None:
    def repeating(_asked: Received) -> Answer:
        return refusal(401, "x" * before + key)

    with ScriptedJudge(repeating) as judge:
        error = failure_of(judge.url, api_key=KEY)
    assert "sk-p" not in str(error)
    assert "0123" not in error.message


@pytest.mark.parametrize("where", ["page", "stream", "refusal", "redirect"])
def test_no_part_of_the_key_is_in_an_error_of_any_kind(where: str) -> None:
    text = "y" * 490 + KEY
    page = f"<html>{'<i>' * 6_500}{text}</html>".encode()
    answer = {
        "page": Answer(body=page),
        "stream": Answer(body=f"event: error\ndata: {text}\n\n".encode()),
        "refusal": Answer(body=b'{"choices": [{"message": {"refusal": "%s"}}]}' % text.encode()),
        "redirect": refusal(302, "")
        if where != "redirect"
        else Answer(status=302, headers=(("location", f"http://h/{text}"),)),
    }[where]
    with ScriptedJudge(answer) as judge:
        assert "sk-p" not in str(failure_of(judge.url, api_key=KEY))


def test_a_key_that_is_sent_in_a_header_of_its_own_is_not_shown_either() -> None:
    with ScriptedJudge(refusal(401, f"wrong: {KEY}")) as judge:
        error = failure_of(judge.url, api_key="", headers={"Authorization": f"Bearer {KEY}"})
    assert "sk-p" not in str(error)


def test_the_scripted_judge_can_send_any_list_of_models() -> None:
    with ScriptedJudge("OK") as judge:
        assert probed(judge.url).models == (MODEL,)
