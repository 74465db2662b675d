"""What reviewers add to a judgement. Appended, never changed."""

from __future__ import annotations

from django.db import models

from evalsite.accounts.models import User
from judging.runs.models import Judgement


class Override(models.Model):
    """A reviewer's value in place of a judgement's; the first value stays, the newest override counts."""

    judgement = models.ForeignKey(Judgement, on_delete=models.CASCADE, related_name="overrides")
    value = models.TextField(help_text="exact, as JSON")
    score = models.FloatField(null=True)
    reason = models.TextField()
    by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    at = models.DateTimeField(auto_now_add=True)
