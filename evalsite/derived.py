"""The store of derived results: what is computed from other tables, and can be at any time again.

A result belongs to a subject, of which it may be one of many parts (a metric and a candidate, a field); each part is
fetched alone. It is stale if the subject's revision is another one now, and gone if its layout is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import md5
from itertools import islice
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from evalsite.models import Derived

Part = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Results:
    """The results of one kind. Increase `layout` when the format of their values changes."""

    kind: str
    layout: int

    def get(self, subject: int, *part: str) -> Derived | None:
        """None until it was computed in this layout."""
        return self.all().filter(subject=subject, key=_key(part)).first()

    def all(self) -> QuerySet[Derived]:
        return Derived.objects.filter(kind=self.kind, layout=self.layout)

    def of_any_layout(self) -> QuerySet[Derived]:
        """Also those computed in an earlier layout, for values that can still be read."""
        return Derived.objects.filter(kind=self.kind).exclude(layout=0)

    def put(self, subject: int, *part: str, value: bytes, revision: int, took: float = 0.0) -> None:
        """Store a result of the subject at a revision, which took so many seconds."""
        stored = {"part": part, **self._computed(value, revision, took)}
        Derived.objects.update_or_create(kind=self.kind, subject=subject, key=_key(part), defaults=stored)

    def fill(self, row: Derived, value: bytes, revision: int = 0, took: float = 0.0) -> bool:
        """Like `put`, into a row that `place` returned. False if it was deleted meanwhile."""
        return bool(Derived.objects.filter(pk=row.pk).update(**self._computed(value, revision, took)))

    def fail(self, row: Derived, revision: int) -> None:
        """Store when and at which revision a result could not be computed. The last result stays."""
        Derived.objects.filter(pk=row.pk).update(revision=revision, computed_at=timezone.now())

    def _computed(self, value: bytes, revision: int, took: float) -> dict[str, Any]:
        now = timezone.now()
        return {
            "layout": self.layout,
            "value": value,
            "revision": revision,
            "seconds": took,
            "computed_at": now,
        }

    @transaction.atomic
    def replace(self, subject: int, values: Mapping[Part, bytes], revision: int) -> None:
        """Store these parts of a subject, and delete all others."""
        Derived.objects.filter(kind=self.kind, subject=subject).delete()
        rows = (
            Derived(
                kind=self.kind,
                subject=subject,
                key=_key(part),
                part=part,
                **self._computed(value, revision, took=0.0),
            )
            for part, value in values.items()
        )
        while batch := list(islice(rows, 100)):
            Derived.objects.bulk_create(batch)

    def place(self, subject: int, *part: str, inputs: bytes = b"") -> Derived:
        """The row of a result, for a job if it is not computed; `inputs`: what the job needs, its value until then."""
        row, _new = Derived.objects.get_or_create(
            kind=self.kind, subject=subject, key=_key(part), defaults={"part": part, "value": inputs}
        )
        if row.layout not in (0, self.layout):
            row.layout, row.value = 0, inputs
            row.save(update_fields=["layout", "value"])
        return row

    def placed(self, subject: int, *part: str) -> Derived | None:
        """The row that `place` made; None if there is none."""
        rows = Derived.objects.filter(kind=self.kind, layout__in=(0, self.layout))
        return rows.filter(subject=subject, key=_key(part)).first()


def of_subjects(kinds: Iterable[Results], subjects: Any) -> QuerySet[Derived]:
    """All rows of these kinds about these subjects (ids, or a query of ids)."""
    return Derived.objects.filter(kind__in=[results.kind for results in kinds], subject__in=subjects)


def of_parts(kind: Results, parts: Iterable[Part]) -> QuerySet[Derived]:
    """All rows of a kind about these parts of any subject."""
    return Derived.objects.filter(kind=kind.kind, key__in=[_key(part) for part in parts])


def _key(part: Part) -> str:
    return md5(json.dumps(part).encode(), usedforsecurity=False).hexdigest()
