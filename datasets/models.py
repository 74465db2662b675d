"""Data sets, their immutable versions, and what a version holds.

The importer fills rows, responses and findings by plain SQL (see storing.py); nothing changes them afterwards.
"""

from __future__ import annotations

from pathlib import Path

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from evalsite.accounts.models import Project, User


class Dataset(models.Model):
    """A named, versioned set of rows."""

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="datasets")
    name = models.CharField(max_length=200)
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    archived_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "name"], name="dataset_name_once")]


class VersionState(models.TextChoices):
    WAITING = "waiting", _("waiting to be read")
    READING = "reading", _("being read")
    READY = "ready", _("ready")
    FAILED = "failed", _("could not be read")
    CANCELLED = "cancelled", _("cancelled")


class Version(models.Model):
    """One uploaded or repaired file and what was found in it. Never changes once it has been read."""

    dataset = models.ForeignKey(Dataset, on_delete=models.PROTECT, related_name="versions")
    number = models.PositiveIntegerField()
    state = models.CharField(max_length=10, choices=VersionState.choices, default=VersionState.WAITING)
    origin = models.CharField(max_length=20, default="upload")
    parent = models.ForeignKey("self", on_delete=models.PROTECT, null=True, related_name="children")
    file_name = models.CharField(max_length=255)
    stored_as = models.CharField(max_length=255, help_text="path below DATA_DIR")
    size = models.BigIntegerField(default=0)
    sha256 = models.CharField(max_length=64, blank=True, default="")
    chosen_format = models.CharField(
        max_length=20, blank=True, default="", help_text="as corrected by the uploader"
    )
    format = models.CharField(max_length=20, blank=True, default="")
    format_why = models.JSONField(default=dict)
    encoding = models.CharField(max_length=20, blank=True, default="")
    bytes_read = models.BigIntegerField(default=0)
    rows = models.PositiveIntegerField(default=0)
    valid_rows = models.PositiveIntegerField(default=0)
    counts = models.JSONField(default=dict, help_text="{finding code: how many}, complete")
    models_found = models.JSONField(default=dict, help_text="{model name: {rows, responses}}")
    fields_found = models.JSONField(default=dict, help_text="{custom field: rows}")
    problem = models.TextField(blank=True, default="", help_text="why the reading failed")
    left_out_at = models.DateTimeField(null=True, help_text="when somebody chose to leave the bad rows out")
    left_out_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    cancel_wanted = models.BooleanField(default=False)
    owner = models.CharField(max_length=120, blank=True, default="", help_text="the worker that reads it")
    lease_until = models.DateTimeField(null=True)
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["dataset", "number"], name="version_number_once")]

    @property
    def path(self) -> Path:
        """Where the original bytes are kept."""
        return Path(settings.DATA_DIR) / self.stored_as

    @property
    def bad_rows(self) -> int:
        return self.rows - self.valid_rows

    @property
    def usable(self) -> bool:
        """May a run use it? Bad rows must have been left out on purpose."""
        return (
            self.state == VersionState.READY
            and self.valid_rows > 0
            and (not self.bad_rows or self.left_out_at is not None)
        )


class Row(models.Model):
    """One line of the upload. `raw` is its JSON text without `model_outputs`; of a bad row the text as met."""

    version = models.ForeignKey(Version, on_delete=models.CASCADE, db_index=False, related_name="data_rows")
    line = models.PositiveIntegerField()
    valid = models.BooleanField()
    raw = models.TextField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["version", "line"], name="row_line_once")]
        indexes = [models.Index(fields=["version", "line"], condition=models.Q(valid=False), name="row_bad")]


class Candidate(models.Model):
    """A model under test whose answers a version holds."""

    version = models.ForeignKey(Version, on_delete=models.CASCADE, related_name="candidates")
    name = models.TextField()
    source = models.CharField(max_length=10, default="uploaded")
    rows = models.PositiveIntegerField(default=0)
    responses = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["version", "name", "source"], name="candidate_once")]


class Response(models.Model):
    """One answer of one candidate to one row. `raw` is the JSON text of the response object."""

    row = models.ForeignKey(Row, on_delete=models.CASCADE, db_index=False, related_name="responses")
    candidate = models.ForeignKey(
        Candidate, on_delete=models.CASCADE, db_index=False, db_constraint=False, related_name="answers"
    )
    number = models.PositiveSmallIntegerField(help_text="from 1, within row and candidate")
    raw = models.TextField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["row", "candidate", "number"], name="response_once")]


class Finding(models.Model):
    """Something wrong or odd in a version; its sentence is made by messages.py in the reader's language."""

    version = models.ForeignKey(Version, on_delete=models.CASCADE, db_index=False, related_name="findings")
    code = models.CharField(max_length=40)
    severity = models.CharField(max_length=7)
    line = models.PositiveIntegerField(null=True)
    column = models.PositiveIntegerField(null=True)
    path = models.TextField(blank=True, default="")
    repair = models.CharField(max_length=40, blank=True, default="")
    params = models.JSONField(default=dict)

    class Meta:
        indexes = [models.Index(fields=["version", "code", "line"], name="finding_by_code")]
