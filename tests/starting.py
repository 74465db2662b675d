"""Processes that tests start: on a port that stays free, and ended with the tests, even if these are killed."""

from __future__ import annotations

import random
import shutil
import socket
from collections.abc import Sequence

# Below the ports that systems assign to connections (Linux: from 32768, others from 49152): one could be in use
# by a connection when the server starts or restarts.
PORTS = range(20_000, 32_000)
_setpriv = shutil.which("setpriv")


def free_port() -> int:
    while True:
        port = random.SystemRandom().choice(PORTS)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port


def leashed(command: Sequence[str]) -> list[str]:
    """The command, killed when the thread that starts it ends (if util-linux is installed)."""
    return [_setpriv, "--pdeathsig", "KILL", *command] if _setpriv else list(command)
