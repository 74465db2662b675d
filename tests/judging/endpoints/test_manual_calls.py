"""Manual calls share an endpoint's limits and state with the runs."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from django.test import Client

from datasets.models import Version
from evalsite.accounts.models import User
from judging.core.judges import scripted
from judging.core.judges.client import Guard
from judging.core.judges.concurrency_limiter import LimiterEvents
from judging.core.judges.scripted import Answer, ScriptedJudge
from judging.endpoints import limiter
from judging.endpoints.connection_test import as_judge, try_endpoint
from judging.endpoints.limiter import WorkerReport
from judging.endpoints.manual_calls import Emit, ManualCall, WaitingFor
from judging.endpoints.models import Endpoint, EndpointLoad, EndpointShare
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
    return [json.loads(line) for line in b"".join(answer.streaming_content).splitlines()]  # type: ignore[attr-defined]


def busy(key: str, live: Endpoint, owner: str = "host:1:1") -> None:
    """Simulate a worker that uses every slot."""
    limiter.allocate(
        [WorkerReport(key, live.pk, live.concurrency, 500, live.concurrency, LimiterEvents())], owner
    )


def a_call(live: Endpoint, *, max_wait: float = 0.0, even_if_down: bool = False) -> ManualCall[None]:
    """A manual call that waits for its turn and sends nothing."""

    async def work(guard: Guard, _emit: Emit) -> None:
        await guard.before({"messages": []})

    return ManualCall(as_judge(live), work, max_wait=max_wait, even_if_down=even_if_down)


def now(load: EndpointLoad, **fields: object) -> EndpointLoad:
    EndpointLoad.objects.filter(pk=load.pk).update(**fields)
    load.refresh_from_db()
    return load


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
    assert now(load).requests_at >= before + 10


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


def test_a_manual_call_holds_one_slot_while_it_lasts(live: Endpoint, load: EndpointLoad) -> None:
    with a_call(live) as call:
        assert list(call.events()) == []
        assert EndpointShare.objects.get().slots == 1
    assert not EndpointShare.objects.exists()


def test_a_manual_call_returns_its_slot(page: Client, metric: Metric) -> None:
    tries(page, metric)
    assert not EndpointShare.objects.exists()


def test_runs_leave_a_slot_to_a_manual_call(key: str, live: Endpoint) -> None:
    busy(key, live)
    with a_call(live, max_wait=TIMEOUT) as call:
        waiting = call.events()
        assert next(waiting) == WaitingFor("held_slots")
        allocated = limiter.allocate([WorkerReport(key, live.pk, 16, 500, 15, LimiterEvents())], "host:1:1")[
            key
        ]
        assert allocated.share == 15
        assert list(waiting) == []
        call.result()


def test_a_manual_call_gives_up_if_no_slot_becomes_free(
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
    now(load, down_since=time.time() - 9, next_try_at=time.time() + 9, problem="server_error")
    said = tries(page, metric)[-1]["html"]
    assert "The endpoint is down" in said
    assert "The server returned an error" in said
    assert server.requests == []


def test_a_connection_test_finds_out_that_an_endpoint_is_up_again(live: Endpoint, load: EndpointLoad) -> None:
    now(load, down_since=time.time() - 9, next_try_at=time.time() + 9, failures=5)
    assert try_endpoint(live).ok
    load = now(load)
    assert (load.down_since, load.failures) == (0, 0)


def test_a_connection_test_needs_no_slot_of_an_endpoint_that_is_down(
    key: str, live: Endpoint, load: EndpointLoad
) -> None:
    busy(key, live)  # with requests that wait for the endpoint to recover
    now(load, down_since=time.time() - 9, next_try_at=time.time() + 9)
    with a_call(live, even_if_down=True) as call:
        assert list(call.events()) == []
        call.result()


def test_a_failed_manual_call_counts_among_the_failures_in_a_row(
    live: Endpoint, load: EndpointLoad, server: ScriptedJudge
) -> None:
    server.server.script = lambda _: scripted.server_error()
    assert not try_endpoint(live).ok
    assert now(load).failures >= 1


def test_an_overload_in_a_manual_call_halves_the_slots_of_runs(
    live: Endpoint, load: EndpointLoad, server: ScriptedJudge
) -> None:
    answers = iter([scripted.rate_limited("0")])
    server.server.script = lambda _: next(answers, Answer(content="OK"))
    assert try_endpoint(live).ok
    assert now(load).slots == pytest.approx(8, abs=1)


def test_the_page_says_that_a_test_was_not_sent(
    client_of: ClientOf, alice: User, live: Endpoint, load: EndpointLoad
) -> None:
    now(load, closed_until=time.time() + 90)
    said = client_of(alice).post(f"/p/physics/endpoints/{live.pk}/test/", headers={"HX-Request": "true"}).text
    assert "Not tested" in said
    assert "It failed" not in said
