"""Drafts by a model of the user's choice: one request from a page, under the limits of *Try*, kept with its calls and
cost. People take from a draft what they like; nothing is taken by itself."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from evalsite.accounts.models import Project, User
from judging.core.judges.client import AskResult
from judging.core.judges.errors import JudgeError
from judging.core.judges.reply import Usage
from judging.core.judges.settings import build_request
from judging.core.metric_definition import JudgeModel
from judging.core.prompts import estimated_tokens
from judging.endpoints.manual_calls import ManualCall
from judging.endpoints.models import Endpoint
from judging.endpoints.selectors import endpoints_of
from judging.metrics.editor import try_prompt
from judging.metrics.models import DraftState, ModelDraft

REPLY_TOKENS = 1_000  # estimated


class CannotDraft(Exception):
    """The model is not asked. `code`: of the caller's own, or of try_prompt.CannotTry."""

    def __init__(self, code: str, detail: str = "") -> None:
        super().__init__(code)
        self.code, self.detail = code, detail


@dataclass(frozen=True, slots=True)
class Price:
    """What a request is about to cost: tokens sent, and money if the endpoint has prices."""

    endpoint: Endpoint
    tokens: int
    cost: float | None
    currency: str


def prices(prompt: str, project: Project) -> list[Price]:
    """The price of a draft by each endpoint of the project."""
    tokens = estimated_tokens(prompt)
    usage = Usage(tokens, REPLY_TOKENS)
    return [
        Price(endpoint, tokens, *try_prompt.price_of(usage, endpoint)) for endpoint in endpoints_of(project)
    ]


def request_draft(draft: ModelDraft, *, endpoint: Endpoint, prompt: str, user: User) -> bool:
    """Ask the model, and fill in the draft, which the caller saves; a failed call is kept, too.

    Returns whether there is a reply, of which the caller makes a draft. Raises CannotDraft.
    """
    judge = JudgeModel(name=endpoint.name, template="", endpoint=endpoint.pk)
    try:
        settings = try_prompt.settings_for(judge)
    except try_prompt.CannotTry as refusal:
        raise CannotDraft(refusal.result.code, refusal.result.detail) from None
    request = build_request(settings, prompt)
    if not try_prompt.tries.acquire(timeout=5):
        raise CannotDraft("busy_here")
    outcome: AskResult | TimeoutError | JudgeError
    try:
        total = min(try_prompt.TOTAL_SECONDS, settings.timeouts.whole)
        work = try_prompt.asking(settings, request)
        with ManualCall(judge, work, max_wait=try_prompt.WAIT_SECONDS, total=total) as call:
            for _event in call.events():
                pass
            try:
                outcome = call.result()
            except (JudgeError, TimeoutError) as error:
                outcome = error
            failed_calls = len(call.failed_tries)
    finally:
        try_prompt.tries.release()
    draft.model, draft.created_by, draft.state = endpoint.name, user, DraftState.FAILED
    _fill(draft, outcome, endpoint, failed_calls)
    return not draft.problem


def _fill(
    draft: ModelDraft, outcome: AskResult | TimeoutError | JudgeError, endpoint: Endpoint, failed_calls: int
) -> None:
    draft.calls = failed_calls
    if isinstance(outcome, TimeoutError):
        draft.problem = "timeout_whole"
        return
    if isinstance(outcome, JudgeError):
        draft.problem, draft.problem_detail = outcome.code, outcome.message
        return
    draft.calls = len(outcome.calls)
    reply = outcome.reply_to_read
    if reply is None:
        assert outcome.error is not None
        draft.problem, draft.problem_detail = outcome.error.code, outcome.error.message
        return
    draft.reply = reply.content
    draft.prompt_tokens, draft.completion_tokens = reply.usage.prompt_tokens, reply.usage.completion_tokens
    draft.cost, draft.currency = try_prompt.price_of(reply.usage, endpoint)


@dataclass(frozen=True, slots=True)
class Spent:
    """Calls and tokens of several drafts, and money by currency."""

    calls: int
    tokens: int
    costs: dict[str, float]


def spent_on(drafts: Iterable[ModelDraft]) -> Spent:
    """What these drafts cost together."""
    costs: dict[str, float] = defaultdict(float)
    calls = tokens = 0
    for draft in drafts:
        calls += draft.calls
        tokens += (draft.prompt_tokens or 0) + (draft.completion_tokens or 0)
        if draft.cost is not None:
            costs[draft.currency] += draft.cost
    return Spent(calls, tokens, dict(costs))
