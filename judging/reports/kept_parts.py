"""Parts of a large run's report that no page may wait for and few readers ask for: the items behind figures, kept with
the figures, and slices by a field, worked out when a page asks for them."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import md5

from judging.reports.models import KeptPart
from judging.runs.models import Run

LAYOUT = 2  # of what is packed; to be raised whenever it changes


def digest(name: str) -> str:
    return md5(name.encode(), usedforsecurity=False).hexdigest()


def part_of(run: Run, name: str) -> KeptPart | None:
    """None before it was worked out."""
    return KeptPart.objects.filter(run=run, digest=digest(name), layout=LAYOUT).first()


def parts_replace(run: Run, prefix: str, packed: Mapping[str, bytes], revision: int) -> None:
    """All parts whose names start with this are these from now on."""
    KeptPart.objects.filter(run=run, name__startswith=prefix).delete()
    for name, one in packed.items():
        part_keep(run, prefix + name, one, revision)


def part_keep(run: Run, name: str, packed: bytes, revision: int) -> None:
    made = {"name": name, "layout": LAYOUT, "revision": revision, "packed": packed}
    KeptPart.objects.update_or_create(run=run, digest=digest(name), defaults=made)


def part_want(run: Run, name: str) -> None:
    """A page waits for it."""
    KeptPart.objects.update_or_create(run=run, digest=digest(name), defaults={"name": name, "wanted": True})
