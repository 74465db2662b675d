"""Projects and the audit log, as the API shows them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal

from django.http import HttpRequest, StreamingHttpResponse
from ninja import Router, Schema

from evalsite import access
from evalsite.accounts.audit_log import COLUMNS, filtered_rows, refuse_others
from evalsite.accounts.models import Project
from evalsite.api.lists import Cursor, Limit, Page, cursor_of, text_at
from evalsite.table_files import csv_of
from evalsite.web.headers import download_headers

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


Form = Literal["jsonl", "csv"]


@router.get("projects/{slug}/log", summary="The audit log of a project")
def project_log(request: HttpRequest, slug: str, form: Form = "jsonl") -> StreamingHttpResponse:
    """Newest first, for its administrators. Takes the page's filters `who`, `action` and `object`."""
    project = access.get_project(request, slug, access.May.MANAGE)
    return _log_file(request, project, form)


@router.get("log", summary="The audit log of the site")
def site_log(request: HttpRequest, form: Form = "jsonl") -> StreamingHttpResponse:
    """Newest first, for site administrators, with a token that opens all projects."""
    refuse_others(request)
    return _log_file(request, None, form)


def _log_file(request: HttpRequest, project: Project | None, form: Form) -> StreamingHttpResponse:
    rows = filtered_rows(request, project)
    headers = download_headers(f"log-{project.slug}.{form}" if project else f"log.{form}")
    lines = csv_of(COLUMNS, rows) if form == "csv" else map(_json_line, rows)
    return StreamingHttpResponse(lines, content_type="application/octet-stream", headers=headers)


def _json_line(row: Sequence[Any]) -> bytes:
    entry = dict(zip(COLUMNS, row, strict=True))
    return json.dumps(entry | {"detail": json.loads(entry["detail"])}, ensure_ascii=False).encode() + b"\n"
