"""Judged runs for tests. Planning and storing are the engine's own; only the judge's replies are made up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from evalsite.accounts.models import Project
from judging.core.metric_definition import MetricDefinition
from judging.core.results import Failure, JudgeCall, JudgementResult, Verdict
from judging.core.values import Outcome, Value
from judging.engine import chunks, planning
from judging.engine.write_buffer import WriteBatch, write
from judging.records.models import Judgement, Run
from tests.make import a_metric, a_run, a_version

JUDGE_URL = "http://127.0.0.1:9/v1"
Tell = Callable[[int], JudgementResult]


def said(
    value: Value | None,
    *,
    content: str = "",
    reasoning: str | None = None,
    prompt: str = "Judge this.",
    **more: Any,
) -> JudgementResult:
    """The result of a judge reply with this value; None gives an unparsed reply."""
    text = content or (f"Because. Score: [[{value}]]" if value is not None else "A fine answer.")
    reply = {"content": text, "reasoning_content": reasoning, "finish_reason": "stop"}
    request = {
        "model": "scripted",
        "messages": [{"role": "user", "content": prompt}],
        "temperature": 0,
    }
    calls = [{"started_unix": 1_700_000_000.0, "seconds": 0.5, "status": 200, "waited": 0.0}]
    asked = JudgeCall(0, 0, request, reply, None, calls, 0.5, 0.1, 12, 34)
    outcome = Outcome.unparsed("nothing_offered") if value is None else Outcome("scored", value)
    verdict = Verdict(0, 0, value, outcome.reason)
    return JudgementResult(outcome, (asked,), (verdict,), **{"seconds": 0.5, **more})


def failed(code: str = "rate_limited", detail: str = "slow down") -> JudgementResult:
    """The result of a judge call that failed with HTTP 429."""
    request = {"model": "scripted", "messages": [{"role": "user", "content": "Judge this."}]}
    call = {
        "started_unix": 1.0,
        "seconds": 0.2,
        "status": 429,
        "error_code": code,
        "message": detail,
        "waited": 1.0,
    }
    asked = JudgeCall(0, 0, request, None, Failure(code, detail), [call], 0.2)
    return JudgementResult(Outcome.error(code, detail), (asked,), seconds=0.2)


def judge(run: Run, tell: Tell) -> Run:
    """Judge everything pending in `run`. `tell` gets the 0-based position in judging order."""
    planning.plan(run.pk)
    count = 0
    while leased := chunks.lease(run.pk, "test:1:1"):
        items = chunks.load(leased, run.version.format)
        judged = [chunks.Judged(item, tell(count + place)) for place, item in enumerate(items)]
        write(WriteBatch(judged, finished={leased.chunk}), "test:1:1")
        count += len(items)
    return Run.objects.get(pk=run.pk)


def a_judged_run(
    project: Project,
    tell: Tell = lambda place: said(place % 10 + 1),
    *,
    rows: int = 3,
    metric: MetricDefinition | None = None,
    **version: Any,
) -> Run:
    """Create a version and a finished run over it."""
    return judge(a_run(a_version(project, rows=rows, **version), metric or a_metric(JUDGE_URL)), tell)


def first_of(run: Run) -> Judgement:
    """The judgement of the first row."""
    return run.judgements.select_related("row", "candidate").order_by("position")[0]
