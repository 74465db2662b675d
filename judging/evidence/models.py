"""What a project allows its evidence files to hold."""

from __future__ import annotations

from django.db import models

from evalsite.accounts.models import Project


class EvidenceRules(models.Model):
    """A project's rules for evidence files; without a row, those of the defaults."""

    project = models.OneToOneField(Project, on_delete=models.CASCADE, related_name="evidence_rules")
    hashes_only = models.BooleanField(
        default=False, help_text="rows, answers and requests stand in files as SHA-256 only"
    )
    host_names = models.BooleanField(default=False, help_text="files name the hosts of the judges' endpoints")
