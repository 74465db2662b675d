"""What reading stored replies again would change, before it is done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import QuerySet
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy

from judging.core.metric_definition import MetricDefinition
from judging.core.sandbox.job import SandboxError
from judging.core.values import Outcome, stored_value_text, value_text
from judging.runs.models import Judgement, JudgementState, RunMetric
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
    """What became of the first `read` of `total` judgements. `counts`: [(name of a change, how many)], those that
    occur. The means are those in force: where a reviewer overrode a score, it stays."""

    read: int
    total: int
    counts: list[tuple[str | Promise, int]]
    mean_before: float | None
    mean_after: float | None
    changed: list[ChangedItem]


def preview_reading(
    run_metric: RunMetric, definition: MetricDefinition, selection: Selection
) -> ReparsePreview | None:
    """None where scripts or expressions of users cannot be run."""
    meant = readable(run_metric, selection)
    ids = list(meant.order_by("position").values_list("pk", flat=True)[:MOST])
    total = len(ids) if len(ids) < MOST else meant.count()
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
        total,
        [(name, counts[code]) for code, name in CHANGES.items() if counts[code]],
        _mean([one.score_in_force for one, _ in judged]),
        _mean([one.score_in_force if one.overridden else outcome.score for one, outcome in judged]),
        [ChangedItem(one, _before(one), _after(outcome)) for one, outcome in changed[:SHOWN]],
    )


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
