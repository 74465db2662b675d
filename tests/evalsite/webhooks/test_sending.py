"""Messages go only where they may, and neither a slow nor a talkative server holds the sender."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from evalsite.webhooks.sending import Outcome, Resolve, Rules, addresses_of, post
from tests.evalsite.webhooks.certificates import Authority
from tests.evalsite.webhooks.receiver import HERE, Receiver, receiving


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


def send(url: str, rules: Rules = HERE, resolve: Resolve = addresses_of) -> Outcome:
    return asyncio.run(post(url, b"{}", {"webhook-id": "msg_1"}, rules, resolve))


def test_a_message_arrives_with_its_reply(receiver: Receiver) -> None:
    outcome = send(receiver.url("/hook?a=1"))
    assert (outcome.status, outcome.problem, outcome.reply) == (200, "", "thanks")
    (request,) = receiver.requests
    assert (request.path, request.body, request.headers["content-type"]) == (
        "/hook?a=1",
        b"{}",
        "application/json",
    )


def test_the_connection_goes_to_the_checked_address_and_keeps_the_name(receiver: Receiver) -> None:
    outcome = send(f"http://hooks.example:{receiver.port}/", resolve=lambda _host, _port: ["127.0.0.1"])
    assert outcome.problem == ""
    assert receiver.requests[0].headers["host"] == f"hooks.example:{receiver.port}"


def test_the_name_is_resolved_once_so_that_no_second_answer_counts(receiver: Receiver) -> None:
    answers = [["127.0.0.1"], ["10.0.0.1"]]
    resolved: list[str] = []

    def resolve(host: str, _port: int) -> list[str]:
        resolved.append(host)
        return answers[len(resolved) - 1]

    assert send(f"http://hooks.example:{receiver.port}/", resolve=resolve).problem == ""
    assert resolved == ["hooks.example"]


@pytest.mark.parametrize(
    "addresses", [["127.0.0.1"], ["8.8.8.8", "10.0.0.1"], ["::ffff:169.254.169.254"], ["fe80::1%lo"], []]
)
def test_a_name_that_stands_for_an_inside_address_is_refused(
    receiver: Receiver, addresses: list[str]
) -> None:
    nothing_allowed = replace(HERE, networks=())
    url = f"http://hooks.example:{receiver.port}/"
    assert send(url, nothing_allowed, lambda _host, _port: addresses).problem == "refused_address"
    assert receiver.requests == []


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "[::1]", "[::ffff:127.0.0.1]"]
)
def test_an_inside_address_in_the_url_is_refused(receiver: Receiver, host: str) -> None:
    outcome = send(f"http://{host}:{receiver.port}/", replace(HERE, networks=()))
    assert outcome.problem in ("refused_address", "no_name", "bad_url")
    assert receiver.requests == []


def test_a_redirect_to_the_inside_is_not_followed(receiver: Receiver) -> None:
    inside = receiver.url("/inside")
    receiver.reply = lambda _request: (307, {"Location": inside}, b"")
    outcome = send(receiver.url("/hook"))
    assert (outcome.status, outcome.problem) == (307, "redirect")
    assert [request.path for request in receiver.requests] == ["/hook"]


def test_a_proxy_of_the_environment_is_not_used(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert send(receiver.url()).problem == ""


def test_plain_http_needs_the_setting(receiver: Receiver) -> None:
    assert send(receiver.url(), replace(HERE, plain_http=False)).problem == "plain_http"
    assert receiver.requests == []


def test_a_long_reply_is_cut_and_names_no_secret_of_the_address(receiver: Receiver) -> None:
    receiver.reply = lambda request: (500, {}, f"no {request.path} ".encode() + b"\0" + b"x" * 1_000_000)
    outcome = send(receiver.url())
    assert (outcome.status, outcome.problem) == (500, "status")
    assert len(outcome.reply) <= 2048
    assert "secret" not in outcome.reply
    assert "\0" not in outcome.reply


def test_a_server_that_does_not_answer_takes_no_longer_than_the_limit(receiver: Receiver) -> None:
    release = threading.Event()
    receiver.reply = lambda _request: ((release.wait(5) and 200) or 200, {}, b"")
    began = time.monotonic()
    assert send(receiver.url(), replace(HERE, seconds=0.3)).problem == "timeout"
    assert time.monotonic() - began < 3
    release.set()


def test_a_name_that_is_looked_up_for_long_takes_no_longer_than_the_limit() -> None:
    release = threading.Event()

    def slow(_host: str, _port: int) -> list[str]:
        release.wait(5)
        return []

    assert send("https://hooks.example/", replace(HERE, seconds=0.2), slow).problem == "timeout"
    release.set()


def test_a_server_without_a_valid_certificate_gets_nothing(receiver: Receiver) -> None:
    outcome = send(f"https://127.0.0.1:{receiver.port}/")
    assert outcome.problem in ("certificate", "connect", "cut")
    assert receiver.requests == []


def test_over_https_the_checked_address_is_called_and_the_name_is_verified(tmp_path: Path) -> None:
    authority, asked = Authority(tmp_path), list[str | None]()
    tls = authority.server("hooks.example")
    tls.sni_callback = lambda _socket, name, _context: asked.append(name)
    rules = replace(HERE, plain_http=False, tls=authority.trusting)
    with receiving(tls) as receiver:
        host = f"hooks.example:{receiver.port}"

        def resolve(_host: str, _port: int) -> list[str]:
            return ["127.0.0.1"]

        outcome = send(f"https://{host}/hook", rules, resolve)
        assert (outcome.status, outcome.problem, outcome.reply) == (200, "", "thanks")
        assert (receiver.requests[0].headers["host"], asked) == (host, ["hooks.example"])
        other_name = send(f"https://other.example:{receiver.port}/hook", rules, resolve)
        unknown_authority = send(f"https://{host}/hook", replace(rules, tls=None), resolve)
        inside = send(f"https://{host}/hook", replace(rules, networks=()), resolve)
        assert [other_name.problem, unknown_authority.problem] == ["certificate", "certificate"]
        assert inside.problem == "refused_address"
        assert len(receiver.requests) == 1


def test_nobody_listens() -> None:
    assert send("http://127.0.0.1:9/").problem == "connect"
