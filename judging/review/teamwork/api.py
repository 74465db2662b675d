"""Overrides and comments of judgements, as the API stores them."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.utils.translation import gettext as _
from ninja import Field, Router, Schema, Status

from evalsite.access import May, signed_in
from evalsite.api.errors import ApiError, form_refused
from evalsite.api.lists import Cursor, Id, Limit, Page, cursor_of, number_at
from judging.core.values import value_of
from judging.people.access import ratings_hidden
from judging.records.access import get_judgement
from judging.records.models import Judgement
from judging.records.overrides import OverrideConflict, override_add, override_withdraw
from judging.review.override_values import override_form
from judging.review.teamwork.forms import LONGEST_COMMENT
from judging.teamwork import comments
from judging.teamwork.models import Comment

router = Router()
JUDGEMENT = "projects/{slug}/runs/{run}/judgements/{judgement}"


class OverrideIn(Schema):
    """`value`: a score, true or false, or a category; null withdraws the override. `seen`: the `id` of the newest
    override that was taken into account, 0 for none: 409 if there is a newer one."""

    value: bool | int | float | str | None
    reason: str = Field(min_length=1, max_length=4000)
    seen: int | None = Field(None, ge=0, lt=2**63)


class OverrideOut(Schema):
    """`value`: null if it was withdrawn."""

    id: int
    judgement: int
    value: Any
    reason: str
    by: str
    at: datetime


class CommentIn(Schema):
    """Markdown. `@name` notifies a member."""

    text: str = Field(min_length=1, max_length=LONGEST_COMMENT)


class CommentOut(Schema):
    id: int
    author: str
    text: str
    at: datetime
    edited_at: datetime | None


@router.post(f"{JUDGEMENT}/override", response={201: OverrideOut}, summary="Override a verdict")
def override(request: HttpRequest, slug: str, run: Id, judgement: Id, body: OverrideIn) -> Status[Any]:
    """Replaces the value of all attempts; the original is kept."""
    row = _reviewed(request, slug, run, judgement, May.REVIEW)
    by = signed_in(request)
    try:
        if body.value is None:
            entry = override_withdraw(judgement=row, reason=body.reason, by=by, seen=body.seen)
        else:
            text = body.value if isinstance(body.value, str) else json.dumps(body.value)
            form = override_form(row, {"value": text, "reason": body.reason, "seen": body.seen})
            if not form.is_valid():
                raise form_refused(form)
            entry = override_add(judgement=row, by=by, **form.cleaned_data)
    except OverrideConflict:
        message = _("The override changed in the meantime, or there is none to withdraw.")
        raise ApiError(409, message=message) from None
    return Status(
        201,
        {
            "id": entry.pk,
            "judgement": row.pk,
            "value": value_of(entry.value),
            "reason": entry.reason,
            "by": by.username,
            "at": entry.at,
        },
    )


@router.get(f"{JUDGEMENT}/comments", response=Page[CommentOut], summary="Comments on a judgement")
def comments_of(
    request: HttpRequest, slug: str, run: Id, judgement: Id, limit: Limit = 100, cursor: Cursor = ""
) -> dict[str, Any]:
    """On its answer and metric, oldest first."""
    row, after = _reviewed(request, slug, run, judgement, May.READ_JUDGEMENTS), number_at(cursor) or 0
    page = [comment for comment in comments.comments_of(row) if comment.pk > after][: limit + 1]
    following = page[limit - 1].pk if len(page) > limit else None
    return {"items": list(map(comment_out, page[:limit])), "next": cursor_of(following)}


@router.post(f"{JUDGEMENT}/comments", response={201: CommentOut}, summary="Comment on a judgement")
def comment(request: HttpRequest, slug: str, run: Id, judgement: Id, body: CommentIn) -> Status[Any]:
    """On its answer and metric, so that it stays with later attempts."""
    row = _reviewed(request, slug, run, judgement, May.REVIEW)
    return Status(
        201, comment_out(comments.comment_add(judgement=row, text=body.text, by=signed_in(request)))
    )


def _reviewed(request: HttpRequest, slug: str, run: int, judgement: int, may: May) -> Judgement:
    row = get_judgement(request, slug, run, judgement, may)
    if ratings_hidden(request, row.run):
        raise PermissionDenied
    return row


def comment_out(comment: Comment) -> dict[str, Any]:
    """A comment as the API shows it."""
    return {
        "id": comment.pk,
        "author": comment.author.username,
        "text": comment.text,
        "at": comment.at,
        "edited_at": comment.edited_at,
    }
