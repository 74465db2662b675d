import asyncio
import socket
import ssl
import threading
from dataclasses import replace
from typing import Any

import pytest

from judging.core.judges import scripted
from judging.core.judges.client import ask
from judging.core.judges.errors import JudgeError, Unreachable
from judging.core.judges.http_clients import HttpClients, open_client
from judging.core.judges.scripted import (
    Answer,
    ScriptedJudge,
    rate_limited,
    refusal,
    server_error,
)
from judging.core.judges.settings import build_request
from tests.judging.core.judges.helpers import LONG_TIMEOUTS, ask_once, failure_of, settings_for

UNUSED = "http://127.0.0.1:9/v1"


def test_a_reply_comes_with_what_led_to_it() -> None:
    with ScriptedJudge(Answer(content="好 [[7]]", reasoning="hm")) as judge:
        reply = ask_once(judge.url)
    assert (reply.content, reply.reasoning_content, reply.status) == ("好 [[7]]", "hm", 200)
    assert reply.seconds >= (reply.first_token_seconds or 0) > 0
    assert reply.usage.completion_tokens


def test_the_request_is_sent_with_the_key() -> None:
    with ScriptedJudge() as judge:
        ask_once(judge.url, "what?", headers={"X-Team": "a"})
    request = judge.requests[0]
    assert (request.prompt, request.body["stream"]) == ("what?", True)
    assert request.headers["authorization"] == "Bearer sk-secret-key"
    assert request.headers["x-team"] == "a"


def test_a_reply_that_is_not_streamed_is_taken() -> None:
    with ScriptedJudge("[[7]]") as judge:
        reply = ask_once(judge.url, params={"stream": False})
    assert (reply.content, reply.streamed) == ("[[7]]", False)


def test_a_document_is_taken_where_a_stream_was_asked_for() -> None:
    body = b'{"choices": [{"message": {"content": "x"}}]}'
    with ScriptedJudge(Answer(body=body)) as judge:
        assert ask_once(judge.url).content == "x"


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (rate_limited("3"), "rate_limited"),
        (server_error(), "server_error"),
        (Answer(body=b"<html><body>Welcome to the gateway</body></html>"), "bad_reply"),
        (Answer(), "empty_reply"),
        (Answer(fault="cut"), "cut"),
        (Answer("Score: [[7]]", fault="half_stream"), "cut"),
        (refusal(302, ""), "redirected"),
        (refusal(404, "The model `m` does not exist"), "unknown_model"),
    ],
)
def test_a_fault_has_its_code(answer: Answer, code: str) -> None:
    with ScriptedJudge(answer) as judge:
        assert failure_of(judge.url, timeouts=LONG_TIMEOUTS).code == code


def test_a_wrong_key_is_not_repeated_in_the_message() -> None:
    with ScriptedJudge(api_key="another") as judge:
        error = failure_of(judge.url)
    assert (error.code, error.status, error.retry) == ("bad_key", 401, False)
    assert "sk-secret-key" not in str(error)


def test_half_a_character_in_a_prompt_is_sent_all_the_same() -> None:
    with ScriptedJudge() as judge:
        ask_once(judge.url, "a\ud83d")
    assert judge.requests[0].raw.count(b"a\\ud83d") == 1


def test_the_time_to_wait_comes_with_the_error() -> None:
    with ScriptedJudge(rate_limited("3")) as judge:
        assert failure_of(judge.url).retry_after == 3.0


@pytest.mark.parametrize(
    ("url", "fields", "code"),
    [
        (UNUSED, {}, "connect"),
        ("http://nowhere.invalid", {}, "connect"),
        ("ftp://h", {}, "bad_url"),
        ("http://a..b/v1", {}, "bad_url"),
        (UNUSED, {"proxy": "http://127.0.0.1:9"}, "proxy"),
        (UNUSED, {"proxy": "no proxy"}, "bad_url"),
        (UNUSED, {"ca_pem": "no certificate"}, "bad_ca"),
        (UNUSED, {"api_key": "密钥"}, "bad_header"),
        (UNUSED, {"headers": {"x": "a\nb: c"}}, "bad_header"),
    ],
)
def test_what_cannot_be_reached_says_why(url: str, fields: dict[str, Any], code: str) -> None:
    assert failure_of(url, **fields).code == code


def test_plain_http_behind_https_is_a_certificate_error() -> None:
    with ScriptedJudge() as judge:
        assert failure_of(judge.url.replace("http:", "https:")).code == "certificate"


def test_a_proxy_is_asked_for_the_address() -> None:
    with ScriptedJudge("[[7]]") as judge:
        assert ask_once("http://far.invalid/v1", proxy=judge.url.removesuffix("/v1")).content == "[[7]]"


def test_a_proxy_gets_its_password() -> None:
    with ScriptedJudge() as judge:
        ask_once("http://far.invalid/v1", proxy=judge.url.removesuffix("/v1").replace("//", "//u:hunter22@"))
    assert judge.requests[0].headers["proxy-authorization"] == "Basic dTpodW50ZXIyMg=="
    assert judge.requests[0].headers["authorization"] == "Bearer sk-secret-key"


def test_a_proxys_password_is_not_shown() -> None:
    error = failure_of(UNUSED, proxy="http://u:hunter22@127.0.0.1:9")
    assert "hunter22" not in str(error)


def test_the_environments_proxy_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    with ScriptedJudge("[[7]]") as judge:
        assert ask_once(judge.url).content == "[[7]]"


def test_the_whole_call_has_a_limit() -> None:
    with ScriptedJudge(Answer(fault="hang")) as judge:
        error = failure_of(judge.url, timeouts=replace(LONG_TIMEOUTS, whole=0.1))
    assert (error.code, error.retry) == ("timeout_whole", False)


def test_a_judge_that_does_not_begin_is_given_up() -> None:
    with ScriptedJudge(Answer(fault="hang")) as judge:
        assert (
            failure_of(judge.url, timeouts=replace(LONG_TIMEOUTS, connect=2, first_byte=0.2)).code
            == "timeout_first_byte"
        )


def test_a_stream_that_falls_silent_is_given_up() -> None:
    error = failure_of(_Silent().url, timeouts=replace(LONG_TIMEOUTS, idle=0.1))
    assert error.code == "timeout_idle"


def test_each_piece_is_reported_as_it_arrives() -> None:
    received: list[str] = []
    with ScriptedJudge("[[7]]") as judge:
        ask_once(judge.url, on_text=lambda _, text: received.append(text))
    assert "".join(received) == "[[7]]"


def test_a_connection_is_used_again() -> None:
    with ScriptedJudge() as judge:
        settings = settings_for(judge.url)

        async def twice() -> int:
            async with HttpClients() as clients:
                for _ in range(2):
                    await ask(clients.of(settings), settings, build_request(settings, "hi"))
                return len({id(clients.of(settings)), id(clients.of(settings_for(judge.url + "/")))})

        assert asyncio.run(twice()) == 1


def test_an_own_authority_is_added_to_the_known_ones() -> None:
    known = ssl.create_default_context().get_ca_certs(binary_form=True)
    if not known:
        pytest.skip("this machine has no certificates")
    pem = ssl.DER_cert_to_PEM_cert(known[0])
    client = open_client(settings_for(UNUSED, ca_pem=pem))
    asyncio.run(client.aclose())
    assert client.is_closed


def test_an_error_says_what_it_is() -> None:
    assert str(Unreachable("connect", "no route")) == "connect: no route"
    assert isinstance(Unreachable("connect"), JudgeError)


class _Silent:
    """Server that sends the start of a stream, then nothing: ScriptedJudge cannot do this, so it uses a raw socket."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}/v1"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        connection, _ = self._socket.accept()
        with self._socket, connection:
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 999\r\n\r\ndata: {}\n\n")
            connection.recv(65536)


def test_a_reply_that_uses_up_a_limit_says_for_how_long() -> None:
    headers = (("x-ratelimit-remaining-requests", "0"), ("x-ratelimit-reset-requests", "6s"))
    with ScriptedJudge(Answer(body=scripted.document(Answer("[[7]]")), headers=headers)) as judge:
        assert ask_once(judge.url).closed_for == 6


def test_a_reply_without_such_headers_closes_nothing() -> None:
    headers = (("x-ratelimit-remaining-requests", "9"), ("x-ratelimit-reset-requests", "6s"))
    with ScriptedJudge([Answer(body=scripted.document(Answer("[[7]]")), headers=headers), "[[7]]"]) as judge:
        assert [ask_once(judge.url).closed_for for _ in range(2)] == [None, None]
