"""Sandboxes with the limits of this site's settings, and how much isolation this machine offers."""

from __future__ import annotations

import atexit
import threading
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.utils import timezone

from judging.core.sandbox.job import Layer, SandboxBroken, SandboxLimits
from judging.core.sandbox.pool import Sandbox


def make_sandbox(*, seconds: float | None = None) -> Sandbox:
    """A sandbox with the configured limits; `seconds` of processor time an item, where less is enough."""
    config = settings.CONFIG
    limits = SandboxLimits(
        seconds or config.sandbox_seconds, config.sandbox_memory_mb, config.sandbox_output_kb
    )
    return Sandbox(limits, minimum_level=minimum_level())


def minimum_level() -> int:
    """Below this level of isolation nothing that users wrote is run. None at all is for developing only."""
    config = settings.CONFIG
    return 0 if config.sandbox_allow_unsafe and settings.DEBUG else max(1, int(config.sandbox_minimum_level))


PREVIEW_SECONDS = 2.0  # of processor time an item: someone is waiting

_preview_lock = threading.Lock()
_preview: Sandbox | None = None


def preview_sandbox() -> Sandbox:
    """This process's sandbox for previews, shared by its threads; started at its first use."""
    global _preview
    with _preview_lock:
        if _preview is None:
            _preview = make_sandbox(seconds=PREVIEW_SECONDS)
            atexit.register(_preview.close)
        return _preview


@dataclass(frozen=True, slots=True)
class SandboxStatus:
    """What holds of the isolation on this machine, as found by trying at `tried_at`.

    `level` is None if the sandbox can't start at all, and `problem` says why; `missing` walls do not hold.
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
_last: SandboxStatus | None = None


def status(*, again: bool = False) -> SandboxStatus:
    """This process's last try; the first one, or one `again`, starts processes and takes a fraction of a second."""
    global _last
    with _trying:
        if _last is None or again:
            _last = _tried()
        return _last


def _tried() -> SandboxStatus:
    with make_sandbox() as sandbox:
        try:
            return SandboxStatus(sandbox.level, sandbox.missing, minimum_level(), timezone.now())
        except SandboxBroken as error:
            return SandboxStatus(None, (), minimum_level(), timezone.now(), str(error))
