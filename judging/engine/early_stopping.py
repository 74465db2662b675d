"""Early stopping: ends a run when the mean of every metric and candidate is known to the requested precision.

Only the closed chunks before the first open one are used, because which requests finish first depends on their
content. A run that may end early is planned in random order (planning.py), so that they are a random sample. The
intervals estimate the mean over the population of such rows; the 95 % confidence holds for all means jointly.
"""

from __future__ import annotations

from collections import defaultdict

from judging.core.metric_definition import MetricDefinition
from judging.core.statistics.numeric import mean_so_far
from judging.engine.stopping import run_end_early
from judging.records.models import JudgementState, Run, RunMetric
from judging.teamwork.marks import without_excluded

ALPHA = 0.05
GROWTH = 1.1  # growth in judgements before the check is repeated

Cell = tuple[int, int]  # metric and candidate


class EarlyStopping:
    """One worker's checks: remembers each run's progress at its last check."""

    def __init__(self) -> None:
        self._seen: dict[int, int] = {}

    def end_if_precise(self, run: Run) -> bool:
        """End the run if its means are precise enough. Returns whether it was ended."""
        if run.stop_width is None:
            return False
        judged = judged_without_gap(run)
        if judged < GROWTH * self._seen.get(run.pk, 0) or not judged:
            return False
        self._seen[run.pk] = judged
        return is_precise_enough(run, judged) and run_end_early(run)


def judged_without_gap(run: Run) -> int:
    """The number of positions before the first open chunk."""
    first_open = run.chunks.filter(done=False).order_by("first").values_list("first", flat=True).first()
    return run.total if first_open is None else int(first_open)


def is_precise_enough(run: Run, judged: int) -> bool:
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
    """The mean score of each row, in order, by metric and candidate. Scores of a row are averaged because several
    answers to the same row are not independent."""
    scored = run.judgements.by_metrics().filter(
        current=True,
        state_in_force=JudgementState.SCORED,
        score_in_force__isnull=False,
        position__lt=judged,
    )
    judgements = without_excluded(run, scored)
    rows: dict[Cell, dict[int, list[float]]] = defaultdict(dict)
    for metric, candidate, row, score in judgements.order_by("position").values_list(
        "run_metric_id", "candidate_id", "row_id", "score_in_force"
    ):
        rows[metric, candidate].setdefault(row, []).append(score or 0.0)
    return {cell: [sum(scores) / len(scores) for scores in by_row.values()] for cell, by_row in rows.items()}


def bounds_of(run_metric: RunMetric, values: list[float]) -> tuple[float, float] | None:
    """The bounds of the metric's scores: its scale, or 0 and 1 for a rate; None if the values fit neither."""
    definition = MetricDefinition.from_json(run_metric.definition)
    scales = [(definition.min_score, definition.max_score)]
    if definition.scored_by_script or definition.rules:
        scales = [(0.0, 1.0), *scales]  # a script's bool is a rate
    return next((scale for scale in scales if scale[0] <= min(values) and max(values) <= scale[1]), None)
