"""The definition that a run reads a metric's replies with: its frozen copy, or the newest re-parsing of all of them."""

from __future__ import annotations

from judging.core.metric_definition import MetricDefinition
from judging.records.models import Reading, Run, RunMetric


def definition_now(run_metric: RunMetric) -> MetricDefinition:
    """The definition that the run currently parses this metric's replies with."""
    newest = run_metric.readings.filter(sends_requests=False, whole=True).order_by("-number").first()
    return MetricDefinition.from_json((newest or run_metric).definition)


def definitions_now(run: Run) -> dict[int, MetricDefinition]:
    """The current definitions of all metrics of a run, in order, by run metric id. Makes two queries."""
    readings = Reading.objects.filter(run_metric__run=run, sends_requests=False, whole=True).order_by(
        "number"
    )
    newest = dict(readings.values_list("run_metric_id", "definition"))
    frozen = run.metrics.order_by("number").values_list("pk", "definition")
    return {pk: MetricDefinition.from_json(newest.get(pk, text)) for pk, text in frozen}
