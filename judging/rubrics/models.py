"""Drafts of rows' rubrics by models."""

from __future__ import annotations

from django.db import models

from datasets.models import RowEdit, Version
from judging.metrics.models import ModelDraft


class RubricDraft(ModelDraft):
    """Criteria that a model proposed for a row. Each counts once a person accepted it and the row's edit became part of
    a version; where it came from stays here and in the criterion (`drafted_by`)."""

    version = models.ForeignKey(Version, on_delete=models.CASCADE, related_name="rubric_drafts")
    line = models.PositiveIntegerField()
    lines = models.JSONField(
        default=list, help_text="[{criterion, points, decision: '', accepted or discarded}]"
    )
    edit = models.ForeignKey(
        RowEdit,
        on_delete=models.SET_NULL,
        null=True,
        related_name="+",
        help_text="the last with accepted lines",
    )

    class Meta:
        indexes = [models.Index(fields=["version", "line"], name="rubric_draft_of_row")]
