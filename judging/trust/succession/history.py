"""Successions in the history of a metric."""

from __future__ import annotations

from django.urls import reverse
from django.utils.translation import gettext as _

from judging.core.statistics.succession import APART, TOGETHER
from judging.metrics.models import Metric
from judging.metrics.selectors import HistoryNote
from judging.trust.succession.models import Succession


def successions_in_history(metric: Metric) -> list[HistoryNote]:
    """The metric's finished successions, newest first."""
    rows = Succession.objects.filter(metric_version__metric=metric).exclude(finished_at=None)
    rows = rows.select_related("metric_version").order_by("-pk")
    return [
        HistoryNote(
            at=row.finished_at or row.created_at,
            text=_text(row),
            url=reverse("trust:succession", args=(metric.project.slug, row.pk)),
        )
        for row in rows
    ]


def _text(row: Succession) -> str:
    texts: dict[str, str] = {
        TOGETHER: _("v%(version)s: %(new)s after %(old)s, may stand in one table"),
        APART: _("v%(version)s: %(new)s after %(old)s, must not stand in one table"),
    }
    text = texts.get(row.decision) or _("v%(version)s: %(new)s after %(old)s, not decided")
    return text % {"version": row.metric_version.number, "new": row.new_judge, "old": row.old_judge}
