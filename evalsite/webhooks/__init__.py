"""Webhooks: requests that tell other servers of a project's events, after the Standard Webhooks text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from evalsite.hooks import Hook

if TYPE_CHECKING:
    from evalsite.webhooks.models import Webhook

turned_off: Hook[Callable[[Webhook], object]] = Hook("evalsite.webhooks.turned_off")
"""Called in the transaction that turns a webhook off because nothing arrived for days."""
