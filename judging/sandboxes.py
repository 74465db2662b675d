"""Sandboxes with the limits of this site's settings, and the isolation available on this machine."""

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
    """Create a sandbox with the configured limits. `seconds`: a lower limit of CPU time per item."""
    config = settings.CONFIG
    limits = SandboxLimits(
        seconds or config.sandbox_seconds, config.sandbox_memory_mb, config.sandbox_output_kb
    )
    return Sandbox(limits, minimum_level=minimum_level())


def minimum_level() -> int:
    """The isolation level required to run user code. Level 0 (no isolation) is allowed for development only."""
    config = settings.CONFIG
    return 0 if config.sandbox_allow_unsafe and settings.DEBUG else max(1, int(config.sandbox_minimum_level))


PREVIEW_SECONDS = 2.0  # CPU time per item; a user is waiting

_preview_lock = threading.Lock()
_preview: Sandbox | None = None


def preview_sandbox() -> Sandbox:
    """This process's sandbox for previews, shared by its threads and created on first use."""
    global _preview
    with _preview_lock:
        if _preview is None:
            _preview = make_sandbox(seconds=PREVIEW_SECONDS)
            atexit.register(_preview.close)
        return _preview


@dataclass(frozen=True, slots=True)
class SandboxStatus:
    """The isolation that works on this machine, as tested at `tried_at`.

    `level` is None if the sandbox can't start at all; `problem` says why. `missing`: layers that don't work.
    """

    level: int | None
    missing: tuple[Layer, ...]
    minimum: int
    tried_at: datetime
    problem: str = ""

    @property
    def refused(self) -> bool:
        """Whether user code is not run on this machine."""
        return self.level is None or self.level < self.minimum


_trying = threading.Lock()
_last: SandboxStatus | None = None


def status(*, again: bool = False) -> SandboxStatus:
    """The last tested status. The first test, or one with `again`, starts processes and takes a moment."""
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
