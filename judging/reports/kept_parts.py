"""Slow, rarely requested parts of a large run's report: the items behind figures, stored with the figures, and
slices by a field, computed on request."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import md5

from judging.reports.models import KeptPart
from judging.runs.models import Run

LAYOUT = 2  # of the packed data; increase it when the format changes


def digest(name: str) -> str:
    return md5(name.encode(), usedforsecurity=False).hexdigest()


def part_of(run: Run, name: str) -> KeptPart | None:
    """None until it has been computed."""
    return KeptPart.objects.filter(run=run, digest=digest(name), layout=LAYOUT).first()


def parts_replace(run: Run, prefix: str, packed: Mapping[str, bytes], revision: int) -> None:
    """Replace all parts whose names start with this."""
    KeptPart.objects.filter(run=run, name__startswith=prefix).delete()
    for name, one in packed.items():
        part_keep(run, prefix + name, one, revision)


def part_keep(run: Run, name: str, packed: bytes, revision: int) -> None:
    made = {"name": name, "layout": LAYOUT, "revision": revision, "packed": packed}
    KeptPart.objects.update_or_create(run=run, digest=digest(name), defaults=made)


def part_want(run: Run, name: str) -> None:
    """Request a part for a page."""
    KeptPart.objects.update_or_create(run=run, digest=digest(name), defaults={"name": name, "wanted": True})
