"""Queries for endpoints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from django.db.models import Q, QuerySet

from evalsite.accounts.models import Project
from evalsite.hooks import Hook
from judging.endpoints.models import Endpoint

metrics_using: Hook[Callable[[Endpoint], Sequence[Any]]] = Hook("judging.endpoints.selectors.metrics_using")
"""List what uses an endpoint."""


def endpoints_of(project: Project, *, archived: bool = False) -> QuerySet[Endpoint]:
    """The project's endpoints by name, without drafts."""
    rows = Endpoint.objects.filter(project=project, archived_at__isnull=not archived, draft=False)
    return rows.order_by("name")


def endpoint_drafts(project: Project) -> QuerySet[Endpoint]:
    """Endpoints whose connection test failed and that have not been published anyway."""
    return Endpoint.objects.filter(project=project, archived_at=None, draft=True).order_by("name")


def offers_batches(endpoint: Endpoint) -> bool:
    """Whether its connection test found that the server offers batches."""
    return bool(endpoint.probe.get("batches"))


def any_encrypted() -> bool:
    """Whether any endpoint holds a secret that only our key can decrypt."""
    empty = Q(key_encrypted="", headers_encrypted="", proxy_encrypted="")
    return Endpoint.objects.exclude(empty).exists()
