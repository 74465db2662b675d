"""A run never exceeds its budget, stops cleanly, and continues when the budget is raised."""

from __future__ import annotations

import asyncio
from decimal import Decimal

import pytest
from django.core.exceptions import ValidationError

from judging.core.judges import scripted
from judging.core.judges.scripted import Answer, Received, ScriptedJudge
from judging.engine.budget import Budget, Ledger, Spent
from judging.records.models import Run, RunState
from judging.runs import services
from judging.runs.services import RunOptions
from tests.judging.working import PRODUCTION_RETRIES, an_endpoint, run_on, work, worked_by
from tests.make import a_project

pytestmark = pytest.mark.django_db(transaction=True)
REPLY = Answer(content="[[5]]", tokens=(60, 40), delay=0.02)
PRICES = {"input_price": Decimal("10"), "output_price": Decimal("20"), "currency": "CNY"}


def budgeted(judge: ScriptedJudge, budget: Budget, rows: int = 100, **endpoint: object) -> Run:
    made = an_endpoint(a_project(), judge.url, concurrency=8, **endpoint)
    return run_on(made, rows, options=RunOptions(budget))


def test_a_budget_of_requests_is_never_exceeded() -> None:
    with ScriptedJudge(REPLY) as judge:
        run = work(budgeted(judge, Budget(calls=30)))
        assert len(judge.requests) == 30
    assert (run.state, run.problem, run.calls, run.scored) == (RunState.PAUSED, "budget_calls", 30, 30)


def test_retries_count() -> None:
    seen: set[str] = set()

    def stumbling(asked: Received) -> Answer:
        first = asked.prompt not in seen
        seen.add(asked.prompt)
        # Not every first request, or the server would count as down.
        return scripted.server_error() if first and len(seen) % 2 else REPLY

    with ScriptedJudge(stumbling) as judge:
        run = work(budgeted(judge, Budget(calls=30)), policy=PRODUCTION_RETRIES)
        assert len(judge.requests) == run.calls == 30
    assert run.scored < 30


def test_two_workers_exceed_it_by_what_they_have_in_flight_at_most() -> None:
    with ScriptedJudge(REPLY) as judge:
        run = worked_by(budgeted(judge, Budget(calls=150), rows=400), 2)
    assert run.problem == "budget_calls"
    assert 150 <= run.calls <= 150 + 0.75 * 8 / 0.02  # calls the other worker has not stored yet


def test_a_budget_of_tokens_holds_to_what_is_in_flight() -> None:
    with ScriptedJudge(REPLY) as judge:
        run = work(budgeted(judge, Budget(tokens=3000)))
    assert run.problem == "budget_tokens"
    assert 3000 <= run.prompt_tokens + run.completion_tokens <= 3000 + 8 * 100


def test_a_budget_of_money_counts_by_the_endpoints_prices() -> None:
    with ScriptedJudge(REPLY) as judge:  # 60 × 10 + 40 × 20 millionths per call
        run = work(budgeted(judge, Budget(money=28_000), **PRICES))
    assert run.problem == "budget_money"
    assert (run.currency, run.spent) == ("CNY", run.calls * 1400)
    assert 28_000 <= run.spent <= 28_000 + 8 * 1400


def test_a_run_that_is_given_more_goes_on_and_asks_nothing_twice() -> None:
    with ScriptedJudge(REPLY) as judge:
        run = work(budgeted(judge, Budget(calls=30)))
        assert services.run_resume(run, budget=Budget(calls=200))
        run = work(run)
        assert len(judge.requests) == run.scored == 100
    assert (run.state, run.problem) == (RunState.FINISHED, "")


def test_a_budget_that_is_taken_away_is_none() -> None:
    with ScriptedJudge(REPLY) as judge:
        run = work(budgeted(judge, Budget(calls=30)))
        assert services.run_resume(run, budget=Budget())
        assert (work(run).scored, len(judge.requests)) == (100, 100)


def test_a_run_is_not_resumed_on_a_budget_that_is_spent() -> None:
    with ScriptedJudge(REPLY) as judge:
        run = work(budgeted(judge, Budget(calls=30)))
    with pytest.raises(ValidationError, match="budget is already used up"):
        services.run_resume(run)


def test_a_budget_that_ends_with_the_last_judgement_does_not_pause() -> None:
    with ScriptedJudge(REPLY) as judge:
        assert work(budgeted(judge, Budget(calls=20), rows=20)).state == RunState.FINISHED


def test_money_without_prices_is_refused() -> None:
    with ScriptedJudge(REPLY) as judge, pytest.raises(ValidationError, match="prices in one currency"):
        budgeted(judge, Budget(money=1))


def test_what_could_not_be_stored_is_stored_later() -> None:
    ledger = Ledger()
    ledger.in_flight = 1
    ledger.end_call(None, failed=True, endpoint=None)
    assert ledger.take().calls == 1
    ledger.settle(stored=False)
    assert (ledger.unstored.calls, ledger.stored.calls) == (1, 0)


def test_calls_that_a_read_holds_while_they_are_stored_count_once_again_after_the_next_read() -> None:
    """Otherwise two workers, which both count too much, would wait for each other for ever."""
    ledger = Ledger(Budget(calls=3))
    ledger.begin()
    ledger.end_call(None, failed=False, endpoint=None)
    before = ledger.writes
    ledger.take()
    ledger.synchronize(Spent(calls=2), before)  # with another worker's, and the one that is being stored
    ledger.settle(stored=True)
    assert ledger.stored.calls == 3
    ledger.synchronize(Spent(calls=2), ledger.writes)
    assert ledger.stored.calls == 2
    asyncio.run(asyncio.wait_for(ledger.wait_for_budget(), 10))


def test_a_read_older_than_a_write_takes_nothing_back() -> None:
    ledger = Ledger()
    ledger.begin()
    ledger.end_call(None, failed=False, endpoint=None)
    before = ledger.writes
    ledger.take()
    ledger.settle(stored=True)
    ledger.synchronize(Spent(), before)
    assert ledger.stored.calls == 1
