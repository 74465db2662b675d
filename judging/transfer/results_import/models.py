"""Uploaded results files and the progress of their import."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from datasets.models import Version
from evalsite.accounts.models import Project, User
from judging.records.models import Run


class ResultsImportState(models.TextChoices):
    CHECKING = "checking", _("checking")
    CHECKED = "checked", _("checked")
    IMPORTING = "importing", _("importing")
    DONE = "done", _("imported")
    FAILED = "failed", _("not imported")


class ResultsImport(models.Model):
    """A results file that is stored, checked and, after confirmation, imported as verdicts of a run. If a worker dies,
    the next one continues after the last stored line."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="results_imports")
    version = models.ForeignKey(Version, on_delete=models.PROTECT, related_name="+")
    name = models.CharField(max_length=200, help_text="of the run")
    run = models.ForeignKey(Run, on_delete=models.SET_NULL, null=True, related_name="results_imports")
    file_name = models.CharField(max_length=255)
    stored_as = models.CharField(max_length=100)
    size = models.PositiveBigIntegerField(help_text="bytes")
    state = models.CharField(
        max_length=9, choices=ResultsImportState.choices, default=ResultsImportState.CHECKING
    )
    strict = models.BooleanField(default=False, db_default=False, help_text="all lines or none")
    confirmed = models.BooleanField(
        default=False, help_text="imported after the check without being asked again"
    )
    line = models.PositiveIntegerField(default=0, help_text="the last line that was read or stored")
    last_line = models.PositiveIntegerField(
        default=0, help_text="number of lines in the file; 0: not known yet"
    )
    first_position = models.PositiveIntegerField(
        null=True, help_text="position of its first judgement in the run"
    )
    new = models.PositiveIntegerField(default=0, help_text="verdicts that are new to the run")
    same = models.PositiveIntegerField(default=0, help_text="lines that repeat a stored verdict")
    refused = models.PositiveIntegerField(default=0)
    codes = models.JSONField(default=dict, help_text="{code: refused lines}")
    listed = models.JSONField(default=list, help_text="[[line, code, params]] of the first refused lines")
    metrics = models.JSONField(default=dict, help_text="{metric: {kind, scale, verdicts}}")
    sources = models.JSONField(default=list, help_text="[[kind, name, verdicts]]")
    models_found = models.JSONField(default=dict, help_text="{model: verdicts}")
    problem = models.CharField(
        max_length=40, blank=True, default="", help_text="code of the reason why nothing was imported"
    )
    problem_params = models.JSONField(default=dict)
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True)

    @property
    def under_way(self) -> bool:
        return self.state in (ResultsImportState.CHECKING, ResultsImportState.IMPORTING)


class OpenedEvidence(models.Model):
    """What an evidence file says of itself whose verdicts were imported as a run, and what `verify` says of it."""

    results_import = models.OneToOneField(ResultsImport, on_delete=models.CASCADE, related_name="evidence")
    document = models.JSONField(
        default=dict,
        help_text="of evidence.opening: origin, verification and licences; empty until a worker verified the file",
    )
    created_at = models.DateTimeField(auto_now_add=True)
