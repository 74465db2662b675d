"""Early stopping: ends a run when the mean of every metric and candidate is known to the requested precision.

Looks at the judgements of the closed chunks before the first open one only: which of those in flight come back first
has to do with what they are. A run that may end early is planned in random order (planning.py), so that they are a
random sample. What is known is the mean over all rows like these; the confidence of 95 % is shared by all means.
"""

from __future__ import annotations

from collections import defaultdict

from judging.core.metric_definition import MetricDefinition
from judging.core.statistics.numeric import mean_so_far
from judging.runs.models import JudgementState, Run, RunMetric
from judging.runs.stopping import run_end_early
from judging.runs.teamwork.marks import without_excluded

ALPHA = 0.05
GROWTH = 1.1  # how much more must be judged before it is worked out again

Cell = tuple[int, int]  # metric and candidate


class EarlyStopping:
    """Of one worker: remembers how far each run was when it was last worked out."""

    def __init__(self) -> None:
        self._seen: dict[int, int] = {}

    def look(self, run: Run) -> bool:
        """End the run if its result is known. Whether it was."""
        if run.stop_width is None:
            return False
        judged = judged_without_gap(run)
        if judged < GROWTH * self._seen.get(run.pk, 0) or not judged:
            return False
        self._seen[run.pk] = judged
        return settled(run, judged) and run_end_early(run)


def judged_without_gap(run: Run) -> int:
    """How many positions from the first on are in closed chunks."""
    first_open = run.chunks.filter(done=False).order_by("first").values_list("first", flat=True).first()
    return run.total if first_open is None else int(first_open)


def settled(run: Run, judged: int) -> bool:
    """Whether each mean is known to ± run.stop_width from the first `judged` positions."""
    assert run.stop_width is not None
    cells = run.metrics.count() * run.run_candidates.count()
    scores = row_scores(run, judged)
    if len(scores) < cells:
        return False
    for (metric, _), values in scores.items():
        bounds = bounds_of(RunMetric.objects.get(pk=metric), values)
        if bounds is None or mean_so_far(values, *bounds, ALPHA / cells).half_width > run.stop_width:
            return False
    return True


def row_scores(run: Run, judged: int) -> dict[Cell, list[float]]:
    """Of each metric and candidate the mean score of each row, in order: several answers to a row are no more
    independent than one."""
    scored = run.judgements.by_metrics().filter(
        current=True,
        state_in_force=JudgementState.SCORED,
        score_in_force__isnull=False,
        position__lt=judged,
    )
    found = without_excluded(run, scored)
    rows: dict[Cell, dict[int, list[float]]] = defaultdict(dict)
    for metric, candidate, row, score in found.order_by("position").values_list(
        "run_metric_id", "candidate_id", "row_id", "score_in_force"
    ):
        rows[metric, candidate].setdefault(row, []).append(score or 0.0)
    return {cell: [sum(one) / len(one) for one in by_row.values()] for cell, by_row in rows.items()}


def bounds_of(run_metric: RunMetric, values: list[float]) -> tuple[float, float] | None:
    """What scores of the metric lie between: its scale, or 0 and 1 for a rate; None if it is neither."""
    definition = MetricDefinition.from_json(run_metric.definition)
    scales = [(definition.min_score, definition.max_score)]
    if definition.postprocess or not definition.judges:
        scales = [(0.0, 1.0), *scales]  # a script's bool is a rate
    return next((one for one in scales if one[0] <= min(values) and max(values) <= one[1]), None)
