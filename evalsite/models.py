"""What the site itself must remember: which worker processes are alive."""

from __future__ import annotations

from django.db import models


class WorkerProcess(models.Model):
    """One worker process and when it was last heard of. Rows of the dead are removed by the reconciler."""

    owner = models.CharField(max_length=120)
    queue = models.CharField(max_length=20)
    started_at = models.DateTimeField(auto_now_add=True)
    seen_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["owner", "queue"], name="worker_once")]
