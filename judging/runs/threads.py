"""Database work beside an event loop: in threads that keep a connection of their own each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from django.db import DatabaseError, close_old_connections

from judging.endpoints.client import RunInThread

Result = TypeVar("Result")


def inside(threads: ThreadPoolExecutor) -> RunInThread:
    """Runs something in one of the threads, which keeps its connection."""

    async def run(work: Callable[..., Result], *arguments: Any) -> Result:
        return await asyncio.get_running_loop().run_in_executor(threads, _mended, work, *arguments)

    return run


def _mended(work: Callable[..., Result], *arguments: Any) -> Result:
    """What it does, and if that fails because the connection was lost, another one is opened the next time."""
    try:
        return work(*arguments)
    except DatabaseError:
        close_old_connections()
        raise
