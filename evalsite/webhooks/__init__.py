"""Webhooks: requests that tell other servers of a project's events, after the Standard Webhooks text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evalsite.webhooks.models import Webhook

turned_off: list[Callable[[Webhook], object]] = []
"""Called in the transaction that turns a webhook off because nothing arrived for days. See JudgingConfig.ready."""
