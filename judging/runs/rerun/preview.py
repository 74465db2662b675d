"""What reading stored replies again would change, before it is done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.db.models import QuerySet
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy

from judging.core.metric_definition import MetricDefinition
from judging.core.sandbox.job import SandboxError
from judging.core.values import Outcome, stored_value_text, value_text
from judging.runs.counts import MOST_COUNTED, reads_judgements
from judging.runs.filters import among
from judging.runs.models import PLACE, Judgement, JudgementState, RunMetric
from judging.runs.rerun.rereading import outcomes_by
from judging.runs.rerun.selection import Selection

MOST = 5_000  # judgements that a page reads
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
    """A judgement that would change: its value, or its state, before and after."""

    judgement: Judgement
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class ReparsePreview:
    """What became of the first `read` of the judgements, or of `all_of_them`. `counts`: [(name of a change, how many)],
    those that occur. The means are those in force: where a reviewer overrode a score, it stays."""

    read: int
    all_of_them: bool
    counts: list[tuple[str | Promise, int]]
    mean_before: float | None
    mean_after: float | None
    changed: list[ChangedItem]


def preview_reading(
    run_metric: RunMetric, definition: MetricDefinition, selection: Selection
) -> ReparsePreview | None:
    """None if scripts or expressions of users cannot be run."""
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
    """The ids of those that a preview reads, and whether more are meant."""
    run, filters = run_metric.run, selection.filters
    inside = selection.only is None and reads_judgements(run, filters)
    meant = readable(run_metric, replace(selection, filters=filters.outside) if inside else selection)
    meant = meant.alias(place=PLACE).filter(place__gte=0).order_by("place")
    ids = list(meant.values_list("pk", flat=True)[: MOST + 1])
    shown = sorted(among(run, filters, ids[:MOST])) if inside else ids[:MOST]
    return shown, len(ids) > MOST


def count_readable(run_metric: RunMetric, selection: Selection) -> int | None:
    """How many at least: one beyond MOST_COUNTED of more than that many. None if so many judgements must be read
    to know that no page waits."""
    if selection.only is None and reads_judgements(run_metric.run, selection.filters):
        return None
    return readable(run_metric, selection).order_by()[: MOST_COUNTED + 1].count()


def readable(run_metric: RunMetric, selection: Selection) -> QuerySet[Judgement]:
    """What a reading is for: not what another version of the metric has asked, whose judges were asked otherwise."""
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
