"""Versions whose rows have rubrics, and runs of checklists over them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from datasets.models import Row, Version
from evalsite.accounts.models import Project
from judging.core.metric_definition import MetricDefinition
from tests.make import a_metric, a_version

TEMPLATE = "Q: {{ data.question }}\nA: {{ response.content }}\nC: {{ criterion.text }}"
RUBRIC = [
    {"criterion": "names a dose", "points": 7, "tags": ["accuracy"]},
    {"criterion": "is kind", "points": 4, "tags": ["style"]},
    {"criterion": "recommends antibiotics", "points": -6, "tags": ["accuracy"]},
]


def with_rubrics(
    project: Project, rubrics: Sequence[Any], models: Sequence[str] = ("alpha", "beta")
) -> Version:
    """A version with a row for each rubric."""
    version = a_version(project, rows=len(rubrics), models=models)
    for row, rubric in zip(Row.objects.filter(version=version).order_by("line"), rubrics, strict=True):
        Row.objects.filter(pk=row.pk).update(raw=json.dumps({**json.loads(row.raw), "rubric": rubric}))
    return version


def a_checklist(url: str, **changes: Any) -> MetricDefinition:
    scale = {"min_score": 0, "max_score": 1, "gives": "checklist", "template": TEMPLATE}
    return a_metric(url, **(scale | changes))
