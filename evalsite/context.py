"""Template context for every page: the current project, the user's permissions, and the site's mode."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest

from evalsite import access
from evalsite.accounts.models import Role
from evalsite.health import is_disk_full

THEME_COOKIE = "evalsite_theme"
THEMES = ("light", "dark")


def site(request: HttpRequest) -> dict[str, Any]:
    """The context; `may` has the names of permissions in the `project` set on the request by access.get_project."""
    user = getattr(request, "user", None)
    project = getattr(request, "project", None)
    theme = request.COOKIES.get(THEME_COOKIE, "")
    return {
        "project": project,
        "projects": access.open_projects_of(user) if user is not None else [],
        "may": {may.name.lower() for may in access.permissions(request, project)} if project else set(),
        "manages_site": user is not None and access.manages_site(request),
        "may_view_as": user is not None and access.may_view_as(request),
        "roles": Role.choices,
        "view_as": request.session.get(access.VIEW_AS, "") if hasattr(request, "session") else "",
        "disk_full": is_disk_full(),
        "local_mode": settings.LOCAL_MODE,
        "base_path": settings.CONFIG.base_path,
        "form_limit": settings.DATA_UPLOAD_MAX_MEMORY_SIZE,
        "theme": theme if theme in THEMES else "",
    }
