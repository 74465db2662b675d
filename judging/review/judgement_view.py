"""A judgement for display: converts stored texts to the values that its templates need."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.safestring import SafeString
from django.utils.text import Truncator

from datasets.core.kinds import COMPARISON
from datasets.core.variables import earlier_of, reference_in, row_and_response
from datasets.messages import translated
from judging.core.checklists import Checklist, checklist_from, entries_by_criterion, reasoning_in
from judging.core.metric_definition import MetricDefinition, Script
from judging.core.pairs import ORDERS_DISAGREE
from judging.core.reading.forms import FORMS
from judging.core.reading.thinking import without_thinking
from judging.core.replies import make_parser
from judging.core.rules.program import Reason
from judging.core.scripts import ScriptKind
from judging.core.values import verdict_code
from judging.filters.criteria import MET, NOT_MET, OPEN
from judging.markdown import marked_as_written
from judging.marked_text import Place
from judging.messages import reason_sentence, verdict_text
from judging.records import json_text
from judging.records.models import Generation, Judgement, JudgeReply
from judging.records.stored_judgement import (
    data_of,
    judge_name,
    place_of,
    reply_record,
    rule_lines,
    script_record,
    script_records,
    verdicts_by_place,
)
from judging.review.content import Part, ToolCall, Turn, calls_of, images_in, pretty, turns_of, with_parts
from judging.rule_messages import reason_sentence as rule_sentence

MOST_SAID = 600  # characters shown of what a reply says of a criterion
_OF_EVERY_ROW = ("messages", "ref_answer", "question", "gt", "history")
_OF_EVERY_RESPONSE = ("content", "reasoning_content", "tool_calls")


@dataclass(frozen=True, slots=True)
class LoggedCall:
    """One HTTP attempt. `reply` and why it is `unread`, if the judge was asked again."""

    status: int | None
    seconds: float
    waited: float
    started: float | None
    error: str
    sentence: str
    reply: str = ""
    unread: str = ""


@dataclass(frozen=True, slots=True)
class JudgeRequest:
    """One request to a judge model and its reply."""

    reply: JudgeReply
    name: str
    repeat: int
    messages: list[dict[str, Any]]
    params_json: str
    request_json: str
    extra_json: str
    calls: list[LoggedCall]
    value: Any
    reason: str
    error: str
    answered: bool
    swapped: bool
    tool_calls: list[ToolCall]
    form: str
    marks: tuple[Place, ...]
    compares: bool = False  # with the reference: its number stands for a verdict
    criterion: str = ""
    is_read: bool = True  # else it is for the steps that follow

    @property
    def words_read(self) -> str:
        """The words of the reply that its verdict was read from."""
        return "".join((self.reply.content or "")[slice(*place)] for place in self.marks) if self.form else ""

    @property
    def marked_reply(self) -> SafeString:
        """The reply as written, with marks."""
        return marked_as_written(self.reply.content or "", self.marks)

    @property
    def shown(self) -> str:
        """The parsed value as text, or the verdict that it stands for; '' if there is none."""
        return (self.compares and verdict_code(self.value)) or verdict_text(self.value)


@dataclass(frozen=True, slots=True)
class AnswerTry:
    """One attempt at the answer, if the run generated it."""

    generation: Generation
    request_json: str
    calls: list[LoggedCall]
    error: str


@dataclass(frozen=True, slots=True)
class Both:
    """The combined verdict of a comparison in both orders; `shown` is '' if the two disagree (`unsettled`) or if one of
    them could not be parsed."""

    name: str
    shown: str
    flip: bool
    unsettled: bool


@dataclass(frozen=True, slots=True)
class ScriptView:
    """What a script of the metric did to this response."""

    kind: ScriptKind
    source: str
    ran: bool
    result_json: str
    changed: dict[str, str]
    printed: str
    error: str
    milliseconds: float | None


@dataclass(frozen=True, slots=True)
class StepView:
    """A step of the metric: a script, or judge models in a row (a rule program's lines) with their requests."""

    script: ScriptView | None
    requests: list[JudgeRequest]


@dataclass(frozen=True, slots=True)
class RuleLine:
    """The result of one line of a rule program for one field; `shown` is '' without a score, `answer` is the field's
    value as JSON text."""

    line: int
    field: str
    function: str
    shown: str
    reason: str
    answer: str


@dataclass(frozen=True, slots=True)
class CriterionLine:
    """A criterion of a checklist: `outcome` is met, not_met or open; `why`: what the judges said of it, or why it is
    open."""

    text: str
    points: str
    tags: tuple[str, ...]
    outcome: str
    why: str


@dataclass(frozen=True, slots=True)
class JudgementView:
    """The row, the answer, and all requests about it."""

    messages: list[dict[str, Any]]
    turns: list[Turn]
    reference: str
    fields_json: str
    images: list[tuple[str, Part]]
    answer: str
    reasoning: str
    tool_calls: list[ToolCall]
    answer_fields_json: str
    requests: list[JudgeRequest]
    both: list[Both]
    steps: list[StepView]
    scored_by_script: bool
    why: str
    rules: list[RuleLine]
    rules_failure: str
    tries: list[AnswerTry]
    criteria: list[CriterionLine]

    @property
    def has_scripts(self) -> bool:
        return any(step.script for step in self.steps)

    @property
    def tokens(self) -> int:
        """Input and output tokens of all calls to judges."""
        return sum(
            (request.reply.prompt_tokens or 0) + (request.reply.completion_tokens or 0)
            for request in self.requests
        )


def judgement_view(
    judgement: Judgement,
    replies: list[JudgeReply],
    metric: MetricDefinition,
    form: str,
    tries: Sequence[Generation] = (),
) -> JudgementView:
    """Convert one judgement for its page; messages are in the reader's language."""
    data, response = row_and_response(data_of(judgement.row.raw, form), judgement.response.raw)
    verdicts, rules = verdicts_by_place(judgement.verdicts), _rules(judgement.rules)
    checklist = checklist_from(judgement.checklist)
    requested_rules = _rules(judgement.replies_from.rules) if judgement.replies_from else rules
    earlier = len(earlier_of(response) or [])
    requests = [
        _judge_request(
            reply,
            metric,
            verdicts.get(place_of(reply), {}),
            _judge_name(judgement, reply, metric, requested_rules),
            _criterion_text(checklist, reply.criterion),
        )
        for reply in replies
    ]
    return JudgementView(
        messages=data["messages"],
        turns=turns_of(with_parts(data["messages"], judgement.row.raw, earlier)),
        reference=_text(reference_in(data)),
        fields_json=_others(data, _OF_EVERY_ROW),
        images=images_in(data),
        answer=response["content"],
        reasoning=response["reasoning_content"] or "",
        tool_calls=calls_of(response["tool_calls"]),
        answer_fields_json=_others(
            response,
            _OF_EVERY_RESPONSE if isinstance(response["tool_calls"], list | None) else _OF_EVERY_RESPONSE[:2],
        ),
        requests=requests,
        both=[
            Both(
                metric.judges[verdict["judge"]].name,
                verdict_code(verdict["value"]) or verdict_text(verdict["value"]),
                verdict["flip"],
                verdict["reason"] == ORDERS_DISAGREE,
            )
            for (_, _, order, _), verdict in verdicts.items()
            if order == "both"
        ],
        steps=_steps(metric, _scripts(metric, judgement.scripts), requests),
        scored_by_script=metric.scored_by_script,
        why=reason_sentence(judgement.reason, judgement.detail, "rules" if metric.rules else "run")
        if judgement.reason
        else "",
        rules=rules,
        rules_failure=_rules_failure(judgement.rules),
        tries=[_try(generation) for generation in tries],
        criteria=criterion_lines(checklist, replies) if checklist else [],
    )


def criterion_lines(checklist: Checklist, replies: Sequence[JudgeReply]) -> list[CriterionLine]:
    """Each criterion with what the replies say of it."""
    return [
        CriterionLine(
            criterion.text,
            verdict_text(criterion.points),
            criterion.tags,
            OPEN if criterion.met is None else MET if criterion.met else NOT_MET,
            "\n\n".join(filter(None, [_why_open(criterion.reason), *_said_of(number, replies)])),
        )
        for number, criterion in enumerate(checklist.criteria, 1)
    ]


def _why_open(reason: str) -> str:
    return reason_sentence(reason) if reason else ""


def _said_of(number: int, replies: Sequence[JudgeReply]) -> Iterator[str]:
    """What each reply says of a criterion: all of it, or its reasoning in a reply about all at once."""
    for reply in replies:
        content = without_thinking(reply.content or "").strip()
        if reply.criterion == number:
            yield Truncator(content).chars(MOST_SAID)
        elif not reply.criterion:
            for entry in entries_by_criterion(content).get(str(number), []):
                yield Truncator(reasoning_in(entry)).chars(MOST_SAID)


def _try(generation: Generation) -> AnswerTry:
    request = json_text.loads(generation.request) or {}
    return AnswerTry(
        generation,
        pretty(request),
        [_call(call) for call in json_text.loads(generation.calls) or []],
        reason_sentence(generation.error, generation.detail) if generation.error else "",
    )


def _rules(text: str) -> list[RuleLine]:
    return [
        RuleLine(
            line["line"],
            line["field"],
            line["function"],
            verdict_text(line["score"]),
            rule_sentence(Reason(line["reason"], line["params"])),
            line["answer"] or "",
        )
        for line in rule_lines(text)
    ]


def _rules_failure(text: str) -> str:
    """Why the answer does not have the format that the metric's rule program requires."""
    failure = (json_text.loads(text) or {}).get("failure")
    return rule_sentence(Reason(failure["reason"], failure["params"])) if failure else ""


def _judge_request(
    reply: JudgeReply, metric: MetricDefinition, verdict: dict[str, Any], name: str, criterion: str
) -> JudgeRequest:
    request = json_text.loads(reply.request) or {}
    params = {name: value for name, value in request.items() if name != "messages"}
    extra = json_text.loads(reply.extra) or {}
    return JudgeRequest(
        reply=reply,
        name=name,
        repeat=0 if metric.rules else reply.repeat,
        messages=request.get("messages", []),
        params_json=pretty(params),
        request_json=pretty(request),
        extra_json=_others(extra, ("tool_calls",)),
        calls=[_call(call) for call in json_text.loads(reply.calls) or []],
        value=verdict.get("value"),
        reason=reason_sentence(verdict["reason"], verdict.get("detail", "")) if verdict.get("reason") else "",
        error=reason_sentence(reply.error, reply.detail) if reply.error else "",
        answered=reply_record(reply) is not None,
        swapped=reply.swapped,
        tool_calls=calls_of(extra.get("tool_calls")),
        compares=_compares_reference(metric, reply),
        criterion=criterion,
        is_read=reply.judge >= len(metric.judges) or reply.judge in metric.last_row,
        form=translated(FORMS[form].name) if (form := verdict.get("form")) in FORMS else "",
        marks=_marks(reply, metric, verdict, extra.get("finish_reason")),
    )


def _marks(
    reply: JudgeReply, metric: MetricDefinition, verdict: dict[str, Any], finish_reason: str | None
) -> tuple[Place, ...]:
    """The words that the verdict was read from; without a value, everything that states one."""
    place = verdict.get("place")
    if not place or reply.content is None:
        return ()
    if verdict.get("value") is not None or metric.rules or reply.judge >= len(metric.judges):
        return ((place[0], place[1]),)
    judge = metric.judges[reply.judge]
    parsed = make_parser(judge.parse, metric.reading_of(judge)).read(reply.content, finish_reason)
    return parsed.statements


def _compares_reference(metric: MetricDefinition, reply: JudgeReply) -> bool:
    """Whether the reply compares the answer with the reference; imported metrics have no judges."""
    judges = () if metric.rules else metric.judges[reply.judge : reply.judge + 1]
    return any(metric.reading_of(judge).kind == COMPARISON for judge in judges)


def _criterion_text(checklist: Checklist | None, number: int) -> str:
    criteria = checklist.criteria if checklist else ()
    return criteria[number - 1].text if 0 < number <= len(criteria) else ""


def _judge_name(
    judgement: Judgement, reply: JudgeReply, metric: MetricDefinition, rules: list[RuleLine]
) -> str:
    """The judge's name; for a rule program's question also the field."""
    name = judge_name(judgement, reply, metric)
    if not metric.rules or reply.repeat >= len(rules):
        return name
    return f"{name} · {rules[reply.repeat].field}"


def _call(call: dict[str, Any]) -> LoggedCall:
    code = call.get("error_code", "")
    return LoggedCall(
        status=call.get("status"),
        seconds=call.get("seconds", 0.0),
        waited=call.get("waited", 0.0),
        started=call.get("started_unix"),
        error=code,
        sentence=reason_sentence(code, call.get("message", "")) if code else "",
        reply=(call.get("reply") or {}).get("content") or "",
        unread=reason_sentence(call["unread"]) if call.get("unread") else "",
    )


def _steps(
    metric: MetricDefinition, scripts: list[ScriptView], requests: list[JudgeRequest]
) -> list[StepView]:
    return [
        StepView(scripts[stage], [])
        if isinstance(stage, int)
        else StepView(None, [request for request in requests if metric.rules or request.reply.judge in stage])
        for stage in metric.stages
    ]


def _scripts(metric: MetricDefinition, stored: str) -> list[ScriptView]:
    records = script_records(stored)
    return [
        _script(script, records[number] if number < len(records) else None)
        for number, script in enumerate(metric.scripts)
    ]


def _script(script: Script, record: dict[str, Any] | None) -> ScriptView:
    seen = record or script_record({})
    changed = {side: pretty(fields) for side, fields in seen["changed"].items() if fields}
    result = "" if seen["error"] else pretty(seen["result"])
    code, _colon, detail = (seen["error"] or "").partition(": ")
    error = reason_sentence(code, detail) if code else ""
    milliseconds = None if seen["seconds"] is None else seen["seconds"] * 1000
    return ScriptView(
        script.kind, script.source, record is not None, result, changed, seen["printed"], error, milliseconds
    )


def _others(fields: dict[str, Any], without: tuple[str, ...]) -> str:
    left = {name: value for name, value in fields.items() if name not in without}
    return pretty(left) if left else ""


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else pretty(value)
