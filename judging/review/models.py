"""How members like to see judgements: saved views, filters with a name for one person or all members of a project; and
the columns of the list."""

from __future__ import annotations

from django.db import models

from evalsite.accounts.models import Project, User


class SavedView(models.Model):
    """A filter with its order, as it is in an address; it can be opened in every run of the project."""

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
    """The columns that a member has chosen to see in lists of judgements."""

    user = models.OneToOneField(User, on_delete=models.CASCADE, primary_key=True, related_name="list_columns")
    names = models.JSONField(default=list, help_text="of review/columns.py")
