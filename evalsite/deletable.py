"""Objects that people can delete: hidden from all pages at once, then removed by a worker in batches."""

from __future__ import annotations

from typing import TypeVar

from django.db import models

Row = TypeVar("Row", bound=models.Model)


class NotDeleted(models.Manager[Row]):
    """Only objects that were not deleted, so that no page can load one while a worker removes it."""

    def get_queryset(self) -> models.QuerySet[Row]:
        return super().get_queryset().filter(deleted_at=None)


class Everything(models.Manager[Row]):
    """Also objects that were deleted and are not removed yet."""


class Deletable(models.Model):
    """`objects` are those that were not deleted; only what removes objects uses `all_objects`."""

    deleted_at = models.DateTimeField(null=True, help_text="when it was deleted; a worker is removing it")

    objects = NotDeleted()
    all_objects = Everything()

    class Meta:
        abstract = True
