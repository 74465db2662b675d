"""The jail as this site's settings want it."""

from __future__ import annotations

from django.conf import settings

from judging.core.jail.job import Limits
from judging.core.jail.pool import Jail


def make_jail(*, seconds: float | None = None) -> Jail:
    """A jail with the configured limits; `seconds` of processor time an item, where less is enough."""
    config = settings.CONFIG
    limits = Limits(seconds or config.sandbox_seconds, config.sandbox_memory_mb, config.sandbox_output_kb)
    return Jail(limits, minimum_level=minimum_level())


def minimum_level() -> int:
    """Below this level of isolation nothing that users wrote is run. None at all is for developing only."""
    config = settings.CONFIG
    return 0 if config.sandbox_allow_unsafe and settings.DEBUG else max(1, int(config.sandbox_minimum_level))
