"""Leases for work stored as table rows: a worker claims a row, renews its lease, and ends or releases it."""

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
from evalsite.tasks.workers import WorkStopped

log = logging.getLogger("datasets.importing.leases")

LEASE = timedelta(minutes=10)  # for a worker that hangs; a dead one is detected by its process
RENEW_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Leases:
    """Leases on rows of `model`, which are in the state `waiting` until a worker claims them, then in `busy`.

    If both are the same state, the owner tells them apart. When a row is released, the fields in `begun` are reset to
    0.
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
        """The row, if it is still owned by `owner`."""
        return self._rows(pk=pk, state=self.busy, owner=owner)

    def end(self, pk: int, owner: str, state: str, **changes: object) -> bool:
        """Release a row into another state. False if it is no longer owned by `owner`."""
        return bool(self.held(pk, owner).update(state=state, owner="", lease_until=None, **changes))

    def give_back(self, pk: int, owner: str) -> bool:
        """Release a row for any worker. False if it is no longer owned by `owner`."""
        return self.end(pk, owner, self.waiting, **dict.fromkeys(self.begun, 0))

    def free_lost(self, now: datetime | None = None) -> None:
        """Release rows whose worker is gone or stuck."""
        busy = self._rows(state=self.busy).exclude(state=self.waiting, owner="")
        for pk, owner, until in busy.values_list("pk", "owner", "lease_until"):
            expired = until is None or until < (now or timezone.now())
            if expired or not workers.is_held(owner, self.model, pk):
                self.give_back(pk, owner)

    def reconcile(self, wake: Callable[[int], object]) -> None:
        """Release rows whose worker is gone, and call `wake` for each row that waits."""
        self.free_lost()
        for pk in self.ids_waiting():
            wake(pk)

    def ids_waiting(self) -> QuerySet[Any]:
        """IDs of the rows that no worker owns."""
        return self._rows(state=self.waiting, owner="").values_list("pk", flat=True)

    def ids_busy(self) -> set[int]:
        """IDs of the rows owned by workers."""
        return set(self._rows(state=self.busy).values_list("pk", flat=True))

    def work(
        self,
        pk: int,
        owner: str,
        stop: threading.Event | None,
        work: Callable[[Hold], None],
        failed: Callable[[Exception], dict[str, Any]],
    ) -> bool:
        """Claim a row and call `work`, which ends it. False if it is owned by another worker or already done.

        If the work stops, or the database is unavailable, the row waits again; `failed` returns the fields for other
        errors.
        """
        if not self.claim(pk, owner):
            return False
        try:
            work(Hold(self, pk, owner, stop or threading.Event()))
        except WorkStopped:
            self.give_back(pk, owner)
        except Exception as error:  # no error may leave the row half done
            if database_unavailable(error):
                log.warning(
                    "%s %s will be resumed when the database answers: %s", self.model.__name__, pk, error
                )
                self.give_back(pk, owner)
            else:
                self.end(pk, owner, **failed(error))
        return True

    def _rows(self, **which: object) -> QuerySet[Any]:
        return self.model._default_manager.filter(**which)


class Hold:
    """A claimed row."""

    def __init__(self, leases: Leases, pk: int, owner: str, stop: threading.Event) -> None:
        self.leases, self.pk, self.owner, self.stop = leases, pk, owner, stop
        self._renewed_at = time.monotonic()

    def renew(self, **changes: object) -> None:
        """Store progress and renew the lease. Raises WorkStopped."""
        self._renewed_at = time.monotonic()
        held = self.leases.held(self.pk, self.owner)
        if not held.update(lease_until=timezone.now() + LEASE, **changes) or self.stop.is_set():
            raise WorkStopped

    def renew_at_times(self, **changes: object) -> bool:
        """Like `renew`, at most twice a second; returns whether it was renewed. Raises WorkStopped."""
        if not self.stop.is_set() and time.monotonic() - self._renewed_at < RENEW_SECONDS:
            return False
        self.renew(**changes)
        return True

    def end(self, state: str, **changes: object) -> None:
        """End the work. Raises WorkStopped if this worker no longer owns the row."""
        if not self.leases.end(self.pk, self.owner, state, **changes):
            raise WorkStopped
