"""Files of ratings that were imported, or are being imported."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from evalsite.accounts.models import User
from judging.people.models import Evaluation


class ImportState(models.TextChoices):
    WAITING = "waiting", _("waiting")
    READING = "reading", _("importing")
    UNDOING = "undoing", _("undoing import")
    DONE = "done", _("imported")
    UNDONE = "undone", _("not imported")


class RatingsImport(models.Model):
    """A ratings file: stored until it is read, and imported completely, or not at all if that fails or is stopped."""

    evaluation = models.ForeignKey(Evaluation, on_delete=models.CASCADE, related_name="imports")
    file_name = models.CharField(max_length=255)
    stored_as = models.CharField(max_length=100)
    size = models.PositiveBigIntegerField(help_text="bytes")
    state = models.CharField(max_length=8, choices=ImportState.choices, default=ImportState.WAITING)
    lines = models.PositiveIntegerField(default=0, help_text="number of lines in the file; 0: not known yet")
    line = models.PositiveIntegerField(default=0, help_text="the last line processed")
    new = models.PositiveIntegerField(default=0)
    already_imported = models.PositiveIntegerField(default=0, help_text="lines that were imported before")
    not_current = models.PositiveIntegerField(default=0, help_text="lines that were changed or undone since")
    invalid = models.PositiveIntegerField(default=0)
    bad_lines = models.JSONField(default=list, help_text="[[line, code, params]] of the first invalid lines")
    problem = models.CharField(
        max_length=12, blank=True, default="", help_text="code of the reason why it was not imported"
    )
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True)
