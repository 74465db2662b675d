"""Work that is in the rows of a table: one worker claims a row, renews its lease, and ends it or gives it back."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Model, QuerySet
from django.utils import timezone

from evalsite.storage.errors import database_unavailable
from evalsite.tasks import workers

log = logging.getLogger("datasets.importing.leases")

LEASE = timedelta(minutes=10)  # for a worker that hangs; a dead one is noticed by its process
RENEW_SECONDS = 0.5


class WorkStopped(Exception):
    """The worker was asked to stop, or no longer holds the row."""


@dataclass(frozen=True, slots=True)
class Leases:
    """Rows of `model` are in the state `waiting` until a worker claims them, then in `busy`.

    Where both are one state, the owner tells. A row that is given back has 0 again in the fields `begun`.
    """

    model: type[Model]
    waiting: str
    busy: str
    begun: tuple[str, ...] = ()

    def claim(self, pk: int, owner: str) -> bool:
        """Claim a waiting row. False if another worker holds it, or it is done."""
        free = self._rows(pk=pk, state=self.waiting, owner="")
        return bool(free.update(state=self.busy, owner=owner, lease_until=timezone.now() + LEASE))

    def held(self, pk: int, owner: str) -> QuerySet[Any]:
        """The row, if this owner still holds it."""
        return self._rows(pk=pk, state=self.busy, owner=owner)

    def end(self, pk: int, owner: str, state: str, **changes: object) -> bool:
        """Let a row go in another state. False if it was not this owner's any more."""
        return bool(self.held(pk, owner).update(state=state, owner="", lease_until=None, **changes))

    def give_back(self, pk: int, owner: str) -> bool:
        """Release a row, which waits again for any worker. False if this owner no longer held it."""
        return self.end(pk, owner, self.waiting, **dict.fromkeys(self.begun, 0))

    def free_lost(self, now: datetime | None = None) -> None:
        """Release rows whose worker is gone or stuck."""
        busy = self._rows(state=self.busy).exclude(state=self.waiting, owner="")
        for pk, owner, until in busy.values_list("pk", "owner", "lease_until"):
            expired = until is None or until < (now or timezone.now())
            if expired or not workers.is_held(owner, self.model, pk):
                self.give_back(pk, owner)

    def ids_waiting(self) -> QuerySet[Any]:
        """The rows that no worker has."""
        return self._rows(state=self.waiting, owner="").values_list("pk", flat=True)

    def ids_busy(self) -> set[int]:
        """The rows that workers have."""
        return set(self._rows(state=self.busy).values_list("pk", flat=True))

    def work(
        self,
        pk: int,
        owner: str,
        stop: threading.Event | None,
        work: Callable[[Hold], None],
        failed: Callable[[Exception], dict[str, Any]],
    ) -> bool:
        """Claim a row and do its work, which ends it. False if another worker holds it, or it is done.

        If the work stops, or the database is unavailable, the row waits again; `failed`: the fields for other errors.
        """
        if not self.claim(pk, owner):
            return False
        try:
            work(Hold(self, pk, owner, stop or threading.Event()))
        except WorkStopped:
            self.give_back(pk, owner)
        except Exception as error:  # whatever it was, it must not stay half done
            if database_unavailable(error):
                log.warning("%s %s is taken up when the database answers: %s", self.model.__name__, pk, error)
                self.give_back(pk, owner)
            else:
                self.end(pk, owner, **failed(error))
        return True

    def _rows(self, **which: object) -> QuerySet[Any]:
        return self.model._default_manager.filter(**which)


class Hold:
    """A row that was claimed."""

    def __init__(self, leases: Leases, pk: int, owner: str, stop: threading.Event) -> None:
        self.leases, self.pk, self.owner, self.stop = leases, pk, owner, stop
        self._renewed_at = time.monotonic()

    def renew(self, **changes: object) -> None:
        """Note how far the work is. Raises WorkStopped."""
        self._renewed_at = time.monotonic()
        held = self.leases.held(self.pk, self.owner)
        if not held.update(lease_until=timezone.now() + LEASE, **changes) or self.stop.is_set():
            raise WorkStopped

    def renew_at_times(self, **changes: object) -> bool:
        """The same, but not more often than twice a second: whether it was done. Raises WorkStopped."""
        if not self.stop.is_set() and time.monotonic() - self._renewed_at < RENEW_SECONDS:
            return False
        self.renew(**changes)
        return True

    def end(self, state: str, **changes: object) -> None:
        """The work is done. Raises WorkStopped if the row is not this worker's any more."""
        if not self.leases.end(self.pk, self.owner, state, **changes):
            raise WorkStopped
