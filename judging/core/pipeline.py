"""One response's whole story: preprocess → judge models in order → postprocess or parsing → an outcome.

Pure: what touches processes and networks comes in as `Tools`. What a story is made of stands in story.py and is had
from here too.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from judging.core.replies import (
    combine_orders,
    is_flip,
    turned_back,
    why_unread,
    with_sides_swapped,
)
from judging.core.results import (
    FORMAT_FAILED,
    ORDER_FLIP,
    TRUNCATED,
    AskedJudge,
    Context,
    Failure,
    Heard,
    Item,
    JudgeModel,
    MetricDefinition,
    Order,
    ParserSpec,
    Question,
    Ruled,
    RuledLine,
    ScriptResult,
    Story,
    Tools,
    Verdict,
)
from judging.core.values import UNPARSED, Outcome, outcome_of_value
from judging.core.votes import QUORUM, conclude_votes

__all__ = [
    "FORMAT_FAILED",
    "ORDER_FLIP",
    "TRUNCATED",
    "AskedJudge",
    "Context",
    "Failure",
    "Heard",
    "Item",
    "JudgeModel",
    "MetricDefinition",
    "Order",
    "ParserSpec",
    "Question",
    "Ruled",
    "RuledLine",
    "ScriptResult",
    "Story",
    "Tools",
    "Verdict",
    "ask_judges",
    "combined",
    "conclude",
    "counted",
    "marks_of",
    "outcome_of_script",
    "questions_of",
    "read_verdict",
    "read_verdicts",
    "rounds",
    "story_by_rules",
    "swapped_context",
    "tell",
    "with_changes",
]


async def tell(item: Item, metric: MetricDefinition, tools: Tools, heard: Heard | None = None) -> Story:
    """Judge one response by one metric; with `heard`, by what its judges said before, asking nobody.

    Whatever goes wrong becomes the outcome's reason, never an exception.
    """
    began = time.perf_counter()
    context, before = Context(item), heard.preprocess if heard else None
    if metric.preprocess:
        before = before or await tools.preprocess(context)
        if before.failure:
            return Story(_failed(before.failure), preprocess=before)
        context = Context(with_changes(item, before.changed), before.result)
    if metric.rules:
        ruled = await tools.apply_rules(context, heard)
        context = replace(context, asked=ruled.asked)
        after = await tools.postprocess(context) if metric.postprocess else None
        flags = (*tools.flags(item), *marks_of(ruled.asked)) if ruled.asked else ()
        return story_by_rules(ruled, before, after, flags, time.perf_counter() - began)
    if heard is not None:
        context = replace(context, asked=heard.asked)
    elif metric.judges:
        context, failure = await ask_judges(metric, context, tools)
        if failure is not None:
            seconds = time.perf_counter() - began
            marks = marks_of(context.asked)
            return Story(_failed(failure), context.asked, preprocess=before, flags=marks, seconds=seconds)
    verdicts = await read_verdicts(context.asked, tools)
    after = await tools.postprocess(context) if metric.postprocess else None
    flipped = (ORDER_FLIP,) if any(one.flip for one in verdicts) else ()
    return Story(
        conclude(metric, before, context.asked, verdicts, after),
        context.asked,
        verdicts,
        before,
        after,
        (*tools.flags(item), *flipped, *marks_of(context.asked)),
        time.perf_counter() - began,
    )


def marks_of(asked: Sequence[AskedJudge]) -> tuple[str, ...]:
    """What is odd about the judges' replies themselves: whether one ended because its tokens did."""
    return (TRUNCATED,) if any(map(was_cut_off, asked)) else ()


def was_cut_off(asked: AskedJudge) -> bool:
    """Whether the reply ended because its tokens were used up."""
    return (asked.reply or {}).get("finish_reason") == "length"


def story_by_rules(
    ruled: Ruled,
    before: ScriptResult | None = None,
    after: ScriptResult | None = None,
    flags: tuple[str, ...] = (),
    seconds: float = 0.0,
) -> Story:
    """What a rule program said as a story; a script after it has the last word."""
    outcome = ruled.outcome if after is None else outcome_of_script(after)
    marks = (FORMAT_FAILED, *flags) if ruled.failure else flags
    return Story(outcome, ruled.asked, ruled.verdicts, before, after, marks, seconds, ruled)


def outcome_of_script(script: ScriptResult) -> Outcome:
    """What the metric's last script says."""
    return _failed(script.failure) if script.failure else outcome_of_value(script.result)


def _failed(failure: Failure) -> Outcome:
    return Outcome.error(failure.code, failure.detail)


async def ask_judges(
    metric: MetricDefinition, context: Context, tools: Tools
) -> tuple[Context, Failure | None]:
    """The context with all that was asked, in the order of judges, repeats and sides; or the first prompt's failure.

    The prompts of a round are made before any of it is asked, so that one that fails costs nothing.
    """
    for judges in rounds(await tools.builds_on_others() if len(metric.judges) > 1 else (False,)):
        questions: list[Question] = []
        for judge in judges:
            made = await questions_of(judge, metric.judges[judge], context, tools)
            if isinstance(made, Failure):
                return context, made
            questions += made
        asked = (*context.asked, *await tools.ask(questions))
        context = replace(context, asked=tuple(sorted(asked, key=lambda one: one.place)))
    return context, None


def rounds(builds_on_others: Sequence[bool]) -> list[list[int]]:
    """Judges in groups that are asked at the same time: one that builds on others comes after all before it."""
    found: list[list[int]] = []
    place: list[int] = []
    for judge, builds in enumerate(builds_on_others):
        place.append(1 + max(place, default=-1) if builds else 0)
        if place[-1] == len(found):
            found.append([])
        found[place[-1]].append(judge)
    return found


async def questions_of(
    number: int, judge: JudgeModel, context: Context, tools: Tools
) -> list[Question] | Failure:
    """Every question to one judge model: each repeat, and each in both orders if there is another order."""
    earlier = replace(context, asked=tuple(one for one in context.asked if one.judge < number))
    prompts: list[tuple[str, bool]] = []
    for swapped in (False, True) if judge.both_orders else (False,):
        seen = swapped_context(earlier) if swapped else earlier
        if seen is None:
            continue
        prompt = await tools.render(number, seen)
        if isinstance(prompt, Failure):
            return prompt
        prompts.append((prompt, swapped))
    return [
        Question(number, repeat, prompt, swapped)
        for repeat in range(judge.repeats)
        for prompt, swapped in prompts
    ]


def swapped_context(context: Context) -> Context | None:
    """What a comparison's template sees with the two sides exchanged; None without a reference or an answer."""
    sides = with_sides_swapped(context.item.data, context.item.response)
    return replace(context, item=Item(*sides)) if sides else None


async def read_verdicts(asked: tuple[AskedJudge, ...], tools: Tools) -> tuple[Verdict, ...]:
    """What each reply says, and after the two of one comparison what they come to."""
    found: list[Verdict] = []
    read = {one.place: await read_verdict(one, tools) for one in asked if one.failure is None}
    for one in asked:
        if one.place not in read:
            continue
        found.append(read[one.place])
        first = read.get((one.judge, one.repeat, False))
        if one.swapped and first is not None:
            found.append(combined(first, read[one.place]))
    return tuple(found)


async def read_verdict(asked: AskedJudge, tools: Tools) -> Verdict:
    """Read a reply's content, never its reasoning."""
    value, reason = await tools.read(asked.judge, (asked.reply or {}).get("content") or "")
    reason = why_unread(reason, (asked.reply or {}).get("finish_reason"))
    if asked.swapped:
        value = turned_back(value) if isinstance(value, int) else value
        return Verdict(asked.judge, asked.repeat, value, reason, "swapped")
    return Verdict(asked.judge, asked.repeat, value, reason)


def combined(first: Verdict, swapped: Verdict) -> Verdict:
    """Both orders as one. One that could not be read leaves none: half a comparison would show the position's pull."""
    if not (isinstance(first.value, int) and isinstance(swapped.value, int)):
        return Verdict(first.judge, first.repeat, None, first.reason or swapped.reason, "both")
    value = combine_orders(first.value, swapped.value)
    flip = is_flip(first.value, swapped.value)
    return Verdict(first.judge, first.repeat, value, order="both", flip=flip)


def counted(asked: tuple[AskedJudge, ...], verdicts: tuple[Verdict, ...]) -> list[Verdict]:
    """The verdicts that a score is made of: of what was asked in both orders only what both come to."""
    in_both = {(one.judge, one.repeat) for one in asked if one.swapped}
    return [one for one in verdicts if one.order == "both" or (one.judge, one.repeat) not in in_both]


def conclude(
    metric: MetricDefinition,
    before: ScriptResult | None,
    asked: tuple[AskedJudge, ...],
    verdicts: tuple[Verdict, ...],
    after: ScriptResult | None,
) -> Outcome:
    """The last script's result if it is the metric's end, else what the votes that could be read come to."""
    last_script = after or (before if not metric.judges else None)
    if last_script is not None:
        return outcome_of_script(last_script)
    offered = counted(asked, verdicts)
    read = [verdict.value for verdict in offered if verdict.value is not None]
    if read and len(read) >= metric.quorum:
        return conclude_votes(read, metric.jury)
    if read:
        return _below_quorum(metric, len(read), asked)
    if offered:
        return Outcome.unparsed(offered[-1].reason)
    return _failed(next((one.failure for one in reversed(asked) if one.failure), Failure("no_judge")))


def _below_quorum(metric: MetricDefinition, read: int, asked: tuple[AskedJudge, ...]) -> Outcome:
    """An error, to be retried, where judges failed; else unparsed."""
    failed = next((one.failure for one in asked if one.failure), None)
    told = f"{read} < {metric.quorum}"
    if failed:
        return Outcome.error(QUORUM, f"{told}; {failed.code}: {failed.detail}".rstrip(": "))
    return Outcome(UNPARSED, reason=QUORUM, detail=told)


def with_changes(item: Item, changed: dict[str, dict[str, Any]]) -> Item:
    """The item with the fields that preprocess added or changed, for this response only."""
    if not changed:
        return item
    data = changed.get("data", {})
    exact = None if item.exact is None else {"gt": item.data.get("gt"), **item.exact, **data}
    return Item({**item.data, **data}, {**item.response, **changed.get("response", {})}, exact)
