"""The values that a reviewer may give a judgement, by its metric."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from datasets.core.kinds import PASS_FAIL
from judging.core.metric_definition import MetricDefinition
from judging.core.people.criteria import Criterion
from judging.core.results_file.records import COMPARISONS
from judging.core.values import Value
from judging.records.models import Judgement
from judging.review import selectors
from judging.review.forms import LARGEST, OverrideForm


def override_form(judgement: Judgement, data: Any = None, *, seen: int = 0) -> OverrideForm:
    """The form for a judgement, with the values that its metric allows."""
    metric = MetricDefinition.from_json(judgement.definition)
    choices = _choices(judgement, metric)
    return OverrideForm(
        data,
        least=metric.min_score if metric.scale_declared else -LARGEST,
        most=metric.max_score if metric.scale_declared else LARGEST,
        values=() if choices else selectors.values_like(judgement),
        choices=choices,
        initial={"seen": seen},
    )


def _choices(judgement: Judgement, metric: MetricDefinition) -> Sequence[Value]:
    """The only valid values; empty if any value of the type is valid."""
    if judgement.run.by_people:
        return Criterion.from_json(judgement.definition).choices
    if metric.compares_candidates:
        return COMPARISONS
    return (True, False) if metric.gives == PASS_FAIL else metric.label_names
