"""Reading what a report is computed from: a run's current judgements as plain tuples, and what it cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, cast

from django.db.models import Count
from django.utils import timezone

from datasets.core.formats import Format
from datasets.core.variables import row_data
from datasets.models import Row
from judging.core.results import TRUNCATED
from judging.core.statistics.frame import Judgement as Told
from judging.core.statistics.frame import Metric
from judging.runs.filters import Filters, matching
from judging.runs.models import INFER, Generation, Judgement, JudgeReply, Run, RunMetric
from judging.runs.rerun.reparse import definition_now

BATCH = 20_000  # tuples fetched at a time
_COLUMNS = (
    "run_metric_id", "candidate_id", "row__line", "response__number", "state_in_force", "value_in_force",
)  # fmt: skip


def current_judgements(run: Run, **only: Any) -> Iterator[Told]:
    """The newest attempt at every response as `judgement_frame` wants it, with the values in force.

    `only` narrows it to a metric or candidates, by field. Streamed: a million judgements never stand in memory as
    Python objects.
    """
    found = Judgement.objects.filter(run=run, current=True, rater=None, other_response=None, **only)
    found = found.order_by("position")  # as rows and responses lie in their tables: a third of the time
    for metric, candidate, line, number, state, value in found.values_list(*_COLUMNS).iterator(BATCH):
        yield metric, candidate, line, number, state, value, None


def overridden(run: Run) -> Counter[tuple[str, str]]:
    """How many overrides are in force, by names of (candidate, metric)."""
    judged = Judgement.objects.filter(run=run, override_value__isnull=False).order_by()
    counted = judged.values_list("candidate__name", "run_metric__name").annotate(count=Count("*"))
    return Counter({(candidate, metric): count for candidate, metric, count in counted})


def metrics_of(run: Run) -> dict[int, Metric]:
    """The run's metrics with their scales, in its order, by key."""
    definitions = [(one.pk, definition_now(one)) for one in _metrics(run)]
    return {pk: Metric(one.name, float(one.min_score), float(one.max_score)) for pk, one in definitions}


def _metrics(run: Run) -> list[RunMetric]:
    return list(run.metrics.order_by("number"))


def candidates_of(run: Run) -> dict[int, str]:
    """The names of the run's candidates, in the order of its data, by key."""
    return dict(run.run_candidates.order_by("candidate").values_list("candidate_id", "candidate__name"))


def truncated_of(run: Run) -> int:
    """Current judgements with a judge's reply that ended with its limit of tokens."""
    return matching(run, Filters(flag=TRUNCATED)).count()


def retries_of(run: Run) -> int:
    """Calls beyond the first of each question put to a judge model, and of each try at an answer. Replies that were
    taken from earlier ones, and what was never sent, made none."""
    asked = JudgeReply.objects.filter(judgement__run=run, copy_of=None).exclude(calls="[]").count()
    tries = Generation.objects.filter(run=run).exclude(calls="[]").count() if run.kind == INFER else 0
    return max(0, run.calls - asked - tries)


def wall_seconds(run: Run) -> float | None:
    """From the run's start to its end, or to now; None before it has started."""
    if run.started_at is None:
        return None
    return max(0.0, ((run.finished_at or timezone.now()) - run.started_at).total_seconds())


def questions_of(run: Run, lines: list[int]) -> dict[int, str]:
    """The last question of each of these rows, by line."""
    rows = Row.objects.filter(version=run.version_id, line__in=lines).values_list("line", "raw")
    form = cast(Format, run.version.format)
    return {line: row_data(raw, form)["question"] or "" for line, raw in rows}
