"""Projects, as the API shows them."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja import Router, Schema

from evalsite import access
from evalsite.api.lists import Cursor, Limit, Page, cursor_of, text_at

router = Router()


class ProjectOut(Schema):
    """`may`: what the token's user may do, as far as the token allows it."""

    slug: str
    name: str
    archived: bool
    may: list[str]


@router.get("projects", response=Page[ProjectOut], summary="Projects that the token opens")
def projects(request: HttpRequest, limit: Limit = 100, cursor: Cursor = "") -> dict[str, Any]:
    """By slug, archived ones included."""
    rows = access.visible_projects(request).order_by("slug").filter(slug__gt=text_at(cursor))
    page = list(rows[: limit + 1])
    items = [
        {
            "slug": project.slug,
            "name": project.name,
            "archived": project.archived_at is not None,
            "may": sorted(access.permissions(request, project)),
        }
        for project in page[:limit]
    ]
    return {"items": items, "next": cursor_of(items[-1]["slug"] if len(page) > limit else None)}
