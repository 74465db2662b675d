"""Judges one response: runs the metric's scripts and judge models in order, and concludes the outcome.

Does no I/O itself: processes and networks are reached only through `Effects` and `Ask` (results.py).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import mean, median, multimode
from typing import Any

import msgspec

from datasets.core.kinds import CHECKLIST, turned
from judging.core.checklists import (
    NO_RUBRIC,
    conclude_checklist,
    criteria_asked,
    read_at_once,
    rubric_of,
)
from judging.core.judges.reply import REFUSED
from judging.core.metric_definition import Jury, MetricDefinition, Script
from judging.core.pairs import ORDERS_DISAGREE, combine_settled, settled_verdict, strength_of
from judging.core.reading.reader import why_unread
from judging.core.reading.reasons import NO_MAJORITY, REFUSAL
from judging.core.replies import VERDICTS, Parsed, combine_orders, is_flip, turned_back, with_sides_swapped
from judging.core.results import (
    FORMAT_FAILED,
    ORDER_FLIP,
    TRUNCATED,
    WOULD_ASK_AGAIN,
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
_NO_JUDGE = Failure("no_judge")
_NOT_JUDGED = Outcome.error(_NO_JUDGE.code)


@dataclass(frozen=True, slots=True)
class Judged:
    """What the last judging step of a metric led to: its rule program, or its last judges in a row."""

    outcome: Outcome = _NOT_JUDGED
    verdicts: tuple[Verdict, ...] = ()
    rules: Ruled | None = None
    checklist: str = ""
    failure: Failure | None = None


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
    if previous and previous.left and await _would_ask_again(item, metric, effects, previous):
        left = previous.left
        return msgspec.structs.replace(left, flags=tuple(dict.fromkeys((*left.flags, WOULD_ASK_AGAIN))))
    context, judged, failure = Context(item), Judged(), None
    for stage in metric.stages:
        if isinstance(stage, int):
            context, failure = await run_script(stage, metric, context, effects, previous)
        else:
            context, judged = await _judge(stage, metric, context, effects, ask, previous)
            failure = judged.failure
        if failure is not None:
            break
    if failure is not None:
        judged = replace(judged, outcome=_failed(failure), checklist="")
    elif metric.value_scripts:
        judged = replace(judged, outcome=_returned(metric, context), checklist="")
    return JudgementResult(
        outcome_of_kind(metric, judged.outcome),
        context.calls,
        judged.verdicts,
        context.scripts,
        (*_flags_of_rules(judged.rules), *_flags(item, context.calls, judged.verdicts, effects)),
        time.perf_counter() - started,
        judged.rules,
        judged.checklist,
    )


async def _would_ask_again(
    item: JudgedItem, metric: MetricDefinition, effects: Effects, previous: PreviousReplies
) -> bool:
    """Whether the scripts before the last judges give other results than those that the stored replies are based on."""
    context, stored = Context(item), previous.scripts
    for number, script in enumerate(metric.scripts_before_judges):
        calls = tuple(call for call in previous.calls if call.judge < script.after)
        result = await effects.scripts[number](replace(context, calls=calls))
        if number >= len(stored) or _effect(result) != _effect(stored[number]):
            return True
        context = with_result(context, script, result)
    return False


def _effect(result: ScriptResult) -> tuple[object, ...]:
    """What the steps after a script see of it. 1 and true are different results."""
    changed = {side: fields for side, fields in result.changed.items() if fields}
    return (
        type(result.result),
        result.result,
        msgspec.json.encode(changed, order="sorted"),
        result.failure is None,
    )


async def _judge(
    row: range,
    metric: MetricDefinition,
    context: Context,
    effects: Effects,
    ask: Ask | None,
    previous: PreviousReplies | None,
) -> tuple[Context, Judged]:
    """Run the rule program, or the judges in a row, and return the context with their calls. Only the replies of the
    last judges are read."""
    if metric.rules:
        ruled = await effects.apply_rules(context.item, ask, previous)
        return replace(context, calls=ruled.calls), Judged(ruled.outcome, ruled.verdicts, rules=ruled)
    if row == metric.last_row and metric.gives == CHECKLIST:
        return await _judge_checklist(row, metric, context, effects, ask, previous)
    context, failure = await ask_judges(row, metric, context, effects, ask, previous)
    if failure is not None or row != metric.last_row:
        return context, Judged(failure=failure)
    calls = _calls_in(row, context)
    verdicts = await read_verdicts(calls, effects)
    return context, Judged(combine_verdicts(metric, calls, verdicts), verdicts)


async def _judge_checklist(
    row: range,
    metric: MetricDefinition,
    context: Context,
    effects: Effects,
    ask: Ask | None,
    previous: PreviousReplies | None,
) -> tuple[Context, Judged]:
    """Let the last judges say of each criterion of the row's rubric whether it is met."""
    rubric = rubric_of(context.item.data)
    if rubric is None:
        return context, Judged(failure=Failure(NO_RUBRIC))
    context, failure = await ask_judges(row, metric, context, effects, ask, previous)
    if failure is not None:
        return context, Judged(failure=failure)
    calls = _calls_in(row, context)
    verdicts = await read_verdicts(calls, effects, len(rubric.criteria) if metric.at_once else 0)
    outcome, checklist = conclude_checklist(metric, rubric, calls, verdicts)
    return context, Judged(outcome, verdicts, checklist=checklist.to_json())


def _calls_in(row: range, context: Context) -> tuple[JudgeCall, ...]:
    return tuple(call for call in context.calls if call.judge in row) if row.start else context.calls


def _returned(metric: MetricDefinition, context: Context) -> Outcome:
    """What the last script that can give the value returned, or of several the last that returned one."""
    returned = [context.scripts[number].result for number in metric.value_scripts]
    return outcome_of_value(next((value for value in reversed(returned) if value is not None), None))


def result_by_rules(ruled: Ruled) -> JudgementResult:
    """The result of a metric that is a rule program without scripts and judges."""
    return JudgementResult(ruled.outcome, flags=_flags_of_rules(ruled), rules=ruled)


def _flags_of_rules(ruled: Ruled | None) -> tuple[str, ...]:
    """The flag of an answer without the format that the rule program requires."""
    return (FORMAT_FAILED,) if ruled and ruled.failure else ()


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


def _flags(
    item: JudgedItem, calls: Sequence[JudgeCall], verdicts: Sequence[Verdict], effects: Effects
) -> tuple[str, ...]:
    """The flags of what judges were shown and replied: whether the winner changed with the order, and whether any reply
    was cut off by its token limit."""
    if not calls:
        return ()
    cut = any((call.reply or {}).get("finish_reason") == "length" for call in calls)
    flipped = any(verdict.flip for verdict in verdicts)
    return (*effects.flags(item), *((ORDER_FLIP,) if flipped else ()), *((TRUNCATED,) if cut else ()))


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
            prepared = await questions_of(row[judge], metric, context, effects)
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
    number: int, metric: MetricDefinition, context: Context, effects: Effects
) -> list[Question] | Failure:
    """All questions to one judge model: one per repeat, order and criterion.

    The swapped order is included if the judge compares in both orders and the item has two sides: a reference and an
    answer, or two answers.
    """
    judge = metric.judges[number]
    earlier = replace(context, calls=tuple(call for call in context.calls if call.judge < number))
    prompts: list[tuple[str, bool, int]] = []
    for swapped in (False, True) if judge.both_orders else (context.item.other_first,):
        seen = swapped_context(earlier) if swapped else earlier
        if seen is None:
            continue
        for criterion in criteria_asked(metric, number, context.item.data):
            prompt = await effects.prompts[number](replace(seen, criterion=criterion) if criterion else seen)
            if isinstance(prompt, Failure):
                return prompt
            prompts.append((prompt, swapped, criterion))
    return [
        Question(number, repeat, prompt, swapped, criterion)
        for repeat in range(judge.repeats)
        for prompt, swapped, criterion in prompts
    ]


def swapped_context(context: Context) -> Context | None:
    """The template data of a comparison with the sides swapped; None without a reference or an answer."""
    item = context.item
    if item.other is not None:
        return replace(context, item=replace(item, response=item.other, other=item.response))
    sides = with_sides_swapped(item.data, item.response)
    return replace(context, item=JudgedItem(*sides)) if sides else None


async def read_verdicts(
    calls: tuple[JudgeCall, ...], effects: Effects, criteria: int = 0
) -> tuple[Verdict, ...]:
    """Parse a verdict from each reply's content (not its reasoning); both orders also give a combined verdict.

    `criteria`: each reply is about this many criteria at once, and gives a verdict on each.
    """
    verdicts: list[Verdict] = []
    first: dict[tuple[int, int], Verdict] = {}
    for call in sorted(calls, key=lambda call: call.place):
        if call.failure is not None:
            continue
        if criteria:
            verdicts += read_at_once(call, criteria)
            continue
        place = call.judge, call.repeat
        verdict = _verdict(call, await read_call(call, effects))
        verdicts.append(verdict)
        if not call.swapped:
            first[place] = verdict
        elif place in first:
            verdicts.append(_both_orders(first[place], verdicts[-1]))
    return tuple(verdicts)


async def read_call(call: JudgeCall, effects: Effects) -> Parsed:
    """The value of a call's reply, or the reason why there is none, which may be its server's."""
    finish_reason = (call.reply or {}).get("finish_reason")
    if finish_reason in REFUSED:
        return Parsed(None, REFUSAL, detail=call.text.strip()[:MOST_DETAIL])
    parsed = await effects.read(call.judge, call.text, finish_reason)
    reason = why_unread(parsed.reason, finish_reason)
    return parsed if reason == parsed.reason else replace(parsed, reason=reason)


def _verdict(call: JudgeCall, parsed: Parsed) -> Verdict:
    value = parsed.value
    if call.swapped:
        value = turned_back(value) if isinstance(value, int) else value and turned(value)
    return Verdict(
        call.judge,
        call.repeat,
        value,
        parsed.reason,
        "swapped" if call.swapped else "first",
        form=parsed.form,
        place=parsed.place,
        detail=parsed.detail,
        criterion=call.criterion,
    )


def _both_orders(first: Verdict, swapped: Verdict) -> Verdict:
    """Combine the verdicts of both orders. Unparsed if either is: a single order would be affected by position bias."""
    if isinstance(first.value, str) and isinstance(swapped.value, str):
        return _combine_of_pair(first, swapped, first.value, swapped.value)
    if not (isinstance(first.value, int) and isinstance(swapped.value, int)):
        unread = first if first.reason else swapped
        return Verdict(first.judge, first.repeat, None, unread.reason, "both", detail=unread.detail)
    value = combine_orders(first.value, swapped.value)
    flip = is_flip(first.value, swapped.value)
    return Verdict(first.judge, first.repeat, value, order="both", flip=flip)


def combine_replies(first: Parsed, swapped: Parsed) -> Verdict:
    """The combined verdict of one judge's replies in both orders, as they were read."""
    calls = [JudgeCall(0, 0, {}, None, None, [], swapped=in_other_order) for in_other_order in (False, True)]
    return _both_orders(_verdict(calls[0], first), _verdict(calls[1], swapped))


def _combine_of_pair(first: Verdict, swapped: Verdict, value: str, other: str) -> Verdict:
    """Combine the verdicts on a pair of candidates in both orders, which may disagree."""
    both = settled_verdict(value, other)
    flip = strength_of(value) * strength_of(other) < 0
    return Verdict(first.judge, first.repeat, both, "" if both else ORDERS_DISAGREE, order="both", flip=flip)


def counted_verdicts(calls: tuple[JudgeCall, ...], verdicts: tuple[Verdict, ...]) -> list[Verdict]:
    """The verdicts that a score is computed from: for calls in both orders, only the combined one."""
    in_both = {(call.judge, call.repeat) for call in calls if call.swapped}
    in_both &= {(call.judge, call.repeat) for call in calls if not call.swapped}
    return [
        verdict
        for verdict in verdicts
        if verdict.order == "both" or (verdict.judge, verdict.repeat) not in in_both
    ]


def combine_verdicts(
    metric: MetricDefinition, calls: tuple[JudgeCall, ...], verdicts: tuple[Verdict, ...]
) -> Outcome:
    """The combined valid votes of judges in a row."""
    offered = counted_verdicts(calls, verdicts)
    read = [verdict.value for verdict in offered if verdict.value is not None]
    unsettled = sum(verdict.reason == ORDERS_DISAGREE for verdict in offered)
    votes = len(read) + unsettled
    if votes and votes >= metric.quorum:
        if metric.compares_candidates:
            return _combine_pair_votes([str(value) for value in read], unsettled)
        if metric.votes_by_majority:
            return agreed_by_majority(read)
        return combine_votes(read, metric.jury) if len(read) > 1 else Outcome(SCORED, read[0])
    if votes:
        return _below_quorum(metric, votes, calls)
    if offered:
        return Outcome(UNPARSED, reason=offered[-1].reason, detail=offered[-1].detail)
    return _failed(next((call.failure for call in reversed(calls) if call.failure), _NO_JUDGE))


def _combine_pair_votes(settled: Sequence[str], unsettled: int) -> Outcome:
    """Combine at least one vote on a pair of candidates, of which some may be unsettled."""
    if settled:
        return combine_settled(settled)
    return Outcome.unsettled(ORDERS_DISAGREE if unsettled == 1 else NO_MAJORITY)


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
    other = None if item.other is None else {**item.other, **changed.get("other_response", {})}
    response = {**item.response, **changed.get("response", {})}
    return replace(item, data={**item.data, **data}, response=response, exact=exact, other=other)
