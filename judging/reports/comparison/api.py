"""Why the scores of two runs differ, as the API shows it."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from ninja import Router, Schema

from evalsite.api.lists import Id
from judging.people.access import hidden_among
from judging.records.access import get_run
from judging.reports.comparison.results import Comparison, changes_of, comparison_of
from judging.reports.comparison.services import stored_document

router = Router()


class CompareOut(Schema):
    """`state`: `ready`, `computing` or `failed`. `metrics`: the document of `compare --json`, of the last time that it
    was computed; null before."""

    a: int
    b: int
    state: str
    metrics: dict[str, dict[str, Any]] | None


@router.get(
    "projects/{slug}/runs/{a}/compare/{b}", response=CompareOut, summary="Why the scores of two runs differ"
)
def compare(request: HttpRequest, slug: str, a: Id, b: Id) -> dict[str, Any]:
    """From run `a`, the earlier one, to run `b`. Large runs are compared in the background: ask again while `state` is
    `computing`."""
    before, after = get_run(request, slug, a), get_run(request, slug, b)
    if hidden_among(request, [before, after]):
        raise PermissionDenied
    comparison = comparison_of(before, after)
    changes = changes_of(comparison)
    metrics = None if changes is None else stored_document(changes)
    return {"a": before.pk, "b": after.pk, "state": _state(comparison), "metrics": metrics}


def _state(comparison: Comparison) -> str:
    return "failed" if comparison.failed else "computing" if comparison.under_way else "ready"
