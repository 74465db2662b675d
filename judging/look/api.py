"""Notes on answers that people looked at, as the API gives them out."""

from __future__ import annotations

from typing import Literal

from django.http import HttpRequest, StreamingHttpResponse
from ninja import Router

from evalsite.api.lists import Id
from judging.look.access import get_look
from judging.look.group_views import notes_file

router = Router()


@router.get("projects/{slug}/looks/{look}/notes", summary="Notes as a file")
def notes(
    request: HttpRequest, slug: str, look: Id, form: Literal["jsonl", "csv"] = "jsonl"
) -> StreamingHttpResponse:
    """All notes with their groups; the look's number is in its page's address."""
    return notes_file(get_look(request, slug, look), form)
