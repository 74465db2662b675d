"""A run's results by the values of a field, computed by the page for small runs and by a worker for large ones."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from django.core.cache import cache

from judging.core.statistics.report import breakdown
from judging.reports import kept_parts, selectors
from judging.reports.frames import run_frame
from judging.reports.kept_parts import digest, part_keep, part_of, part_want
from judging.reports.models import KeptPart
from judging.reports.selectors import FieldUnknown
from judging.runs.definitions import definitions_now
from judging.runs.models import Run

LAYOUT = 2  # of a breakdown in the cache; increase it when it changes
KEPT_SECONDS = 24 * 3600
PREFIX = "by:"


class Slices(NamedTuple):
    """`breakdown`: None if no row has the field, or nothing has been computed yet; `due`: whether to (re)compute it."""

    breakdown: dict[str, Any] | None
    due: bool


def breakdowns_of(run: Run, fields: Sequence[str]) -> list[dict[str, Any]]:
    """Compute one breakdown per field from the run's current state. Raises FieldUnknown for a field that no row has."""
    values = selectors.values_of_fields(run, fields)
    definitions = definitions_now(run)
    frame, metrics = run_frame(run, definitions), [selectors.scaled(one) for one in definitions.values()]
    return [dict(breakdown(frame, metrics, field, values[field])) for field in fields]


def at_once(run: Run, field: str, revision: int) -> dict[str, Any] | None:
    """A small run's breakdown, cached per revision; None if no row has the field."""
    key = f"breakdown.{LAYOUT}:{run.pk}:{revision}:{digest(field)}"
    found: dict[str, Any] | None = cache.get(key)
    if found is None:
        try:
            (found,) = breakdowns_of(run, [field])
        except FieldUnknown:
            return None
        cache.set(key, found, KEPT_SECONDS)
    return found


def kept(run: Run, field: str, revision: int) -> Slices:
    """A large run's stored slices; `revision`: of the figures next to them."""
    part = part_of(run, PREFIX + field)
    if part is None or not part.packed:
        return Slices(None, due=True)
    return Slices(json.loads(bytes(part.packed)), part.revision < revision)


def default_field(run: Run) -> str:
    """The field by which a report shows slices by default, once the run has ended; '' for none."""
    return selectors.informative_field(run) if run.rests else ""


def want(run: Run, field: str) -> None:
    """Request slices from a worker; the caller wakes it."""
    part_want(run, PREFIX + field)


def keep_wanted() -> None:
    """Compute and store the requested slices; after a failure, the next request by a page tries again."""
    for part in list(KeptPart.objects.filter(wanted=True).select_related("run").order_by("pk")):
        KeptPart.objects.filter(pk=part.pk).update(wanted=False)
        run, field = part.run, part.name.removeprefix(PREFIX)
        if part.packed and part.layout == kept_parts.LAYOUT and part.revision >= run.revision:
            continue  # requested again during the computation
        try:
            (found,) = breakdowns_of(run, [field])
        except FieldUnknown:
            found = {}
        part_keep(run, part.name, json.dumps(found or None).encode(), run.revision)
