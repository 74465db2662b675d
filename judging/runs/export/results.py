"""Export of a run's judgements as a results file (spec: results), which can be imported to the same report.

One line per verdict of each judge model. If there are several judges or a postprocess script, the combined result
follows with the judge name `combined`. Overrides are also written as `combined`, next to the judge's own verdict.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

from judging.core.metric_definition import MetricDefinition
from judging.core.results_file.verdicts import ADJUDICATOR
from judging.core.values import ERROR, SCORED, UNPARSED
from judging.runs import json_text
from judging.runs.export.records import (
    LoadedJudgement,
    load,
    model_name,
    place_of,
    verdicts_by_place,
    why,
)
from judging.runs.filters import ANYTHING, Filters
from judging.runs.models import Judgement, JudgeReply, Run, SourceKind

LINE_BYTES = 8 * 2**20
_ALWAYS = ("line", "model", "response", "metric", "value")
ResultLine = dict[str, Any]


def results_lines(run: Run, filters: Filters = ANYTHING) -> Iterator[bytes]:
    """Yield strict JSON lines in UTF-8, one per verdict."""
    for line in results_of(run, filters):
        known = {name: value for name, value in line.items() if value is not None or name in _ALWAYS}
        yield json_text.dumps(known, LINE_BYTES) + b"\n"


def results_of(run: Run, filters: Filters) -> Iterator[ResultLine]:
    """Yield every verdict behind the matching judgements."""
    for _question, found in groupby(load(run, filters), question_of):
        yield from lines_of(run, list(found))


def question_of(one: LoadedJudgement) -> tuple[int, ...]:
    """The key that verdicts on the same question share: answer, second answer and metric."""
    judgement = one.judgement
    return judgement.response_id, judgement.other_response_id or 0, judgement.run_metric_id


def lines_of(run: Run, found: list[LoadedJudgement]) -> Iterator[ResultLine]:
    """Yield all verdicts on one question."""
    decided: Any = None
    settled: list[ResultLine] = []
    for one in found:
        if run.by_people:
            yield _of_rater(one)
            decided = (one.author or {}).get("adjudicated") if decided is None else decided
            continue
        lines = [_of_source(one)] if run.imported else list(_of_metric(one))
        yield from lines
        if one.judgement.overridden:
            settled.append(_combined(one))
    for repeat, line in enumerate(settled, 1):
        yield line | {"repeat": repeat if repeat > 1 else None}
    if decided is not None:
        yield _about(found[0]) | {"value": decided, "rater": ADJUDICATOR, "role": ADJUDICATOR}


def _about(one: LoadedJudgement) -> ResultLine:
    """The fields that identify what a verdict is about."""
    judgement, other = one.judgement, one.judgement.other_response
    compares = one.compares
    scaled = one.metric.scale_declared and not compares
    return {
        "line": judgement.row.line,
        "model": model_name(judgement.candidate),
        "response": judgement.response.number,
        "other_model": model_name(other.candidate) if other else None,
        "other_response": other.number if other else None,
        "metric": judgement.run_metric.name,
        "compares": False if other and not compares else None,
        "min_score": one.metric.min_score if scaled else None,
        "max_score": one.metric.max_score if scaled else None,
    }


def _own(judgement: Judgement) -> ResultLine:
    """The judgement's original result, ignoring overrides."""
    scored = judgement.state == SCORED
    return {
        "value": json_text.loads(judgement.value) if judgement.value else None,
        "state": None if scored else judgement.state,
        "reason": None if scored else why(judgement.reason, judgement.detail),
    }


def _in_force(judgement: Judgement) -> ResultLine:
    if not judgement.overridden:
        return _own(judgement)
    return {"value": json_text.loads(judgement.override_value or "null"), "state": None, "reason": None}


def _circumstances(judgement: Judgement) -> ResultLine:
    return {
        "shown_first": judgement.shown_first,
        "drawn_with": judgement.drawn_with,
        "repeat": judgement.repeat if judgement.repeat > 1 else None,
        "at": _moment(judgement.finished_at),
        "seconds": judgement.seconds,
    }


def _moment(seconds: float | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat()


def _reply(reply: JudgeReply | None) -> ResultLine:
    if reply is None:
        return {}
    extra = json_text.loads(reply.extra) if reply.extra else {}
    return {
        "reasoning": reply.content,
        "prompt_tokens": reply.prompt_tokens,
        "completion_tokens": reply.completion_tokens,
        "cost": extra.get("cost"),
    }


def _of_rater(one: LoadedJudgement) -> ResultLine:
    judgement, author = one.judgement, one.author or {}
    comment = judgement.rating.comment if judgement.rating else ""
    origin = {"rater": author.get("rater") or f"rater {judgement.rater_id}", "reasoning": comment or None}
    return _about(one) | _in_force(judgement) | origin | _circumstances(judgement)


def _of_source(one: LoadedJudgement) -> ResultLine:
    """An imported verdict in its original form."""
    judgement, source = one.judgement, one.judgement.source
    assert source is not None
    people = (SourceKind.RATER, SourceKind.ADJUDICATOR)
    origin = {"rater" if source.kind in people else "judge": source.name}
    if source.kind == SourceKind.ADJUDICATOR:
        origin["role"] = ADJUDICATOR
    reply = one.replies[0] if one.replies else None
    return _about(one) | _own(judgement) | origin | _reply(reply) | _circumstances(judgement)


def _of_metric(one: LoadedJudgement) -> Iterator[ResultLine]:
    """Verdicts of a run's own metric: its single judge, or all judges and the combined result."""
    judgement, metric = one.judgement, one.metric
    author = _author(metric)
    if author == "combined":
        yield from _of_judges(one)
        if not judgement.overridden:
            yield _combined(one)
        return
    reply = one.replies[0] if one.replies and metric.votes == 1 and not metric.rules else None
    yield _about(one) | _own(judgement) | {"judge": author} | _reply(reply) | _circumstances(judgement)


def _author(metric: MetricDefinition) -> str:
    if metric.rules:
        return "script" if metric.postprocess else "rules"
    if not metric.judges:
        return "script"
    return "combined" if metric.postprocess or metric.votes > 1 else metric.judges[0].name


def _combined(one: LoadedJudgement) -> ResultLine:
    judgement = one.judgement
    return (
        _about(one)
        | _in_force(judgement)
        | {"judge": "combined", "at": _moment(judgement.finished_at), "seconds": judgement.seconds}
    )


def _of_judges(one: LoadedJudgement) -> Iterator[ResultLine]:
    """Yield each judge model's verdict per repeat. If asked in both orders, the combined verdict of both."""
    verdicts = verdicts_by_place(one.judgement.verdicts)
    for reply in one.replies:
        if reply.swapped:
            continue
        judge, repeat, order = place_of(reply)
        found = verdicts.get((judge, repeat, "both")) or verdicts.get((judge, repeat, order)) or {}
        yield (
            _about(one)
            | _read(found, reply)
            | {"judge": one.metric.judge_name(judge), "repeat": repeat + 1 if repeat else None}
            | _reply(reply)
            | {"seconds": reply.seconds}
        )


def _read(verdict: ResultLine, reply: JudgeReply) -> ResultLine:
    if verdict.get("value") is not None:
        return {"value": verdict["value"]}
    if reply.error:
        return {"value": None, "state": ERROR, "reason": why(reply.error, reply.detail)}
    return {"value": None, "state": UNPARSED, "reason": verdict.get("reason") or None}
