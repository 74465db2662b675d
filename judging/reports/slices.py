"""A run's results by the values of a field, computed by the page for small runs and by a worker for large ones."""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import md5
from typing import Any, NamedTuple

from django.core.cache import cache
from django.db import transaction

from evalsite.models import Derived
from evalsite.tasks import jobs
from evalsite.tasks.jobs import Hold
from judging.core.statistics.report import breakdown
from judging.records.definitions import definitions_now
from judging.records.models import Run
from judging.reports import selectors
from judging.reports.frames import run_frame
from judging.reports.selectors import FieldUnknown
from judging.reports.stored import SLICES

JOB = "compute_slices"
CACHE_SECONDS = 24 * 3600


class Slices(NamedTuple):
    """`breakdown`: None if no row has the field, or nothing has been computed yet; `due`: whether to (re)compute it."""

    breakdown: dict[str, Any] | None
    due: bool


def breakdowns_of(run: Run, fields: Sequence[str]) -> list[dict[str, Any]]:
    """Compute one breakdown per field from the run's current state. Raises FieldUnknown for a field that no row has."""
    values = selectors.values_of_fields(run, fields)
    definitions = definitions_now(run)
    frame, metrics = (
        run_frame(run, definitions),
        [selectors.scaled(definition) for definition in definitions.values()],
    )
    return [dict(breakdown(frame, metrics, field, values[field])) for field in fields]


def cached_breakdown(run: Run, field: str, revision: int) -> dict[str, Any] | None:
    """A small run's breakdown, cached per revision; None if no row has the field."""
    key = f"breakdown.{SLICES.layout}:{run.pk}:{revision}:{_digest(field)}"
    computed: dict[str, Any] | None = cache.get(key)
    if computed is None:
        try:
            (computed,) = breakdowns_of(run, [field])
        except FieldUnknown:
            return None
        cache.set(key, computed, CACHE_SECONDS)
    return computed


def _digest(field: str) -> str:
    return md5(field.encode(), usedforsecurity=False).hexdigest()


def stored_slices(run: Run, field: str, revision: int) -> Slices:
    """A large run's stored slices; `revision`: of the figures next to them."""
    stored = SLICES.get(run.pk, field)
    if stored is None:
        return Slices(None, due=True)
    return Slices(json.loads(bytes(stored.value)), stored.revision < revision)


def default_field(run: Run) -> str:
    """The field by which a report shows slices by default, once the run has ended; '' for none."""
    return selectors.informative_field(run) if run.is_idle else ""


def request(run: Run, field: str) -> None:
    """Have a worker compute slices."""
    jobs.request(JOB, SLICES.place(run.pk, field).pk)


@jobs.job(JOB, Derived)
def compute_slices(hold: Hold, stored: Derived) -> None:
    """Compute and store slices of a large run. After a failure, the next page that needs them tries again."""
    run, (field,) = Run.objects.get(pk=stored.subject), stored.part
    if stored.layout == SLICES.layout and stored.revision >= run.revision:
        return  # requested again during the computation
    try:
        (computed,) = breakdowns_of(run, [field])
    except FieldUnknown:
        computed = {}
    with transaction.atomic():
        hold.finish()
        SLICES.fill(stored, json.dumps(computed or None).encode(), run.revision)
