"""Runs over endpoints of every protocol."""

from __future__ import annotations

import pytest

from judging.core.judges.protocols import PROTOCOLS
from judging.core.judges.scripted import Answer, Received, ScriptedJudge, rate_limited, server_error
from judging.records.models import Judgement
from tests.judging.working import PRODUCTION_RETRIES, an_endpoint, run_on, work
from tests.make import a_project

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_run_scores_everything_although_the_server_stumbles(protocol: str) -> None:
    prompts: list[str] = []

    def script(request: Received) -> Answer | str:
        prompts.append(request.prompt)
        tries = prompts.count(request.prompt)
        if tries == 1 and len(prompts) % 3 == 0:
            return rate_limited()
        return (
            server_error()
            if tries == 1 and len(prompts) % 5 == 0
            else Answer("Good. [[8]]", reasoning="Right.")
        )

    with ScriptedJudge(script) as judge:
        endpoint = an_endpoint(a_project(), judge.url, protocol=protocol)
        run = work(run_on(endpoint, rows=12), policy=PRODUCTION_RETRIES)
    assert (run.scored, run.errors) == (12, 0)
    assert {judgement.value for judgement in Judgement.objects.filter(run=run)} == {"8"}
