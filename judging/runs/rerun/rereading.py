"""Stored replies read by another definition, as a run worker would read them: nothing is stored and no one is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import cast

from datasets.core.formats import Format
from judging.core.metric_definition import MetricDefinition
from judging.core.pipeline import judge_item
from judging.core.results import Item, PreviousReplies
from judging.core.values import Outcome
from judging.runs.models import Judgement, Run
from judging.runs.stored_replies import previous_replies
from judging.runs.worker.chunks import RowReader
from judging.runs.worker.effects import MetricEffects
from judging.runs.worker.threads import in_thread
from judging.sandboxes import preview_sandbox

BATCH = 500  # judgements in memory
_NOTHING = Item({}, {})


def outcomes_by(
    definition: MetricDefinition, run: Run, judgements: Sequence[int]
) -> Iterator[tuple[int, Outcome]]:
    """The outcome of each of these judgements by `definition`. Without those that have no reply to read: they stay as
    they are.

    Raises SandboxError if scripts or expressions of users cannot be run.
    """
    with ThreadPoolExecutor(1) as threads:
        effects = MetricEffects(definition, [], None, preview_sandbox(), in_thread(threads))
        for start in range(0, len(judgements), BATCH):
            yield from asyncio.run(
                _outcomes(effects, _loaded(effects, run, judgements[start : start + BATCH]))
            )


_Loaded = list[tuple[int, Item, PreviousReplies]]


async def _outcomes(effects: MetricEffects, loaded: _Loaded) -> list[tuple[int, Outcome]]:
    """What runs in the sandbox is done together; the rest waits for nothing, and a task each would cost more."""
    judging = (judge_item(item, effects.metric, effects, None, old) for _, item, old in loaded)
    found = await asyncio.gather(*judging) if effects.uses_sandbox else [await one for one in judging]
    return [(pk, result.outcome) for (pk, _, _), result in zip(loaded, found, strict=True)]


def _loaded(effects: MetricEffects, run: Run, judgements: Sequence[int]) -> _Loaded:
    metric = effects.metric
    whole = bool(metric.rules or metric.preprocess or metric.postprocess)  # else a reply alone is read
    fields = ("asked_by", "row", "response")
    found = Judgement.objects.filter(pk__in=judgements).only(*fields)
    if whole:
        found = found.select_related("row", "response").only(*fields, "row__raw", "response__raw")
    asked = {one.pk: one.asked_by_id or one.pk for one in found}
    earlier = previous_replies(set(asked.values()), requests=whole)
    rows = RowReader(cast(Format, run.version.format))

    def item(one: Judgement) -> Item:
        return rows.item(one.row_id, one.row.raw, one.response.raw, effects.seen) if whole else _NOTHING

    read = ((one, earlier[asked[one.pk]]) for one in found)
    return [
        (one.pk, item(one), previous)
        for one, previous in read
        if previous.asked or metric.rules or not metric.judges
    ]
