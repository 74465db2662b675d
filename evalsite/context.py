"""What every page knows: the project that it is in, what the visitor may do there, the mode of the site."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest

from evalsite import access


def site(request: HttpRequest) -> dict[str, Any]:
    """`projects`, and `may` (names of permissions) for the `project` that a view put on the request."""
    project = getattr(request, "project", None)
    return {
        "project": project,
        "projects": access.projects_of(request.user) if hasattr(request, "user") else [],
        "may": {m.name.lower() for m in access.permissions(request, project)} if project else set(),
        "view_as": request.session.get(access.VIEW_AS, "") if hasattr(request, "session") else "",
        "local_mode": settings.LOCAL_MODE,
    }
