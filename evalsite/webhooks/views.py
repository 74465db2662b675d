"""The pages of a project's webhooks, for those who manage it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST

from evalsite import access
from evalsite.access import May
from evalsite.accounts.models import Project
from evalsite.names import join_sentences
from evalsite.web.numbers import whole
from evalsite.web.paging import newest_first
from evalsite.webhooks.access import get_delivery, get_webhook
from evalsite.webhooks.bodies import KEYWORD
from evalsite.webhooks.forms import WebhookForm
from evalsite.webhooks.messages import problem_text
from evalsite.webhooks.models import Delivery, Webhook
from evalsite.webhooks.services import (
    delivery_resend,
    webhook_create,
    webhook_delete,
    webhook_edit,
    webhook_rotate,
    webhook_test,
    webhook_turn,
)

PER_PAGE = 25


@sensitive_post_parameters("url")
@login_required
def webhooks(request: HttpRequest, slug: str) -> HttpResponse:
    """The webhooks, and a form for a new one, whose secret is shown in this response only: there is no redirect."""
    project = access.get_project(request, slug, May.MANAGE)
    form = WebhookForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        try:
            created, secret = webhook_create(
                project=project, by=access.signed_in(request), **form.cleaned_data
            )
        except ValidationError as error:
            form.add_error(None, error)
        else:
            return _list_page(request, project, WebhookForm(), created=created, secret=secret)
    return _list_page(request, project, form)


def _list_page(request: HttpRequest, project: Project, form: WebhookForm, **more: Any) -> HttpResponse:
    rows = Webhook.objects.filter(project=project).order_by("pk")
    context = {
        "webhooks": rows,
        "form": form,
        "keyword": KEYWORD,
        "site_url": settings.CONFIG.site_url,
        **more,
    }
    return render(request, "webhooks/list.html", context, status=422 if form.errors else 200)


@sensitive_post_parameters("url")
@login_required
def webhook(request: HttpRequest, slug: str, webhook: int) -> HttpResponse:
    """A webhook: its settings and deliveries."""
    row = get_webhook(request, slug, webhook)
    form = WebhookForm(
        request.POST if request.method == "POST" else None,
        webhook=row,
        initial={"name": row.name, "events": row.events, "preset": row.preset},
    )
    if request.method == "POST" and form.is_valid():
        webhook_edit(webhook=row, **form.cleaned_data)
        messages.success(request, _("Saved."))
        return redirect("webhooks:webhook", slug, webhook)
    return _page(request, row, form)


def _page(request: HttpRequest, row: Webhook, form: WebhookForm | None = None, **more: Any) -> HttpResponse:
    form = form or WebhookForm(
        webhook=row, initial={"name": row.name, "events": row.events, "preset": row.preset}
    )
    before = whole(request.GET.get("before", ""))
    deliveries, further = newest_first(Delivery.objects.filter(webhook=row).order_by("-pk"), PER_PAGE, before)
    context = {
        "webhook": row,
        "form": form,
        "deliveries": [_shown(delivery) for delivery in deliveries],
        "further": further,
        "paged": before is not None,
        "keyword": KEYWORD,
        **more,
    }
    return render(request, "webhooks/webhook.html", context, status=422 if form.errors else 200)


def _shown(delivery: Delivery) -> dict[str, Any]:
    """A delivery with its tries, newest first, as the page shows them."""
    tries = [
        {**entry, "text": problem_text(entry), "when": datetime.fromisoformat(entry["at"])}
        for entry in reversed(delivery.tries)
    ]
    return {"delivery": delivery, "tries": tries, "last": tries[0] if tries else None}


@login_required
@require_POST
def rotate(request: HttpRequest, slug: str, webhook: int) -> HttpResponse:
    """Replace the signing secret. It is shown in this response only."""
    row = get_webhook(request, slug, webhook)
    secret = webhook_rotate(webhook=row)
    row.refresh_from_db()
    return _page(request, row, secret=secret)


@login_required
@require_POST
def send_test(request: HttpRequest, slug: str, webhook: int) -> HttpResponse:
    """Send a test message."""
    row = get_webhook(request, slug, webhook)
    try:
        webhook_test(webhook=row)
        messages.success(request, _("A test is being sent. Reload the page to see its reply."))
    except ValidationError as error:
        messages.error(request, join_sentences(error.messages))
    return redirect("webhooks:webhook", slug, webhook)


@login_required
@require_POST
def send_again(request: HttpRequest, slug: str, webhook: int, delivery: int) -> HttpResponse:
    """Send a delivery again."""
    row = get_delivery(request, slug, webhook, delivery)
    try:
        delivery_resend(delivery=row)
        messages.success(request, _("It is being sent again. Reload the page to see its reply."))
    except ValidationError as error:
        messages.error(request, join_sentences(error.messages))
    return redirect("webhooks:webhook", slug, webhook)


@login_required
@require_POST
def turn_on(request: HttpRequest, slug: str, webhook: int) -> HttpResponse:
    """Turn a webhook on."""
    if webhook_turn(webhook=get_webhook(request, slug, webhook), on=True):
        messages.success(request, _("The webhook is on."))
    return redirect("webhooks:webhook", slug, webhook)


@login_required
@require_POST
def turn_off(request: HttpRequest, slug: str, webhook: int) -> HttpResponse:
    """Turn a webhook off."""
    if webhook_turn(webhook=get_webhook(request, slug, webhook), on=False):
        messages.success(request, _("The webhook is off."))
    return redirect("webhooks:webhook", slug, webhook)


@login_required
@require_POST
def delete(request: HttpRequest, slug: str, webhook: int) -> HttpResponse:
    """Delete a webhook with its deliveries."""
    webhook_delete(webhook=get_webhook(request, slug, webhook))
    messages.success(request, _("Webhook deleted."))
    return redirect("webhooks:list", slug)
