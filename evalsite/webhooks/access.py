"""Access to webhooks: only for those who manage the project."""

from __future__ import annotations

from django.http import HttpRequest
from django.shortcuts import get_object_or_404

from evalsite import access
from evalsite.access import May
from evalsite.webhooks.models import Delivery, Webhook


def get_webhook(request: HttpRequest, slug: str, pk: int) -> Webhook:
    """A project's webhook. Raises Http404 or PermissionDenied."""
    project = access.get_project(request, slug, May.MANAGE)
    webhook = get_object_or_404(Webhook.objects.select_related("project"), project=project, pk=pk)
    return access.loaded(request, webhook)


def get_delivery(request: HttpRequest, slug: str, pk: int, delivery: int) -> Delivery:
    """A delivery of a project's webhook. Raises Http404 or PermissionDenied."""
    webhook = get_webhook(request, slug, pk)
    return get_object_or_404(
        Delivery.objects.select_related("webhook__project"), webhook=webhook, pk=delivery
    )
