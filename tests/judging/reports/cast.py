"""Runs with given scores, stored by the real write path without calls to a judge model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from datasets.models import Version
from judging.core.metric_definition import MetricDefinition, Script
from judging.core.results import JudgementResult
from judging.core.values import Outcome, Value, outcome_of_value
from judging.engine import chunks, planning
from judging.engine.write_buffer import WriteBatch, write
from judging.records.models import Judgement, Run
from tests.make import a_run

OWNER = "test:1:1"
NOTHING = "def postprocess(**kwargs):\n    return None\n"
SCRIPT = Script(kind="postprocess", source=NOTHING)
Says = Callable[[Judgement], Value | Outcome | None]


def a_judged_run(version: Version, says: Says, *names: str, **options: Any) -> Run:
    """A finished run with judge-less metrics. `says` returns each judgement's value or outcome."""
    metrics = [MetricDefinition(name=name, scripts=(SCRIPT,)) for name in names or ("quality",)]
    run = a_run(version, *metrics, **options)
    planning.plan(run.pk)
    judge_all(run, says)
    return Run.objects.get(pk=run.pk)


def judge_all(run: Run, says: Says, most: int = 1000) -> None:
    """Judge at most `most` pending chunks."""
    for _ in range(most):
        leased = chunks.lease(run.pk, OWNER)
        if leased is None:
            return
        waiting = chunks.load(leased, run.version.format)
        found = Judgement.objects.select_related("row", "candidate", "response", "run_metric")
        judgements = found.in_bulk([one.judgement for one in waiting])
        outcomes = [
            chunks.Judged(one, JudgementResult(outcome(says(judgements[one.judgement])))) for one in waiting
        ]
        write(WriteBatch(outcomes, finished={leased.chunk}), OWNER)


def outcome(said: Value | Outcome | None) -> Outcome:
    return said if isinstance(said, Outcome) else outcome_of_value(said)


def by_name(**scores: Value) -> Says:
    """One fixed score per candidate."""
    return lambda judgement: scores[judgement.candidate.name]
