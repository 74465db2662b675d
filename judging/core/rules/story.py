"""A rule metric's part of one response's story: plan → Python blocks → the judge model's lines → conclude.

Pure but for two callables: one runs a Python block in the jail, one asks the metric's judge model.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from datasets.core.variables import reference_in
from judging.core.results import Item, JudgeCall, Question, Ruled, RuledLine, Verdict
from judging.core.rules.asking import read_reply
from judging.core.rules.conclude import NO_JUDGE, conclude, needs_answers
from judging.core.rules.plan import ANSWER_LACKS, Call, Evaluation, Line, plan
from judging.core.rules.program import Program
from judging.core.rules.scoring import Reason, Scored
from judging.core.rules.values import json_text

Run = Callable[[Call], Awaitable[Scored | Reason]]
# One reply a question, in order; None where what was said before is read again, and this was not asked then.
Ask = Callable[[Sequence[Question]], Awaitable[Sequence[JudgeCall | None]]]
Found = dict[int, Scored | Reason]

JUDGE = 0  # a rule metric has one judge model; a question's `repeat` is the index of its line
MOST_VALUE = 4000  # characters of a field's value that are kept beside its score


def evaluate(program: Program, item: Item) -> Evaluation:
    """The program on an item's answer, against its row's reference."""
    return plan(program, item.response.get("content") or "", reference_for(item))


def reference_for(item: Item) -> Any:
    """What an item is compared with, its numbers as they are written where that is known."""
    return reference_in(item.exact or item.data)


async def rule_on(program: Program, item: Item, run: Run, ask: Ask | None) -> Ruled:
    """Score one item. Python blocks come first: where one fails, the judge model could not save the item.

    `ask` is None where the metric has no judge model.
    """
    evaluation = evaluate(program, item)
    if not needs_answers(evaluation):
        return ruled(evaluation)
    scored = await asyncio.gather(*(run(call) for call in evaluation.calls))
    found: Found = {call.line: one for call, one in zip(evaluation.calls, scored, strict=True)}
    if not evaluation.questions or any(isinstance(one, Reason) for one in scored):
        return ruled(evaluation, found)
    if ask is None:
        return ruled(evaluation, found | {one.line: Reason(NO_JUDGE) for one in evaluation.questions})
    replies = await ask([Question(JUDGE, one.line, one.prompt) for one in evaluation.questions])
    pairs = zip(evaluation.questions, replies, strict=True)
    asked = [(question.line, one, read_asked(one)) for question, one in pairs if one is not None]
    heard: Found = {line: said for line, _one, said in asked}
    verdicts = tuple(_verdict(one, said) for _line, one, said in asked if one.failure is None)
    return ruled(evaluation, found | heard, tuple(one for _line, one, _said in asked), verdicts)


def read_asked(asked: JudgeCall) -> Scored | Reason:
    """What the judge model said of a line, or why it said nothing."""
    if asked.failure is not None:
        return Reason(asked.failure.code, {"detail": asked.failure.detail})
    reply = asked.reply or {}
    return read_reply(reply.get("content") or "", reply.get("finish_reason"))


def _verdict(asked: JudgeCall, found: Scored | Reason) -> Verdict:
    if isinstance(found, Scored):
        return Verdict(asked.judge, asked.repeat, found.score)
    return Verdict(asked.judge, asked.repeat, None, found.code)


def ruled(
    evaluation: Evaluation,
    found: Found | None = None,
    asked: tuple[JudgeCall, ...] = (),
    verdicts: tuple[Verdict, ...] = (),
) -> Ruled:
    """The evaluation with what was found for its open lines, as a story keeps it."""
    result = conclude(evaluation, found or {})
    failure = result.failure
    return Ruled(
        result.outcome(),
        tuple(map(_ruled_line, result.lines)),
        {"reason": failure.code, "params": failure.params} if failure else None,
        asked,
        verdicts,
    )


def _ruled_line(line: Line) -> RuledLine:
    answer = None if line.reason.code == ANSWER_LACKS else json_text(line.answer)[:MOST_VALUE]
    rule, reason = line.rule, line.reason
    return RuledLine(rule.place.line, line.score, line.name, rule.word, reason.code, reason.params, answer)
