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
from judging.core.metric_definition import MetricDefinition
from judging.core.pipeline import judge_item
from judging.core.results import JudgedItem, PreviousReplies
from judging.core.sandbox.job import SandboxError
from judging.core.values import Outcome, stored_value_text, value_text
from judging.runs.counts import MOST_COUNTED, reads_judgements
from judging.runs.filters import among
from judging.runs.models import PLACE, Judgement, JudgementState, Run, RunMetric
from judging.runs.rerun.selection import Selection
from judging.runs.stored_replies import previous_replies
from judging.runs.worker.chunks import RowReader
from judging.runs.worker.effects import MetricEffects
from judging.runs.worker.threads import in_thread
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
    ids, more = _first(run_metric, selection)
    try:
        outcomes = dict(outcomes_by(definition, run_metric.run, ids))
    except SandboxError:
        return None
    columns = ("row__line", "candidate__name", "state", "value", "score", "override_value", "score_in_force")
    found = Judgement.objects.select_related("row", "candidate").only(*columns).in_bulk(list(outcomes))
    judged = [(found[pk], outcomes[pk]) for pk in outcomes]
    counts = Counter(_change(one, outcome) for one, outcome in judged)
    changed = [pair for pair in judged if _change(*pair) != "same"]
    return ReparsePreview(
        len(judged),
        not more,
        [(name, counts[code]) for code, name in CHANGES.items() if counts[code]],
        _mean([one.score_in_force for one, _ in judged]),
        _mean([one.score_in_force if one.overridden else outcome.score for one, outcome in judged]),
        [ChangedItem(one, _before(one), _after(outcome)) for one, outcome in changed[:SHOWN]],
    )


def _first(run_metric: RunMetric, selection: Selection) -> tuple[list[int], bool]:
    """Ids of the judgements for a preview, and whether more match."""
    run, filters = run_metric.run, selection.filters
    inside = selection.only is None and reads_judgements(run, filters)
    matches = readable(run_metric, replace(selection, filters=filters.outside) if inside else selection)
    matches = matches.alias(place=PLACE).filter(place__gte=0).order_by("place")
    ids = list(matches.values_list("pk", flat=True)[: MOST + 1])
    shown = sorted(among(run, filters, ids[:MOST])) if inside else ids[:MOST]
    return shown, len(ids) > MOST


def count_readable(run_metric: RunMetric, selection: Selection) -> int | None:
    """The number of judgements to re-parse, at most MOST_COUNTED + 1. None if it is too expensive to count."""
    if selection.only is None and reads_judgements(run_metric.run, selection.filters):
        return None
    return readable(run_metric, selection).order_by()[: MOST_COUNTED + 1].count()


def readable(run_metric: RunMetric, selection: Selection) -> QuerySet[Judgement]:
    """Judgements that can be re-parsed. Excludes those re-judged with another version, whose prompts differ."""
    return selection.of(run_metric.run).filter(run_metric=run_metric).exclude(reading__asks=True)


def _change(one: Judgement, outcome: Outcome) -> str:
    if (one.state, one.value) == (outcome.state, outcome.value_json):
        return "same"
    if one.state != _SCORED or outcome.state != _SCORED:
        return "scored" if outcome.state == _SCORED else "unscored" if one.state == _SCORED else "state"
    if one.score is None or outcome.score is None or one.score == outcome.score:
        return "other"
    return "higher" if outcome.score > one.score else "lower"


def _before(one: Judgement) -> str:
    return stored_value_text(one.value) or str(one.get_state_display())


def _after(outcome: Outcome) -> str:
    return value_text(outcome.value) or str(JudgementState(outcome.state).label)


def _mean(scores: Sequence[float | None]) -> float | None:
    scored = [one for one in scores if one is not None]
    return sum(scored) / len(scored) if scored else None


BATCH = 500  # judgements in memory
_NOTHING = JudgedItem({}, {})


def outcomes_by(
    definition: MetricDefinition, run: Run, judgements: Sequence[int]
) -> Iterator[tuple[int, Outcome]]:
    """Yield (judgement id, outcome) with `definition`, except for judgements without replies, which are unchanged.

    Raises SandboxError if user scripts or regular expressions cannot be run.
    """
    with ThreadPoolExecutor(1) as threads:
        effects = MetricEffects(definition, [], None, preview_sandbox(), in_thread(threads))
        for start in range(0, len(judgements), BATCH):
            yield from asyncio.run(
                _outcomes(effects, _loaded(effects, run, judgements[start : start + BATCH]))
            )


_Loaded = list[tuple[int, JudgedItem, PreviousReplies]]


async def _outcomes(effects: MetricEffects, loaded: _Loaded) -> list[tuple[int, Outcome]]:
    """The items are judged concurrently, so that sandbox work is batched."""
    judging = (judge_item(item, effects.metric, effects, None, old) for _, item, old in loaded)
    found = await asyncio.gather(*judging)
    return [(pk, result.outcome) for (pk, _, _), result in zip(loaded, found, strict=True)]


def _loaded(effects: MetricEffects, run: Run, judgements: Sequence[int]) -> _Loaded:
    metric = effects.metric
    whole = bool(metric.rules or metric.preprocess or metric.postprocess)  # else only replies are needed
    fields = ("asked_by", "row", "response")
    found = Judgement.objects.filter(pk__in=judgements).only(*fields)
    if whole:
        found = found.select_related("row", "response").only(*fields, "row__raw", "response__raw")
    asked = {one.pk: one.asked_by_id or one.pk for one in found}
    earlier = previous_replies(set(asked.values()), requests=whole)
    rows = RowReader(cast(Format, run.version.format))

    def item(one: Judgement) -> JudgedItem:
        return rows.item(one.row_id, one.row.raw, one.response.raw, effects.numbers) if whole else _NOTHING

    read = ((one, earlier[asked[one.pk]]) for one in found)
    return [
        (one.pk, item(one), previous)
        for one, previous in read
        if previous.asked or metric.rules or not metric.judges
    ]
