"""Questions that raters ask about items, and what the organisers answer."""

from __future__ import annotations

from django.db import models

from evalsite import clock
from evalsite.accounts.models import User
from judging.people.models import EvaluationRater, Item


class Question(models.Model):
    """A rater's question about an item. The client creates `key`, so a double submit is stored once."""

    rater = models.ForeignKey(EvaluationRater, on_delete=models.CASCADE, related_name="questions")
    item = models.ForeignKey(Item, on_delete=models.CASCADE, related_name="questions")
    key = models.UUIDField(unique=True)
    text = models.TextField()
    at = models.DateTimeField(default=clock.now)
    answer = models.TextField(blank=True, default="", help_text="Markdown")
    to_all = models.BooleanField(default=False, help_text="the answer is listed in every rater's guideline")
    answered_at = models.DateTimeField(null=True)
    answered_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
