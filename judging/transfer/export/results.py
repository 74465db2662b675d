"""Export of a run's judgements as a results file (docs/results.md), which can be imported to the same report.

One line per verdict of each judge model. If there are several judges or a postprocess script, the combined result
follows with the judge name `combined`. Overrides are also written as `combined`, next to the judge's own verdict.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

from judging.core.checklists import checklist_from
from judging.core.metric_definition import MetricDefinition
from judging.core.people.criteria import CANNOT_TELL, MET, marks_of
from judging.core.people.parts import NOT_TOLD
from judging.core.results_file.verdicts import ADJUDICATOR
from judging.core.values import ERROR, SCORED, UNPARSED
from judging.filters.judgement_filter import ANYTHING, Filters
from judging.records import json_text
from judging.records.models import Judgement, JudgeReply, Run, SourceKind
from judging.records.stored_judgement import place_of, verdict_in_order, verdicts_by_place, why
from judging.transfer.export.records import LoadedJudgement, load, model_name

LINE_BYTES = 8 * 2**20
_ALWAYS = ("line", "model", "response", "metric", "value")
ResultLine = dict[str, Any]


def results_lines(run: Run, filters: Filters = ANYTHING) -> Iterator[bytes]:
    """Yield strict JSON lines in UTF-8, one per verdict."""
    for line in results_of(run, filters):
        fields = {name: value for name, value in line.items() if value is not None or name in _ALWAYS}
        yield json_text.dumps(fields, LINE_BYTES) + b"\n"


def results_of(run: Run, filters: Filters) -> Iterator[ResultLine]:
    """Yield every verdict behind the matching judgements."""
    for _question, judgements in groupby(load(run, filters), question_of):
        yield from lines_of(run, list(judgements))


def question_of(loaded: LoadedJudgement) -> tuple[int, ...]:
    """The key that verdicts on the same question share: answer, second answer and metric."""
    judgement = loaded.judgement
    return judgement.response_id, judgement.other_response_id or 0, judgement.run_metric_id


def lines_of(run: Run, judgements: list[LoadedJudgement]) -> Iterator[ResultLine]:
    """Yield all verdicts on one question."""
    decided: Any = None
    combined: list[ResultLine] = []
    for loaded in judgements:
        if run.by_people:
            yield from _of_criteria(loaded, _of_rater(loaded))
            decided = (loaded.author or {}).get("adjudicated") if decided is None else decided
            continue
        lines = list(_of_criteria(loaded, _of_source(loaded)) if run.imported else _of_metric(loaded))
        yield from lines
        if loaded.judgement.overridden:
            combined.append(_combined(loaded))
    for repeat, line in enumerate(combined, 1):
        yield line | {"repeat": repeat if repeat > 1 else None}
    if decided is not None:
        yield from _decision(judgements[0], decided)


def _decision(loaded: LoadedJudgement, value: Any) -> Iterator[ResultLine]:
    """The line of an adjudication, or of a checklist one for each criterion."""
    line = _subject(loaded) | {"value": value, "rater": ADJUDICATOR, "role": ADJUDICATOR}
    checklist = checklist_from(loaded.judgement.checklist)
    if checklist is None:
        yield line
        return
    for criterion, mark in zip(checklist.criteria, marks_of(value), strict=True):
        told = (
            {"value": None, "state": UNPARSED, "reason": NOT_TOLD}
            if mark == CANNOT_TELL
            else {"value": mark == MET}
        )
        yield line | {"criterion": criterion.id, **told}


def _subject(loaded: LoadedJudgement) -> ResultLine:
    """The fields that identify what a verdict is about."""
    judgement, other = loaded.judgement, loaded.judgement.other_response
    compares = loaded.compares
    scaled = loaded.metric.scale_declared and not compares
    return {
        "line": judgement.row.line,
        "model": model_name(judgement.candidate),
        "response": judgement.response.number,
        "other_model": model_name(other.candidate) if other else None,
        "other_response": other.number if other else None,
        "metric": judgement.run_metric.name,
        "compares": False if other and not compares else None,
        "min_score": loaded.metric.min_score if scaled else None,
        "max_score": loaded.metric.max_score if scaled else None,
    }


def _own_result(judgement: Judgement) -> ResultLine:
    """The judgement's original result, ignoring overrides; an imported one's in the order that it is about."""
    state, value = judgement.state, judgement.value
    if judgement.source_id:
        state, value = verdict_in_order(state, value, judgement.detail)
    scored = state == SCORED
    return {
        "value": json_text.loads(value) if value else None,
        "state": None if scored else judgement.state,
        "reason": None if scored else why(judgement.reason, judgement.detail),
    }


def _result_in_force(judgement: Judgement) -> ResultLine:
    if not judgement.overridden:
        return _own_result(judgement)
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


def _of_rater(loaded: LoadedJudgement) -> ResultLine:
    judgement, author = loaded.judgement, loaded.author or {}
    comment = judgement.rating.comment if judgement.rating else ""
    origin = {"rater": author.get("rater") or f"rater {judgement.rater_id}", "reasoning": comment or None}
    return _subject(loaded) | _result_in_force(judgement) | origin | _circumstances(judgement)


def _of_source(loaded: LoadedJudgement) -> ResultLine:
    """An imported verdict in its original form."""
    judgement, source = loaded.judgement, loaded.judgement.source
    assert source is not None
    people = (SourceKind.RATER, SourceKind.ADJUDICATOR)
    origin = {"rater" if source.kind in people else "judge": source.name}
    if source.kind == SourceKind.ADJUDICATOR:
        origin["role"] = ADJUDICATOR
    reply = loaded.replies[0] if loaded.replies else None
    return _subject(loaded) | _own_result(judgement) | origin | _reply(reply) | _circumstances(judgement)


def _of_metric(loaded: LoadedJudgement) -> Iterator[ResultLine]:
    """Verdicts of a run's own metric: its single judge, or all judges and the combined result."""
    judgement, metric = loaded.judgement, loaded.metric
    author = _author(metric)
    if judgement.checklist:
        if author == "combined":
            yield from _of_judges_by_criterion(loaded)
        yield from _of_criteria(
            loaded, _subject(loaded) | _own_result(judgement) | {"judge": author} | _circumstances(judgement)
        )
        return
    if author != "combined" and metric.compares_candidates and loaded.replies:
        yield from _of_judges(loaded)
        return
    if author == "combined":
        yield from _of_judges(loaded)
        if not judgement.overridden:
            yield _combined(loaded)
        return
    voter = next((reply for reply in loaded.replies if reply.judge in metric.last_row), None)
    reply = voter if metric.votes == 1 and not metric.rules else None
    yield (
        _subject(loaded)
        | _own_result(judgement)
        | {"judge": author}
        | _reply(reply)
        | _circumstances(judgement)
    )


def _of_criteria(loaded: LoadedJudgement, line: ResultLine) -> Iterator[ResultLine]:
    """The line of a judgement; of a checklist one for each criterion instead, with what its reply says."""
    checklist = checklist_from(loaded.judgement.checklist)
    if checklist is None:
        yield line
        return
    replies = {reply.criterion: reply for reply in loaded.replies if reply.criterion}
    for number, criterion in enumerate(checklist.criteria, 1):
        state = {} if criterion.met is not None else {"state": UNPARSED, "reason": criterion.reason or None}
        said = {"criterion": criterion.id, "value": criterion.met, "state": None, "reason": None, **state}
        reply = _reply(replies.get(number)) if number in replies else {}
        yield line | said | {name: value for name, value in reply.items() if value is not None}


def _of_judges_by_criterion(loaded: LoadedJudgement) -> Iterator[ResultLine]:
    """Yield each judge model's verdict per repeat and criterion of a checklist."""
    verdicts = verdicts_by_place(loaded.judgement.verdicts)
    checklist = checklist_from(loaded.judgement.checklist)
    ids = [criterion.id for criterion in checklist.criteria] if checklist else []
    for reply in loaded.replies:
        judge, repeat, order, about = place_of(reply)
        for number in [about] if about else range(1, len(ids) + 1):
            verdict = verdicts.get((judge, repeat, order, number)) or {}
            yield (
                _subject(loaded)
                | _reply_result(verdict, reply)
                | {"criterion": ids[number - 1], "judge": loaded.metric.judge_name(judge)}
                | {"repeat": repeat + 1 if repeat else None}
                | (_reply(reply) if about or number == 1 else {})
                | {"seconds": reply.seconds if about or number == 1 else None}
            )


def _author(metric: MetricDefinition) -> str:
    if metric.scored_by_script and (metric.rules or not metric.judges):
        return "script"
    if metric.rules:
        return "rules"
    return "combined" if metric.scored_by_script or metric.votes > 1 else metric.voters[0].name


def _combined(loaded: LoadedJudgement) -> ResultLine:
    judgement = loaded.judgement
    return (
        _subject(loaded)
        | _result_in_force(judgement)
        | {"judge": "combined", "at": _moment(judgement.finished_at), "seconds": judgement.seconds}
    )


def _of_judges(loaded: LoadedJudgement) -> Iterator[ResultLine]:
    """Yield each judge model's verdict per repeat. If asked in both orders: both verdicts on two candidates, or the
    combined one on an answer and its reference."""
    verdicts, of_pair = verdicts_by_place(loaded.judgement.verdicts), loaded.metric.compares_candidates
    for reply in loaded.replies:
        if (reply.swapped and not of_pair) or reply.judge not in loaded.metric.last_row:
            continue
        judge, repeat, _order, criterion = place_of(reply)
        combined = None if of_pair else verdicts.get((judge, repeat, "both", criterion))
        verdict = combined or verdicts.get(place_of(reply)) or {}
        yield (
            _subject(loaded)
            | _reply_result(verdict, reply)
            | {"judge": loaded.metric.judge_name(judge), "repeat": repeat + 1 if repeat else None}
            | _reply(reply)
            | {"shown_first": 1 + reply.swapped if of_pair else None, "seconds": reply.seconds}
        )


def _reply_result(verdict: ResultLine, reply: JudgeReply) -> ResultLine:
    if verdict.get("value") is not None:
        return {"value": verdict["value"]}
    if reply.error:
        return {"value": None, "state": ERROR, "reason": why(reply.error, reply.detail)}
    return {"value": None, "state": UNPARSED, "reason": verdict.get("reason") or None}
