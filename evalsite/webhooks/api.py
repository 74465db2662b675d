"""Webhooks in the API. Addresses and signing secrets go in and never out, but for a new secret, once."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Field, Router, Schema, Status

from evalsite import access
from evalsite.access import May
from evalsite.api.errors import form_refused
from evalsite.api.lists import Cursor, Id, Limit, Page, cursor_of, number_at
from evalsite.api.replies import shown_once
from evalsite.webhooks.access import get_webhook
from evalsite.webhooks.forms import MOST_CHARACTERS, WebhookForm
from evalsite.webhooks.kinds import Preset
from evalsite.webhooks.models import Webhook
from evalsite.webhooks.services import webhook_create, webhook_delete

router = Router()


class WebhookIn(Schema):
    """`preset` changes only the body: `standard`, `slack`, `feishu`, `dingtalk`, `wecom` or `teams`."""

    url: str = Field(max_length=MOST_CHARACTERS)
    events: list[str]
    preset: str = str(Preset.STANDARD)
    name: str = Field("", max_length=100)


class WebhookOut(Schema):
    """`address`: without path and query. `off_at`: since when nothing is sent; null while it is on."""

    id: int
    name: str
    address: str
    events: list[str]
    preset: str
    off_at: datetime | None
    created_at: datetime


class NewWebhookOut(WebhookOut):
    """With the signing secret, which no later reply holds."""

    secret: str | None


@router.get("projects/{slug}/webhooks", response=Page[WebhookOut], summary="Webhooks")
def webhooks(request: HttpRequest, slug: str, limit: Limit = 100, cursor: Cursor = "") -> dict[str, Any]:
    """Oldest first, for those who manage the project."""
    project = access.get_project(request, slug, May.MANAGE)
    rows = Webhook.objects.filter(project=project, pk__gt=number_at(cursor) or 0).order_by("pk")
    page = list(rows[: limit + 1])
    following = page[limit - 1].pk if len(page) > limit else None
    return {"items": list(map(_out, page[:limit])), "next": cursor_of(following)}


@router.post("projects/{slug}/webhooks", response={201: NewWebhookOut}, summary="Add a webhook")
def create(request: HttpRequest, slug: str, body: WebhookIn, response: HttpResponse) -> Status[Any]:
    """The address is stored encrypted; the signing secret is in this reply only."""
    project = access.get_project(request, slug, May.MANAGE)
    form = WebhookForm(body.dict())
    if not form.is_valid():
        raise form_refused(form)
    webhook, secret = webhook_create(project=project, by=access.signed_in(request), **form.cleaned_data)
    shown_once(response, "secret")
    return Status(201, {**_out(webhook), "secret": secret})


@router.delete("projects/{slug}/webhooks/{webhook}", response={204: None}, summary="Delete a webhook")
def delete(request: HttpRequest, slug: str, webhook: Id) -> Status[None]:
    """With its deliveries."""
    webhook_delete(webhook=get_webhook(request, slug, webhook))
    return Status(204, None)


def _out(webhook: Webhook) -> dict[str, Any]:
    plain = ("name", "events", "preset", "off_at", "created_at")
    return {
        "id": webhook.pk,
        "address": webhook.origin,
        **{name: getattr(webhook, name) for name in plain},
    }
