"""The jail as this site's settings want it."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.utils import timezone

from judging.core.jail.job import Layer, Limits
from judging.core.jail.keeper import JailBroken
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


@dataclass(frozen=True, slots=True)
class JailStatus:
    """What holds of the isolation on this machine, as found by trying at `tried_at`.

    `level` is None where the jail can't start at all, and `problem` says why; `missing` walls do not hold.
    """

    level: int | None
    missing: tuple[Layer, ...]
    minimum: int
    tried_at: datetime
    problem: str = ""

    @property
    def refused(self) -> bool:
        """Whether nothing that users wrote is run here."""
        return self.level is None or self.level < self.minimum


_trying = threading.Lock()
_last: JailStatus | None = None


def status(*, again: bool = False) -> JailStatus:
    """This process's last try; the first one, or one `again`, starts processes and takes a fraction of a second."""
    global _last
    with _trying:
        if _last is None or again:
            _last = _tried()
        return _last


def _tried() -> JailStatus:
    with make_jail() as jail:
        try:
            return JailStatus(jail.level, jail.missing, minimum_level(), timezone.now())
        except JailBroken as error:
            return JailStatus(None, (), minimum_level(), timezone.now(), str(error))
