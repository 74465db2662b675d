"""Who is told that nobody works on a run any more: other rooms, by name, as they know of runs and not the reverse."""

from __future__ import annotations

from collections.abc import Iterable

from django.conf import settings
from django.utils.module_loading import import_string

from judging.runs.models import WORKED_ON, Run


def rested(run_id: int) -> None:
    """It has ended or was paused, or a reply came after that. Call in the transaction that stores it."""
    for name in settings.RUN_RESTS:
        import_string(name)(run_id)


def rested_before(run_ids: Iterable[int]) -> None:
    """The same of those among these runs that rest."""
    for pk in Run.objects.filter(pk__in=run_ids).exclude(state__in=WORKED_ON).values_list("pk", flat=True):
        rested(pk)
