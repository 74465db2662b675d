"""Members' settings for lists of judgements: saved views (named filters, personal or shared within a project) and
columns."""

from __future__ import annotations

from django.db import models

from evalsite.accounts.models import Project, User


class SavedView(models.Model):
    """A named filter with its sort order, as a query string; it can be opened in every run of the project."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="saved_views")
    owner = models.ForeignKey(User, on_delete=models.CASCADE, db_index=False, related_name="saved_views")
    name = models.CharField(max_length=100)
    query = models.TextField(help_text="without the question mark")
    shared = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["owner", "project", "name"], name="saved_view_name_once")
        ]


class ListColumns(models.Model):
    """The columns that a user has chosen for lists of judgements."""

    user = models.OneToOneField(User, on_delete=models.CASCADE, primary_key=True, related_name="list_columns")
    names = models.JSONField(default=list, help_text="column names of review/columns.py")
