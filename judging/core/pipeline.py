"""Judges one response: runs the metric's scripts and judge models in order, and concludes the outcome.

Does no I/O itself: processes and networks are reached only through `Effects` and `Ask` (results.py).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from statistics import mean, median, multimode
from typing import Any

import msgspec

from judging.core.judges.reply import REFUSED
from judging.core.metric_definition import JudgeModel, Jury, MetricDefinition, Script
from judging.core.reading.reader import why_unread
from judging.core.reading.reasons import NO_MAJORITY, REFUSAL
from judging.core.replies import VERDICTS, Parsed, combine_orders, is_flip, turned_back, with_sides_swapped
from judging.core.results import (
    FORMAT_FAILED,
    ORDER_FLIP,
    TRUNCATED,
    Ask,
    Context,
    Effects,
    Failure,
    JudgeCall,
    JudgedItem,
    JudgementResult,
    PreviousReplies,
    Question,
    Ruled,
    ScriptResult,
    Verdict,
)
from judging.core.values import SCORED, UNPARSED, Outcome, Value, outcome_of_value

QUORUM = "quorum"  # reason: fewer valid votes than the metric requires
MOST_DETAIL = 100  # characters of what a judge said instead of a verdict
OTHER_KIND = "other_kind"  # reason: the last script returned another type of value than the metric gives
TIED = "jury_tied"  # reason: no value has more votes than every other


async def judge_item(
    item: JudgedItem,
    metric: MetricDefinition,
    effects: Effects,
    ask: Ask | None,
    previous: PreviousReplies | None = None,
) -> JudgementResult:
    """Judge one response with one metric.

    With `previous`, the stored replies are used instead of new calls, and `ask` may be None. Errors become the
    outcome's reason; no exception is raised for them.
    """
    started = time.perf_counter()
    context = Context(item)
    verdicts: tuple[Verdict, ...] = ()
    ruled: Ruled | None = None
    failure: Failure | None = None
    for stage in metric.stages:
        if isinstance(stage, int):
            context, failure = await run_script(stage, metric, context, effects, previous)
        elif metric.rules:
            ruled = await effects.apply_rules(context.item, ask, previous)
            context, verdicts = replace(context, calls=ruled.calls), ruled.verdicts
        else:
            context, failure = await ask_judges(stage, metric, context, effects, ask, previous)
            if failure is None and stage.stop == len(metric.judges):
                verdicts = await read_verdicts(last_calls(metric, context.calls), effects)
        if failure is not None:
            break
    outcome = _failed(failure) if failure else conclude(metric, context, verdicts, ruled)
    outcome = outcome_of_kind(metric, outcome)
    flags = (*effects.flags(item), *flags_of(context.calls, verdicts)) if context.calls else ()
    if ruled is not None:
        flags = (*flags_of_rules(ruled), *flags)
    seconds = time.perf_counter() - started
    return JudgementResult(outcome, context.calls, verdicts, context.scripts, flags, seconds, ruled)


def result_by_rules(ruled: Ruled) -> JudgementResult:
    """The result of a metric that is a rule program without scripts and judges."""
    return JudgementResult(ruled.outcome, flags=flags_of_rules(ruled), rules=ruled)


def flags_of_rules(ruled: Ruled) -> tuple[str, ...]:
    """The flag of an answer without the format that the rule program requires."""
    return (FORMAT_FAILED,) if ruled.failure else ()


async def run_script(
    number: int,
    metric: MetricDefinition,
    context: Context,
    effects: Effects,
    previous: PreviousReplies | None = None,
) -> tuple[Context, Failure | None]:
    """Run a script and return the context with its result and changes, and why it failed, or None.

    With `previous`, the stored result is used if judges follow, because their replies are based on it.
    """
    script = metric.scripts[number]
    if previous and script.after < metric.judging_steps and number < len(previous.scripts):
        result = previous.scripts[number]
    else:
        result = await effects.scripts[number](context)
    return with_result(context, script, result), result.failure


def with_result(context: Context, script: Script, result: ScriptResult) -> Context:
    """The context after a script, with its result and changes."""
    return Context(
        with_changes(context.item, result.changed),
        result.result if script.kind == "preprocess" else context.preprocess_result,
        context.calls,
        (*context.scripts, result),
    )


def flags_of(calls: Sequence[JudgeCall], verdicts: Sequence[Verdict] = ()) -> tuple[str, ...]:
    """Flags about the judges' replies: whether the winner changed with the order, and whether any reply was cut off by
    its token limit."""
    cut = any((call.reply or {}).get("finish_reason") == "length" for call in calls)
    flipped = any(verdict.flip for verdict in verdicts)
    return (*((ORDER_FLIP,) if flipped else ()), *((TRUNCATED,) if cut else ()))


def outcome_of_kind(metric: MetricDefinition, outcome: Outcome) -> Outcome:
    """The outcome, or an error if its value is not of the kind that the metric says it gives."""
    value = outcome.value
    if not metric.gives or value is None:
        return outcome
    if metric.compares_reference:
        value = VERDICTS.get(value, value) if isinstance(value, str) else value
        outcome = msgspec.structs.replace(outcome, value=value)
    if metric.fits(value):
        return outcome
    kind = f"{metric.gives} ({', '.join(metric.label_names)})" if metric.labels else metric.gives
    returned = f"{type(value).__name__} {value!r:.100}"
    return Outcome.error(OTHER_KIND, f"the metric gives {kind}, the script returned {returned}")


def _failed(failure: Failure) -> Outcome:
    return Outcome.error(failure.code, failure.detail)


async def ask_judges(
    row: range,
    metric: MetricDefinition,
    context: Context,
    effects: Effects,
    ask: Ask | None,
    previous: PreviousReplies | None = None,
) -> tuple[Context, Failure | None]:
    """Call the judges in a row and return the context with all calls so far, ordered by judge, repeat and side.

    The second value is the failure of a prompt that could not be rendered, or None. A round's prompts are all rendered
    before its first call, so a prompt that fails to render costs nothing. With `previous`, nothing is asked.
    """
    if previous is not None:
        stored = tuple(call for call in previous.calls if call.judge in row)
        return replace(context, calls=(*context.calls, *stored)), None
    assert ask is not None
    builds = (await effects.builds_on_others())[row.start : row.stop] if len(row) > 1 else (False,)
    for judges in rounds(builds):
        questions: list[Question] = []
        for judge in judges:
            number = row[judge]
            prepared = await questions_of(number, metric.judges[number], context, effects)
            if isinstance(prepared, Failure):
                return context, prepared
            questions += prepared
        calls = (*context.calls, *await ask(questions))
        context = replace(context, calls=tuple(sorted(calls, key=lambda call: call.place)))
    return context, None


def rounds(builds_on_others: Sequence[bool]) -> list[list[int]]:
    """Group judges into rounds of parallel calls; a judge that uses earlier replies waits for all judges before it."""
    grouped: list[list[int]] = []
    place: list[int] = []
    for judge, builds in enumerate(builds_on_others):
        place.append(1 + max(place, default=-1) if builds else 0)
        if place[-1] == len(grouped):
            grouped.append([])
        grouped[place[-1]].append(judge)
    return grouped


async def questions_of(
    number: int, judge: JudgeModel, context: Context, effects: Effects
) -> list[Question] | Failure:
    """All questions to one judge model: one per repeat and order.

    The swapped order is included if the judge compares in both orders and the item has a reference and an answer.
    """
    earlier = replace(context, calls=tuple(call for call in context.calls if call.judge < number))
    prompts: list[tuple[str, bool]] = []
    for swapped in (False, True) if judge.both_orders else (False,):
        seen = swapped_context(earlier) if swapped else earlier
        if seen is None:
            continue
        prompt = await effects.prompts[number](seen)
        if isinstance(prompt, Failure):
            return prompt
        prompts.append((prompt, swapped))
    return [
        Question(number, repeat, prompt, swapped)
        for repeat in range(judge.repeats)
        for prompt, swapped in prompts
    ]


def swapped_context(context: Context) -> Context | None:
    """The template data of a comparison with the sides swapped; None without a reference or an answer."""
    sides = with_sides_swapped(context.item.data, context.item.response)
    return replace(context, item=JudgedItem(*sides)) if sides else None


async def read_verdicts(calls: tuple[JudgeCall, ...], effects: Effects) -> tuple[Verdict, ...]:
    """Parse a verdict from each reply's content (not its reasoning); both orders also give a combined verdict."""
    verdicts: list[Verdict] = []
    first: dict[tuple[int, int], Verdict] = {}
    for call in sorted(calls, key=lambda call: call.place):
        if call.failure is not None:
            continue
        place, reply = (call.judge, call.repeat), call.reply or {}
        finish_reason = reply.get("finish_reason")
        content = reply.get("content") or ""
        if finish_reason in REFUSED:
            parsed = Parsed(None, REFUSAL, detail=content.strip()[:MOST_DETAIL])
        else:
            parsed = await effects.read(call.judge, content, finish_reason)
        verdict = _verdict(call, parsed, why_unread(parsed.reason, finish_reason))
        verdicts.append(verdict)
        if not call.swapped:
            first[place] = verdict
        elif place in first:
            verdicts.append(combine_verdicts(first[place], verdicts[-1]))
    return tuple(verdicts)


def _verdict(call: JudgeCall, parsed: Parsed, reason: str) -> Verdict:
    value = turned_back(parsed.value) if call.swapped and isinstance(parsed.value, int) else parsed.value
    return Verdict(
        call.judge,
        call.repeat,
        value,
        reason,
        "swapped" if call.swapped else "first",
        form=parsed.form,
        place=parsed.place,
        detail=parsed.detail,
    )


def combine_verdicts(first: Verdict, swapped: Verdict) -> Verdict:
    """Combine the verdicts of both orders. Unparsed if either is: a single order would be affected by position bias."""
    if not (isinstance(first.value, int) and isinstance(swapped.value, int)):
        unread = first if first.reason else swapped
        return Verdict(first.judge, first.repeat, None, unread.reason, "both", detail=unread.detail)
    value = combine_orders(first.value, swapped.value)
    flip = is_flip(first.value, swapped.value)
    return Verdict(first.judge, first.repeat, value, order="both", flip=flip)


def counted_verdicts(calls: tuple[JudgeCall, ...], verdicts: tuple[Verdict, ...]) -> list[Verdict]:
    """The verdicts that a score is computed from: for calls in both orders, only the combined one."""
    in_both = {(call.judge, call.repeat) for call in calls if call.swapped}
    return [
        verdict
        for verdict in verdicts
        if verdict.order == "both" or (verdict.judge, verdict.repeat) not in in_both
    ]


def last_calls(metric: MetricDefinition, calls: tuple[JudgeCall, ...]) -> tuple[JudgeCall, ...]:
    """The calls of the last judges in a row."""
    first = metric.last_row.start
    return tuple(call for call in calls if call.judge >= first) if first else calls


def conclude(
    metric: MetricDefinition, context: Context, verdicts: tuple[Verdict, ...], ruled: Ruled | None = None
) -> Outcome:
    """What the last step that gives a value gives: a script of `value_scripts`, otherwise the rule program, or the
    combined valid votes of the last judges in a row."""
    if numbers := metric.value_scripts:
        returned = [context.scripts[number].result for number in numbers]
        return outcome_of_value(next((value for value in reversed(returned) if value is not None), None))
    if ruled is not None:
        return ruled.outcome
    calls = last_calls(metric, context.calls)
    offered = counted_verdicts(calls, verdicts)
    read = [verdict.value for verdict in offered if verdict.value is not None]
    if read and len(read) >= metric.quorum:
        if metric.votes_by_majority:
            return agreed_by_majority(read)
        return combine_votes(read, metric.jury) if len(read) > 1 else Outcome(SCORED, read[0])
    if read:
        return _below_quorum(metric, len(read), calls)
    if offered:
        return Outcome(UNPARSED, reason=offered[-1].reason, detail=offered[-1].detail)
    return _failed(next((call.failure for call in reversed(calls) if call.failure), Failure("no_judge")))


def _below_quorum(metric: MetricDefinition, read: int, calls: tuple[JudgeCall, ...]) -> Outcome:
    """An error (which can be retried) if a judge call failed, otherwise unparsed."""
    failed = next((call.failure for call in calls if call.failure), None)
    votes = f"{read} < {metric.quorum}"
    if failed:
        return Outcome.error(QUORUM, f"{votes}; {failed.code}: {failed.detail}".rstrip(": "))
    return Outcome(UNPARSED, reason=QUORUM, detail=votes)


def combine_votes(votes: Sequence[Value], how: Jury) -> Outcome:
    """Combine several votes by mean, median or majority.

    `median`: the mean of the two middle values for an even count, the first vote if all are texts. `majority`: the
    value with the most votes, even if that is less than half. A tie is unparsed, because a random choice or a mean
    would invent a verdict that no judge gave.
    """
    if how == "majority":
        return _majority(votes)
    numbers = [float(vote) for vote in votes if not isinstance(vote, str)]
    if how == "median":
        return Outcome(SCORED, median(numbers) if numbers else votes[0])
    return Outcome(SCORED, sum(numbers) / len(numbers))


def agreed_by_majority(votes: Sequence[Value]) -> Outcome:
    """The value that more than half of the votes have; unparsed without one."""
    value, count = Counter(votes).most_common(1)[0]
    return Outcome(SCORED, value) if 2 * count > len(votes) else Outcome.unparsed(NO_MAJORITY)


def _majority(votes: Sequence[Value]) -> Outcome:
    leading = multimode((isinstance(vote, bool), vote) for vote in votes)  # True and 1 are different votes
    return Outcome(SCORED, leading[0][1]) if len(leading) == 1 else Outcome.unparsed(TIED)


def judge_spread(verdicts: Sequence[Verdict]) -> float | None:
    """The largest difference between the judges' means (true is 1, false is 0); None with fewer than two judges.

    For texts: 1 if the judges differ, otherwise 0.
    """
    both = {(verdict.judge, verdict.repeat) for verdict in verdicts if verdict.order == "both"}
    said: dict[int, list[Value]] = {}
    for verdict in verdicts:
        if verdict.value is not None and (
            verdict.order == "both" or (verdict.judge, verdict.repeat) not in both
        ):
            said.setdefault(verdict.judge, []).append(verdict.value)
    if len(said) < 2:
        return None
    if any(isinstance(value, str) for values in said.values() for value in values):
        return float(len({frozenset(map(str, values)) for values in said.values()}) > 1)
    means = [mean(float(value) for value in values) for values in said.values()]
    return max(means) - min(means)


def with_changes(item: JudgedItem, changed: dict[str, dict[str, Any]]) -> JudgedItem:
    """The item with the fields that preprocess added or changed; the original item is not modified."""
    if not changed:
        return item
    data = changed.get("data", {})
    exact = None if item.exact is None else {"gt": item.data.get("gt"), **item.exact, **data}
    return JudgedItem({**item.data, **data}, {**item.response, **changed.get("response", {})}, exact)
