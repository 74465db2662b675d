"""kill -9 while answers are generated and judged: no answer is generated again, and nothing is lost."""

from __future__ import annotations

from collections import Counter

import pytest

from datasets.models import Response
from judging.core.judges.scripted import Answer, ScriptedJudge
from judging.records.models import Generation, Run, RunState
from tests.make import a_candidate, a_metric, a_project, a_run, a_version
from tests.processes.conftest import Processes, wait_until

pytestmark = pytest.mark.processes


def test_answers_that_were_stored_are_not_asked_for_again(processes: Processes) -> None:
    with ScriptedJudge(reply=lambda _: Answer(content="[[5]]", delay=0.3)) as judge:
        run = a_run(
            a_version(a_project(), rows=400, models=()),
            a_metric(judge.url),
            candidate_models=[a_candidate(judge.url)],
        )
        answers = Generation.objects.filter(run=run, state="answered")
        worker = processes.start("worker", "--queue", "runs")
        wait_until(lambda: answers.count() >= 100, 60)
        worker.kill()
        worker.wait()
        stored = set(answers.values_list("response__row__line", flat=True))
        before = len(judge.requests)
        processes.start("worker", "--queue", "runs")
        wait_until(lambda: Run.objects.get(pk=run.pk).state == RunState.FINISHED, 120)
        prompts = Counter(one.prompt for one in judge.requests[before:])
    assert stored
    assert not [line for line in stored if prompts[f"question {line}"]]
    assert Run.objects.get(pk=run.pk).scored == answers.count() == 400
    assert not Response.objects.filter(candidate__name="gamma", raw="").exists()
