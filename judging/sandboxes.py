"""Sandboxes with the limits of this site's settings, and the isolation available on this machine."""

from __future__ import annotations

import atexit
import contextlib
import threading
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.utils import timezone

from judging.core.sandbox.job import Layer, SandboxBroken, SandboxLimits
from judging.core.sandbox.pool import Sandbox

PREVIEW_SECONDS = 2.0  # CPU time per item; a user is waiting

_lock = threading.Lock()
_shared: dict[tuple[SandboxLimits, int], Sandbox] = {}


def shared_sandbox() -> Sandbox:
    """This process's sandbox with the configured limits, shared by its threads.

    It starts on first use, which takes 0.2 s of CPU time, and ends with the process.
    """
    return _shared_with(_limits())


def start_early() -> None:
    """Start the shared sandbox in a thread of its own while other work is done. Its users report a failure."""

    def start() -> None:
        with contextlib.suppress(SandboxBroken):
            _ = shared_sandbox().level

    threading.Thread(target=start, name="sandbox-start", daemon=True).start()


def preview_sandbox() -> Sandbox:
    """The same with at most PREVIEW_SECONDS of CPU time per item."""
    return _shared_with(_limits(PREVIEW_SECONDS))


def _limits(seconds: float | None = None) -> SandboxLimits:
    config = settings.CONFIG
    return SandboxLimits(
        seconds or config.sandbox_seconds, config.sandbox_memory_mb, config.sandbox_output_kb
    )


def _shared_with(limits: SandboxLimits) -> Sandbox:
    key = limits, minimum_level()
    with _lock:
        if key not in _shared:
            _shared[key] = Sandbox(limits, minimum_level=key[1])
            atexit.register(_shared[key].close)
        return _shared[key]


def minimum_level() -> int:
    """The isolation level required to run user code. Level 0 (no isolation) is allowed for development only."""
    config = settings.CONFIG
    return 0 if config.sandbox_allow_unsafe and settings.DEBUG else max(1, int(config.sandbox_minimum_level))


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
    with Sandbox(_limits(), minimum_level=minimum_level()) as sandbox:
        try:
            return SandboxStatus(sandbox.level, sandbox.missing, minimum_level(), timezone.now())
        except SandboxBroken as error:
            return SandboxStatus(None, (), minimum_level(), timezone.now(), str(error))
