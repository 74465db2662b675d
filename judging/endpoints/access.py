"""Access to endpoints with permission checks. Views must load endpoints through here."""

from __future__ import annotations

from django.http import HttpRequest
from django.shortcuts import get_object_or_404

from evalsite import access
from evalsite.access import May
from judging.endpoints.models import Endpoint


def get_endpoint(request: HttpRequest, slug: str, endpoint_id: int, may: May) -> Endpoint:
    """Return an endpoint of the project `slug`. Raises Http404 or PermissionDenied."""
    project = access.get_project(request, slug, may)
    return get_object_or_404(Endpoint, project=project, pk=endpoint_id)
