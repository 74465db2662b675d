"""Archiving: an object is hidden from lists, and nothing is deleted."""

from __future__ import annotations

from django.db import transaction
from django.db.models import Model
from django.utils import timezone

from evalsite.accounts.models import Project, User
from evalsite.audit import Action, record


@transaction.atomic
def archive(thing: Model, action: Action, project: Project, by: User | None = None) -> bool:
    """Archive an object. False if it was archived before."""
    active = type(thing)._default_manager.filter(pk=thing.pk, archived_at=None)
    if not active.update(archived_at=timezone.now()):
        return False
    record(action, project=project, thing=thing, by=by)
    return True


@transaction.atomic
def restore(thing: Model, action: Action, project: Project, by: User | None = None) -> bool:
    """Restore an archived object. False if it was not archived."""
    archived = type(thing)._default_manager.filter(pk=thing.pk, archived_at__isnull=False)
    if not archived.update(archived_at=None):
        return False
    record(action, project=project, thing=thing, by=by)
    return True
