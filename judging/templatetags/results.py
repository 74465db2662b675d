"""What templates say of candidates and results."""

from __future__ import annotations

from collections.abc import Mapping

from django import template
from django.utils.safestring import SafeString, mark_safe

from judging.core.charts.series import mark

register = template.Library()


@register.filter
def candidate_mark(name: str, series: Mapping[str, int]) -> SafeString:
    """The candidate's colour and shape; nothing for one without a number."""
    return mark_safe(mark(series[name]) if name in series else "")  # noqa: S308 (paths of ours)
