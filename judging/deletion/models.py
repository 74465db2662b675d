"""What people deleted and workers have not removed yet."""

from __future__ import annotations

from django.db import models


class Deletion(models.Model):
    """An object to be removed with everything that belongs to it. Deleted when that is done."""

    kind = models.CharField(max_length=10, help_text="a key of kinds.KINDS")
    object_id = models.BigIntegerField()
    files = models.JSONField(default=list, help_text="names of stored files that nothing may use any more")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["kind", "object_id"], name="deletion_once")]
