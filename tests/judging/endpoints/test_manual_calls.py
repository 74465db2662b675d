"""Manual calls share an endpoint's limits and state with the runs."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from html import unescape
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from datasets.models import Version
from evalsite.accounts.models import User
from judging.core.judges import scripted
from judging.core.judges.client import Guard
from judging.core.judges.scripted import Answer, ScriptedJudge, refusal
from judging.endpoints import limiter
from judging.endpoints.connection_test import as_judge, try_endpoint
from judging.endpoints.limiter import Report
from judging.endpoints.manual_calls import Emit, ManualCall, StillWaiting, WaitingFor
from judging.endpoints.models import Endpoint, EndpointLoad
from judging.messages import reason_sentence
from judging.metrics.editor import try_prompt
from judging.metrics.models import Metric
from tests.conftest import ClientOf
from tests.deadlines import TIMEOUT
from tests.judging.metrics.conftest import form_of


@pytest.fixture
def key(live: Endpoint) -> str:
    limiter.ensure_row(f"endpoint {live.pk}")
    return f"endpoint {live.pk}"


@pytest.fixture
def load(key: str) -> EndpointLoad:
    return EndpointLoad.objects.get(key=key)


@pytest.fixture
def page(client_of: ClientOf, alice: User, version: Version) -> Client:
    return client_of(alice)


def tries(page: Client, metric: Metric) -> list[dict[str, Any]]:
    answer = page.post("/p/physics/metrics/try/", form_of(metric))
    lines = b"".join(answer.streaming_content).splitlines()  # type: ignore[attr-defined]
    return [json.loads(line) for line in lines if line]


def share_of_worker(key: str, live: Endpoint, in_flight: int) -> int:
    """The share of a worker with requests waiting and so many calls in flight."""
    report = Report(key, live.pk, live.concurrency, in_flight, None)
    return limiter.exchange([report], "host:1:1")[key].share


def busy(key: str, live: Endpoint) -> None:
    """Simulate a worker that uses every call."""
    share_of_worker(key, live, live.concurrency)


DOWN = [[number, 0] for number in range(20)]  # 20 requests that were not answered


def a_call(live: Endpoint, *, max_wait: float = 0.0, even_if_down: bool = False) -> ManualCall[None]:
    """A manual call that waits for its turn and sends nothing."""

    async def work(guard: Guard, _emit: Emit) -> None:
        await guard.before({"messages": []})

    return ManualCall(as_judge(live), work, max_wait=max_wait, total=TIMEOUT, even_if_down=even_if_down)


def waits(call: ManualCall[None]) -> Iterator[WaitingFor]:
    """What the call tells the page that it waits for."""
    return (event for event in call.events() if not isinstance(event, StillWaiting))


def now(load: EndpointLoad, **fields: object) -> EndpointLoad:
    EndpointLoad.objects.filter(pk=load.pk).update(**fields)
    load.refresh_from_db()
    return load


def test_a_try_that_nobody_reads_any_longer_ends_its_call(
    page: Client, metric: Metric, load: EndpointLoad, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = page.post("/p/physics/metrics/try/", form_of(metric))
    assert next(answer.streaming_content) == b"\n"  # type: ignore[attr-defined]
    assert now(load).workers
    monkeypatch.setattr(connection, "close_if_unusable_or_obsolete", lambda: None)  # it is this test's, too
    answer.close()
    assert now(load).workers == {}


def test_a_manual_call_counts_into_the_requests_and_tokens_per_minute(
    page: Client, metric: Metric, live: Endpoint, load: EndpointLoad
) -> None:
    Endpoint.objects.filter(pk=live.pk).update(requests_per_minute=1, tokens_per_minute=600)
    before = time.time()
    assert '<span class="score">7</span>' in tries(page, metric)[-1]["html"]
    load = now(load)
    assert load.requests_at >= before + 60
    # 20 tokens according to the reply; the estimate was about 500, which is a minute's worth
    assert before < load.tokens_at < load.requests_at - 20


def test_a_connection_test_counts_too(live: Endpoint, load: EndpointLoad) -> None:
    Endpoint.objects.filter(pk=live.pk).update(requests_per_minute=6)
    before = time.time()
    assert try_endpoint(live).ok
    assert now(load).requests_at >= before + 9  # a call of 10 s, less the burst


def test_a_test_ends_at_the_endpoints_total_time_out(live: Endpoint, server: ScriptedJudge) -> None:
    server.server.script = lambda _: Answer(content="[[7]]", delay=5)
    Endpoint.objects.filter(pk=live.pk).update(total_seconds=1)
    live.refresh_from_db()
    assert try_endpoint(live).code == "timeout_whole"


def test_a_try_ends_at_the_endpoints_total_time_out(
    page: Client, metric: Metric, live: Endpoint, server: ScriptedJudge
) -> None:
    server.server.script = lambda _: Answer(content="[[7]]", delay=5)
    Endpoint.objects.filter(pk=live.pk).update(total_seconds=1)
    last = tries(page, metric)[-1]
    assert reason_sentence("timeout_whole") in unescape(last["html"])


def test_a_try_shows_its_retries(page: Client, metric: Metric, server: ScriptedJudge) -> None:
    server.server.script = lambda _: refusal(500, "out of order")
    first, *_, last = tries(page, metric)
    assert (first["kind"], "Call 1 failed" in first["text"]) == ("wait", True)
    assert [f"Call {number} failed" in last["html"] for number in (1, 2, 3)] == [True, True, False]


def test_a_test_counts_its_failed_calls(live: Endpoint, server: ScriptedJudge) -> None:
    server.server.script = lambda _: refusal(500, "out of order")
    assert try_endpoint(live).failed_calls == 2


def test_waiting_for_its_turn_does_not_shorten_a_try(
    page: Client, metric: Metric, live: Endpoint, load: EndpointLoad
) -> None:
    Endpoint.objects.filter(pk=live.pk).update(requests_per_minute=60, total_seconds=1)
    now(load, requests_at=time.time() + 3)
    assert '<span class="score">7</span>' in tries(page, metric)[-1]["html"]


def test_a_manual_call_that_would_wait_for_long_is_not_sent_and_says_so(
    page: Client, metric: Metric, live: Endpoint, load: EndpointLoad, server: ScriptedJudge
) -> None:
    Endpoint.objects.filter(pk=live.pk).update(requests_per_minute=6)
    now(load, requests_at=time.time() + 300)
    (event,) = tries(page, metric)
    assert "per minute are used up" in event["html"]
    assert "Next attempt in " in event["html"]
    assert server.requests == []


def test_a_manual_call_that_waits_says_what_for(
    page: Client, metric: Metric, live: Endpoint, load: EndpointLoad
) -> None:
    Endpoint.objects.filter(pk=live.pk).update(requests_per_minute=60)
    now(load, requests_at=time.time() + 3)  # in the future, even on a busy machine
    first, *_, last = tries(page, metric)
    assert first["kind"] == "wait"
    assert "requests or tokens per minute" in first["text"]
    assert '<span class="score">7</span>' in last["html"]


def test_a_manual_call_holds_one_call_while_it_lasts(live: Endpoint, load: EndpointLoad) -> None:
    with a_call(live) as call:
        assert list(waits(call)) == []
        ((_seen, held, _claim),) = now(load).workers.values()
        assert held == 1
    assert now(load).workers == {}


def test_a_manual_call_releases_its_call(page: Client, metric: Metric, load: EndpointLoad) -> None:
    tries(page, metric)
    assert now(load).workers == {}


def test_runs_leave_a_call_to_a_page(key: str, live: Endpoint) -> None:
    busy(key, live)
    with a_call(live, max_wait=TIMEOUT) as call:
        waiting = waits(call)
        assert next(waiting) == WaitingFor("held_slots")
        assert share_of_worker(key, live, 15) == 15
        assert {event.code for event in waiting} <= {"held_slots"}
        call.result()


def test_a_manual_call_gives_up_if_no_call_becomes_free(
    page: Client, metric: Metric, key: str, live: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy(key, live)
    monkeypatch.setattr(try_prompt, "WAIT_SECONDS", 0.0)
    assert "using all of this endpoint" in tries(page, metric)[-1]["html"]


def test_a_manual_call_is_not_sent_during_a_retry_after(
    page: Client, metric: Metric, load: EndpointLoad, server: ScriptedJudge
) -> None:
    now(load, closed_until=time.time() + 90)
    assert "asked clients to wait" in tries(page, metric)[-1]["html"]
    assert server.requests == []


def test_a_manual_call_is_not_sent_to_an_endpoint_that_is_down(
    page: Client, metric: Metric, load: EndpointLoad, server: ScriptedJudge
) -> None:
    now(load, down_since=time.time() - 9, recent=DOWN, problem="server_error")
    said = tries(page, metric)[-1]["html"]
    assert "The endpoint is down" in said
    assert "The server returned an error" in said
    assert server.requests == []


def test_a_connection_test_finds_out_that_an_endpoint_is_up_again(live: Endpoint, load: EndpointLoad) -> None:
    now(load, down_since=time.time() - 9, recent=DOWN)
    assert try_endpoint(live).ok
    assert now(load).down_since == 0


def test_a_connection_test_needs_no_share_of_an_endpoint_that_is_down(
    key: str, live: Endpoint, load: EndpointLoad
) -> None:
    busy(key, live)  # with requests that wait for the endpoint to recover
    now(load, down_since=time.time() - 9, recent=DOWN)
    with a_call(live, even_if_down=True) as call:
        assert list(waits(call)) == []
        call.result()


def test_a_failed_manual_call_counts_among_the_recent_calls(
    live: Endpoint, load: EndpointLoad, server: ScriptedJudge
) -> None:
    server.server.script = lambda _: scripted.server_error()
    assert not try_endpoint(live).ok
    assert [answered for _request, answered in now(load).recent] == [0]


def test_an_overload_in_a_manual_call_halves_the_calls_of_runs(
    live: Endpoint, load: EndpointLoad, server: ScriptedJudge
) -> None:
    answers = iter([scripted.rate_limited("0")])
    server.server.script = lambda _: next(answers, Answer(content="OK"))
    assert try_endpoint(live).ok
    assert now(load).limit == pytest.approx(8, abs=1)


def test_the_page_says_that_a_test_was_not_sent(
    client_of: ClientOf, alice: User, live: Endpoint, load: EndpointLoad
) -> None:
    now(load, closed_until=time.time() + 90)
    said = client_of(alice).post(f"/p/physics/endpoints/{live.pk}/test/", headers={"HX-Request": "true"}).text
    assert "Not tested" in said
    assert "It failed" not in said
