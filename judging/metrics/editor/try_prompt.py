"""“Try on this row”: sends the prompt to the judge model and streams the reply. Nothing is stored."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

from django.template.loader import render_to_string
from django.utils import translation
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from datasets.messages import translated
from evalsite.secrets import Undecryptable
from evalsite.templatetags.show import duration
from judging.core.checklists import entries_by_criterion, read_at_once, reasoning_in
from judging.core.judges.client import AskResult, Guard, RetryPolicy, ask_with_retries
from judging.core.judges.errors import JudgeError
from judging.core.judges.http_clients import open_client
from judging.core.judges.reply import Reply, Usage
from judging.core.judges.settings import JudgeSettings, Timeouts, build_request
from judging.core.metric_definition import JudgeModel, MetricDefinition
from judging.core.pairs import ORDERS_DISAGREE
from judging.core.pipeline import combine_replies
from judging.core.reading.forms import FORMS
from judging.core.reading.reader import why_unread
from judging.core.replies import Parsed, Parser, make_parser
from judging.core.results import JudgeCall, Verdict
from judging.core.sandbox.job import SandboxError
from judging.core.scripts import ScriptOutcome, run_preprocess
from judging.core.structured_output import structure_for
from judging.core.values import Value
from judging.endpoints.manual_calls import (
    Emit,
    FailedTry,
    ManualCall,
    StillWaiting,
    WaitingFor,
    Work,
)
from judging.endpoints.models import Endpoint
from judging.endpoints.settings import judge_settings, with_address
from judging.markdown import marked_as_written
from judging.messages import reason_sentence, verdict_text
from judging.metrics.editor.forms import MetricForms
from judging.metrics.editor.preview import PromptPreview, preview_prompt
from judging.metrics.editor.samples import Sample
from judging.metrics.editor.scripts import ScriptRun, value_run
from judging.sandboxes import preview_sandbox

TIMEOUTS = Timeouts(connect=5.0, first_byte=60.0, idle=30.0, whole=120.0)
POLICY = RetryPolicy(tries=2, longest_retry_after=10.0)
TOTAL_SECONDS = 150.0  # including waiting and retries
WAIT_SECONDS = 20.0  # for a free slot and the rate limit, behind runs
MILLION = 1_000_000

# Each try occupies a web thread until the reply is complete; leave enough for other requests.
tries = threading.BoundedSemaphore(2)


@dataclass(frozen=True, slots=True)
class Text:
    """A streamed piece of the reply. `kind`: content or reasoning."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class TryResult:
    """The result of a try: a reply with the parsed value, or an error code and detail."""

    request: dict[str, Any]
    ask_result: AskResult | None = None
    parsed: Parsed | None = None
    code: str = ""
    detail: str = ""
    swapped: TryResult | None = None  # of the same judge model, asked in the other order
    waited: float = 0.0  # seconds for a slot and the rate limit
    failed_tries: tuple[FailedTry, ...] = ()

    @property
    def reply(self) -> Reply | None:
        """The reply, also one that can't be used."""
        return (self.ask_result.reply_to_read or self.ask_result.reply) if self.ask_result else None

    @property
    def seconds(self) -> float:
        return sum(call.seconds + call.waited for call in self.ask_result.calls) if self.ask_result else 0.0


Event = Text | StillWaiting | WaitingFor | FailedTry | TryResult


@dataclass(frozen=True, slots=True)
class CriterionResult:
    """The result of one of several tries, about the criterion with this number from 1."""

    number: int
    result: TryResult


class CannotTry(Exception):
    """The prompt can't be sent; `result` has the reason."""

    def __init__(self, code: str, detail: str = "") -> None:
        super().__init__(code)
        self.result = TryResult({}, code=code, detail=detail)


@dataclass(frozen=True, slots=True)
class TriedCriterion:
    """What a reply says of a criterion: `outcome` is met, not_met or open, `why` the reply, or why it is open."""

    text: str
    outcome: str
    why: str


@dataclass(frozen=True, slots=True)
class TryView:
    """A result as shown on the page."""

    result: TryResult
    sample: Sample | None
    sentence: str
    cost: float | None = None  # None if the endpoint has no prices
    currency: str = ""
    about: str = ""  # the line of a rule program
    postprocess: ScriptRun | None = None  # on this reply
    lines: tuple[TriedCriterion, ...] = ()  # of a checklist, if the judge was asked about all criteria
    swapped: TryView | None = None  # the same in the other order
    definition: MetricDefinition | None = None  # None for a rule program

    @property
    def verdict(self) -> str:
        """What was read from the reply, for display; '' for nothing."""
        return self._shown(self.result.parsed.value if self.result.parsed else None)

    @property
    def both(self) -> Verdict | None:
        """The combined verdict of both orders; None if a call failed or only one order was asked."""
        first, swapped = self.result.parsed, self.swapped and self.swapped.result.parsed
        return combine_replies(first, swapped) if first and swapped else None

    @property
    def both_verdict(self) -> str:
        return self._shown(self.both.value if self.both else None)

    @property
    def is_unsettled(self) -> bool:
        return self.both is not None and self.both.reason == ORDERS_DISAGREE

    def _shown(self, value: Value | None) -> str:
        code = self.definition.verdict_of(value) if self.definition else ""
        return code or verdict_text(value)

    @property
    def retries(self) -> list[str]:
        """The failed calls, if there was more than the one that the sentence is about."""
        failed = self.result.failed_tries
        return (
            [failed_sentence(failed_try) for failed_try in failed]
            if len(failed) > 1 or not self.sentence
            else []
        )

    @property
    def form(self) -> str:
        """How the reply states its value."""
        form = self.result.parsed.form if self.result.parsed else ""
        return translated(FORMS[form].name) if form in FORMS else ""

    @property
    def marked_reply(self) -> SafeString:
        """The reply, the words that were read marked."""
        parsed, reply = self.result.parsed, self.result.reply
        return marked_as_written(reply.content if reply else "", parsed.marked if parsed else ())

    @property
    def request_json(self) -> str:
        return json.dumps(self.result.request, ensure_ascii=False, indent=2)


# --- sending the prompt ----------------------------------------------------------------------------------------


def settings_for(judge: JudgeModel) -> JudgeSettings:
    """The request settings for a judge model, as a run would freeze them. Raises CannotTry."""
    row = Endpoint.objects.filter(pk=judge.endpoint).first() if judge.endpoint else None
    if row is None and not judge.url:
        raise CannotTry("no_endpoint")
    if judge.api_key_env and not os.environ.get(judge.api_key_env):
        raise CannotTry("key_missing", judge.api_key_env)
    try:
        settings = judge_settings(with_address(judge, row) if row else judge, row)
        return replace(settings, timeouts=settings.timeouts.within(TIMEOUTS))
    except Undecryptable:
        raise CannotTry("key_unreadable") from None


def try_prompt(
    settings: JudgeSettings, metric: MetricDefinition, judge: JudgeModel, prompt: str
) -> Generator[Event]:
    """Yield the events of the call (manual_calls.py) and pieces of the reply, finally a TryResult.

    All calls together take no longer than the endpoint's total time-out. Closing the iterator ends the call.
    """
    structure = structure_for(metric, judge, settings.structured)
    request = (
        build_request(settings, structure.described(prompt), structure.parameters)
        if structure
        else build_request(settings, prompt)
    )
    if not tries.acquire(timeout=5):
        yield TryResult(request, code="busy_here")
        return
    try:
        total = min(TOTAL_SECONDS, settings.timeouts.whole)
        with ManualCall(judge, asking(settings, request), max_wait=WAIT_SECONDS, total=total) as call:
            yield from call.events()
            outcome: AskResult | TimeoutError | JudgeError
            try:
                outcome = call.result()
            except (JudgeError, TimeoutError) as error:
                outcome = error
        result = _result(request, outcome, metric, judge)
        yield replace(result, waited=call.waited, failed_tries=call.failed_tries)
    finally:
        tries.release()


def asking(settings: JudgeSettings, request: dict[str, Any]) -> Work[AskResult]:
    """A manual call's work: send the request, and again if that may help."""

    async def work(guard: Guard, emit: Emit) -> AskResult:
        async with open_client(settings) as client:
            return await ask_with_retries(
                client,
                settings,
                request,
                policy=POLICY,
                guard=guard,
                on_text=lambda kind, text: emit(Text(kind, text)),
            )

    return work


def _result(
    request: dict[str, Any],
    outcome: AskResult | JudgeError | TimeoutError,
    metric: MetricDefinition,
    judge: JudgeModel,
) -> TryResult:
    """The result of a call, with its reply parsed as in a run."""
    if isinstance(outcome, TimeoutError):
        return TryResult(request, code="timeout_whole")
    if isinstance(outcome, JudgeError):
        return TryResult(request, code=outcome.code, detail=outcome.message)
    reply = outcome.reply_to_read
    if reply is None:
        assert outcome.error is not None
        return TryResult(outcome.request, outcome, code=outcome.error.code, detail=outcome.error.message)
    if metric.at_once:
        return TryResult(outcome.request, outcome)
    parser = make_parser(judge.parse, metric.reading_of(judge))
    (parsed,) = read_replies(parser, [(reply.content, reply.finish_reason)])
    return TryResult(
        outcome.request,
        outcome,
        parsed,
        code=why_unread(parsed.reason, reply.finish_reason),
        detail=parsed.detail,
    )


def read_replies(parser: Parser, replies: Sequence[tuple[str, str | None]]) -> list[Parsed]:
    """Parse several replies, each with its finish reason. A user's regular expression runs in the sandbox."""
    if not parser.sandbox_script:
        return [parser.read(content, finish_reason) for content, finish_reason in replies]
    items: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({}, {"content": parser.readable(content)}) for content, _ in replies
    ]
    try:
        outcomes = run_preprocess(preview_sandbox(), parser.sandbox_script, items)
    except SandboxError:
        return [Parsed(None, "script_refused")] * len(items)
    return [_parsed(parser, outcome) for outcome in outcomes]


def _parsed(parser: Parser, outcome: ScriptOutcome) -> Parsed:
    if outcome.failure is not None:
        return Parsed(None, f"parser_{outcome.failure.code}")
    return parser.conclude(outcome.result if isinstance(outcome.result, str) else None)


# --- on the page -----------------------------------------------------------------------------------------------


def try_on(preview: PromptPreview, forms: MetricForms) -> Generator[Event]:
    """Send the previewed prompt to the selected judge model with the form's current parameters."""
    try:
        if preview.prompt is None or not preview.can_try:
            raise CannotTry("no_prompt")
        form = forms.judges[preview.judge]
        if not form.is_valid():
            raise CannotTry("no_endpoint" if "endpoint" in form.errors else "form_errors")
        judge = form.result(preview.definition.kind, preview.definition.gives)
        settings = settings_for(judge)
    except CannotTry as refusal:
        yield refusal.result
        return
    result = yield from _until_result(try_prompt(settings, preview.definition, judge, preview.prompt.text))
    other = preview.swapped_prompt() if result.parsed else None
    if other is not None:
        yield Text("content", "\n\n— {} —\n\n".format(_("Sides swapped")))
        swapped = yield from _until_result(try_prompt(settings, preview.definition, judge, other.text))
        result = replace(result, swapped=swapped)
    yield result


def _until_result(events: Generator[Event]) -> Generator[Event, None, TryResult]:
    """Pass on the events of one call, and return its result."""
    with closing(events):
        for event in events:
            if isinstance(event, TryResult):
                return event
            yield event
    raise AssertionError("a try ends with its result")


def try_on_each(preview: PromptPreview, forms: MetricForms) -> Generator[Event | CriterionResult]:
    """Try the prompts of all criteria of the sample row, one after another, until one can't be sent."""
    assert preview.sample is not None
    assert preview.prompt is not None
    item = preview.sample.item_for(preview.definition)
    for number in range(1, len(preview.prompt.criteria) + 1):
        prompt = preview_prompt(preview.definition, preview.judge, item, criterion=number)
        for event in try_on(replace(preview, prompt=prompt), forms):
            if not isinstance(event, TryResult):
                yield event
                continue
            yield CriterionResult(number, event)
            if event.ask_result is None:
                return


def view_of_each(preview: PromptPreview, results: Sequence[TryResult]) -> TryView:
    """The results of tries about the first criteria of the row, as one: their verdicts, and what they cost together."""
    criteria = preview.prompt.criteria if preview.prompt else ()
    lines = tuple(_tried_criterion(text, result) for text, result in zip(criteria, results, strict=False))
    endpoint = preview.definition.judges[preview.judge].endpoint
    costs = [cost_of(result, endpoint) for result in results]
    known = [cost for cost, _currency in costs if cost is not None]
    currency = next((currency for _cost, currency in costs if currency), "")
    whole = replace(results[-1], parsed=None, ask_result=None, request={})
    sentence = reason_sentence(whole.code, whole.detail, "prompt") if results[-1].ask_result is None else ""
    return TryView(whole, preview.sample, sentence, sum(known) if known else None, currency, lines=lines)


def _tried_criterion(text: str, result: TryResult) -> TriedCriterion:
    value = result.parsed.value if result.parsed else None
    said = result.reply.content if result.reply else ""
    why = reason_sentence(result.code, result.detail, "prompt") if result.code else said
    return TriedCriterion(text, _outcome(value), why)


def _outcome(value: object) -> str:
    return {True: "met", False: "not_met"}.get(value, "open") if isinstance(value, bool) else "open"


def _lines_at_once(preview: PromptPreview, reply: Reply) -> tuple[TriedCriterion, ...]:
    """What one reply says of each criterion."""
    criteria = preview.prompt.criteria if preview.prompt else ()
    content = {"content": reply.content, "finish_reason": reply.finish_reason}
    verdicts = read_at_once(JudgeCall(preview.judge, 0, {}, content, None, []), len(criteria))
    entries = entries_by_criterion(reply.content)
    return tuple(
        TriedCriterion(
            text,
            _outcome(verdict.value),
            reason_sentence(verdict.reason, verdict.detail)
            if verdict.reason
            else " ".join(reasoning_in(entry) for entry in entries.get(str(number), ())),
        )
        for number, (text, verdict) in enumerate(zip(criteria, verdicts, strict=True), 1)
    )


def try_view(preview: PromptPreview, result: TryResult) -> TryView:
    """The result as shown; a postprocess runs once, on the replies of both orders."""
    view = _view(preview, result)
    reply, swapped = result.reply, result.swapped and result.swapped.reply
    return replace(
        view,
        swapped=_view(preview, result.swapped) if result.swapped else None,
        postprocess=value_run(
            preview.definition, preview.sample, reply.content, swapped.content if swapped else None
        )
        if reply
        else None,
    )


def _view(preview: PromptPreview, result: TryResult) -> TryView:
    sentence = reason_sentence(result.code, result.detail, "prompt") if result.code else ""
    judges = preview.definition.judges
    return TryView(
        result,
        preview.sample,
        sentence,
        *cost_of(result, judges[preview.judge].endpoint if judges else None),
        definition=preview.definition,
        lines=_lines_at_once(preview, result.reply) if result.reply and preview.definition.at_once else (),
    )


def cost_of(result: TryResult, endpoint_id: int | None) -> tuple[float | None, str]:
    """The cost of the reply by the endpoint's prices, and the currency; (None, '') if unknown."""
    if result.ask_result is None or result.ask_result.reply is None:
        return None, ""
    endpoint = Endpoint.objects.filter(pk=endpoint_id).first() if endpoint_id else None
    return price_of(result.ask_result.reply.usage, endpoint)


def price_of(usage: Usage, endpoint: Endpoint | None) -> tuple[float | None, str]:
    """The price of these tokens, and its currency; (None, '') if the endpoint has no prices."""
    if endpoint is None or endpoint.input_price is None or endpoint.output_price is None:
        return None, ""
    cost = usage.cost(float(endpoint.input_price), float(endpoint.output_price))
    return cost / MILLION, endpoint.currency


def tried_at_once(preview: PromptPreview, forms: MetricForms, *, every: bool = False) -> TryView:
    """The final result only, for pages without JavaScript. `every`: of all criteria of the row."""
    if every:
        tried = [event.result for event in try_on_each(preview, forms) if isinstance(event, CriterionResult)]
        return view_of_each(preview, tried)
    *_pieces, last = try_on(preview, forms)
    assert isinstance(last, TryResult)
    return try_view(preview, last)


def events(preview: PromptPreview, forms: MetricForms, *, every: bool = False) -> Iterator[bytes]:
    """Yield the try as JSON lines for static/js/preview.js: pieces of text, finally the result as HTML.

    `every`: the prompts of all criteria of the row, one after another, with one result at the end.
    Between them come empty lines: a browser that has stopped the try is noticed at the next line, which ends the call.
    """
    language, results = translation.get_language(), list[TryResult]()
    with closing((try_on_each if every else try_on)(preview, forms)) as tried:
        for event in tried:
            if isinstance(event, CriterionResult):
                results.append(event.result)
                with translation.override(language):
                    line = {"kind": "wait", "text": _criterion_sentence(preview, event)}
                yield json.dumps(line).encode() + b"\n"
                continue
            if isinstance(event, StillWaiting):
                yield b"\n"
                continue
            with translation.override(language):
                line = _line(preview, event)
            yield json.dumps(line).encode() + b"\n"
        if results:
            with translation.override(language):
                line = _end(view_of_each(preview, results))
            yield json.dumps(line).encode() + b"\n"


def _criterion_sentence(preview: PromptPreview, event: CriterionResult) -> str:
    count = len(preview.prompt.criteria) if preview.prompt else 0
    return _("%(number)s of %(count)s criteria done.") % {"number": event.number, "count": count}


def _end(view: TryView) -> dict[str, str]:
    return {"kind": "end", "html": render_to_string("metrics/_try_result.html", {"tried": view})}


def _line(preview: PromptPreview, event: Text | WaitingFor | FailedTry | TryResult) -> dict[str, str]:
    if isinstance(event, Text):
        return {"kind": event.kind, "text": event.text}
    if isinstance(event, WaitingFor):
        return {"kind": "wait", "text": waiting_sentence(event)}
    if isinstance(event, FailedTry):
        return {"kind": "wait", "text": failed_sentence(event)}
    return _end(try_view(preview, event))


def failed_sentence(failed: FailedTry) -> str:
    """What became of a request that may be sent again."""
    values = {"number": failed.number, "why": reason_sentence(failed.code, failed.message)}
    return _("Call %(number)s failed: %(why)s") % values


def waiting_sentence(waits: WaitingFor) -> str:
    """A message on what a try is waiting for."""
    if waits.code == "held_slots":
        return _("Waiting for a free slot: runs are using all of this endpoint's concurrent requests.")
    time = duration(waits.seconds)
    if waits.code == "held_closed":
        return _("Waiting %(time)s: the server asked to pause requests.") % {"time": time}
    return _("Waiting %(time)s for the endpoint's requests or tokens per minute.") % {"time": time}
