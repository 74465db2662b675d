"""Template tags for metrics."""

from __future__ import annotations

from django import template

from evalsite.templatetags.show import score
from judging.core.metric_definition import MetricDefinition
from judging.metrics.editor.kind_fields import GIVES_NAMES, form_kind

register = template.Library()
_SCORES = ("score", "")
"""Kinds whose values are on the metric's own scale."""


@register.filter
def what_it_gives(definition: MetricDefinition) -> str:
    """The kind of verdict, and of scores the scale: Pass or fail; Score 1–10."""
    kind = form_kind(definition)
    name = str(GIVES_NAMES.get("score" if definition.rules else kind, kind))
    if kind not in _SCORES:
        return name
    return f"{name} {score(definition.min_score)}–{score(definition.max_score)}"
