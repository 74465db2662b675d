"""Preview of re-parsing stored replies with another definition: outcomes and changes."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import cast

from django.db.models import QuerySet
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy

from datasets.core.formats import Format
from datasets.core.kinds import CHECKLIST
from datasets.core.variables import response_data
from judging.core.metric_definition import MetricDefinition
from judging.core.pipeline import judge_item
from judging.core.results import WOULD_ASK_AGAIN, JudgedItem, JudgementResult, PreviousReplies
from judging.core.sandbox.job import SandboxError
from judging.core.values import Outcome, value_of
from judging.engine.chunks import RowReader
from judging.engine.effects import MetricEffects
from judging.engine.threads import in_thread
from judging.filters.counts import reads_judgements
from judging.filters.judgement_filter import ANYTHING, CURRENT
from judging.filters.page_limits import LIMITS, Limits
from judging.filters.row_filters import id_subquery
from judging.filters.search import nearest
from judging.messages import verdict_texts
from judging.records.models import Judgement, JudgementState, Run, RunMetric
from judging.records.stored_replies import previous_replies, stored_result
from judging.runs.rerun.selection import EVERYTHING, Selection
from judging.sandboxes import preview_sandbox

MOST = 5_000  # judgements included in a preview
SHOWN = 20
_SCORED = JudgementState.SCORED

CHANGES: dict[str, str | Promise] = {
    "higher": gettext_lazy("Higher"),
    "lower": gettext_lazy("Lower"),
    "other": gettext_lazy("Value changed"),
    "scored": gettext_lazy("Scored now"),
    "unscored": gettext_lazy("No longer scored"),
    "state": gettext_lazy("State changed"),
    "same": gettext_lazy("Unchanged"),
    "asks": gettext_lazy("Would ask again, left as it is"),
}


@dataclass(frozen=True, slots=True)
class ChangedItem:
    """A judgement that would change, with its value or state before and after."""

    judgement: Judgement
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class ReparsePreview:
    """The outcome for the first `read` judgements, or for `all_of_them`. `counts`: [(change, number)] of changes that
    occur. The means include overrides, which are not affected."""

    read: int
    all_of_them: bool
    counts: list[tuple[str | Promise, int]]
    mean_before: float | None
    mean_after: float | None
    changed: list[ChangedItem]


def preview_reading(
    run_metric: RunMetric, definition: MetricDefinition, selection: Selection
) -> ReparsePreview | None:
    """Preview a reading; None if user scripts or regular expressions cannot be run."""
    ids, more = _preview_ids(run_metric, selection)
    try:
        requested = MetricDefinition.from_json(run_metric.definition)
        results = dict(results_by(definition, run_metric.run, ids, requested))
    except SandboxError:
        return None
    columns = ("row__line", "candidate__name", "state", "value", "score", "override_value", "score_in_force")
    judgements = Judgement.objects.select_related("row", "candidate").only(*columns).in_bulk(list(results))
    judged = [(judgements[pk], result.outcome) for pk, result in results.items()]
    counts = Counter(_change(judgement, outcome) for judgement, outcome in judged)
    asks = sum(WOULD_ASK_AGAIN in result.flags for result in results.values())
    counts += Counter(same=-asks, asks=asks)
    changed = [pair for pair in judged if _change(*pair) != "same"]
    return ReparsePreview(
        len(judged),
        not more,
        [(name, counts[code]) for code, name in CHANGES.items() if counts[code]],
        _mean([judgement.score_in_force for judgement, _ in judged]),
        _mean(
            [
                judgement.score_in_force if judgement.overridden else outcome.score
                for judgement, outcome in judged
            ]
        ),
        _changed_items(changed[:SHOWN]),
    )


def _preview_ids(run_metric: RunMetric, selection: Selection) -> tuple[list[int], bool]:
    """Ids of the judgements for a preview, and whether more match."""
    if selection.only is not None:
        return list(readable(run_metric, selection).values_list("pk", flat=True)), False
    filters = replace(selection.filters, metric=run_metric.name, attempts=CURRENT, sort=ANYTHING.sort)
    first = nearest(run_metric.run, filters, None, MOST + 1)
    ids = [match.pk for match in first.matches]
    can_be_read = set(
        readable(run_metric, EVERYTHING).filter(pk__in=id_subquery(ids)).values_list("pk", flat=True)
    )
    return [pk for pk in ids[:MOST] if pk in can_be_read], first.stopped is not None or len(ids) > MOST


def count_readable(run_metric: RunMetric, selection: Selection, limits: Limits = LIMITS) -> int | None:
    """The number of judgements to re-parse, at most `limits.counted` + 1. None if it is too expensive to count."""
    if selection.only is None and reads_judgements(run_metric.run, selection.filters, limits):
        return None
    return readable(run_metric, selection).order_by()[: limits.counted + 1].count()


def readable(run_metric: RunMetric, selection: Selection) -> QuerySet[Judgement]:
    """Judgements that can be re-parsed. Excludes those re-judged with another version, whose prompts differ."""
    return selection.of(run_metric.run).filter(run_metric=run_metric).exclude(reading__sends_requests=True)


def _change(judgement: Judgement, outcome: Outcome) -> str:
    if (judgement.state, judgement.value) == (outcome.state, outcome.value_json):
        return "same"
    if judgement.state != _SCORED or outcome.state != _SCORED:
        return "scored" if outcome.state == _SCORED else "unscored" if judgement.state == _SCORED else "state"
    if judgement.score is None or outcome.score is None or judgement.score == outcome.score:
        return "other"
    return "higher" if outcome.score > judgement.score else "lower"


def _changed_items(changed: Sequence[tuple[Judgement, Outcome]]) -> list[ChangedItem]:
    before = verdict_texts([value_of(judgement.value) for judgement, _ in changed])
    after = verdict_texts([outcome.value for _, outcome in changed])
    return [
        ChangedItem(
            judgement,
            was or str(judgement.get_state_display()),
            now or str(JudgementState(outcome.state).label),
        )
        for (judgement, outcome), was, now in zip(changed, before, after, strict=True)
    ]


def _mean(scores: Sequence[float | None]) -> float | None:
    scored = [score for score in scores if score is not None]
    return sum(scored) / len(scored) if scored else None


BATCH = 500  # judgements in memory
_NOTHING = JudgedItem({}, {})


def outcomes_by(
    definition: MetricDefinition, run: Run, judgements: Sequence[int]
) -> Iterator[tuple[int, Outcome]]:
    """Yield (judgement id, outcome) as `results_by`, with the scripts before the judges that the run had."""
    return ((pk, result.outcome) for pk, result in results_by(definition, run, judgements, definition))


def results_by(
    definition: MetricDefinition, run: Run, judgements: Sequence[int], requested: MetricDefinition
) -> Iterator[tuple[int, JudgementResult]]:
    """Yield (judgement id, result) with `definition`, except for judgements without replies, which are unchanged.

    `requested`: the definition with which the replies were requested. Raises SandboxError if user scripts or regular
    expressions cannot be run.
    """
    may_ask_again = definition.scripts_before_judges != requested.scripts_before_judges
    with ThreadPoolExecutor(1) as threads:
        effects = MetricEffects(definition, [], None, preview_sandbox(), in_thread(threads))
        for start in range(0, len(judgements), BATCH):
            loaded = _loaded(effects, run, judgements[start : start + BATCH], may_ask_again=may_ask_again)
            yield from asyncio.run(_results(effects, loaded))


_Loaded = list[tuple[int, JudgedItem, PreviousReplies]]


async def _results(effects: MetricEffects, loaded: _Loaded) -> list[tuple[int, JudgementResult]]:
    """The items are judged concurrently, so that sandbox work is batched."""
    judging = (judge_item(item, effects.metric, effects, None, old) for _, item, old in loaded)
    results = await asyncio.gather(*judging)
    return [(pk, result) for (pk, _, _), result in zip(loaded, results, strict=True)]


def _loaded(effects: MetricEffects, run: Run, judgements: Sequence[int], *, may_ask_again: bool) -> _Loaded:
    metric = effects.metric
    whole = bool(metric.rules or metric.scripts or metric.gives == CHECKLIST)  # else only replies are needed
    attempts = Judgement.objects.filter(pk__in=judgements)
    if whole:
        attempts = attempts.select_related("row", "response", "other_response")
    elif not may_ask_again:
        attempts = attempts.only("replies_from")
    requested_by = {attempt.pk: attempt.replies_from_id or attempt.pk for attempt in attempts}
    earlier = previous_replies(set(requested_by.values()), requests=whole)
    rows = RowReader(cast(Format, run.version.format))

    def item(attempt: Judgement) -> JudgedItem:
        if not whole:
            return _NOTHING
        judged = rows.item(attempt.row_id, attempt.row.raw, attempt.response.raw, effects.numbers)
        if attempt.other_response is None:
            return judged
        other = response_data(attempt.other_response.raw)
        return replace(judged, other=other, other_first=attempt.shown_first == 2)

    def previous(attempt: Judgement) -> PreviousReplies:
        replies = earlier[requested_by[attempt.pk]]
        return replace(replies, left=stored_result(attempt)) if may_ask_again else replies

    read = ((attempt, previous(attempt)) for attempt in attempts)
    return [
        (attempt.pk, item(attempt), replies)
        for attempt, replies in read
        if replies.calls or metric.rules or not metric.judges
    ]
