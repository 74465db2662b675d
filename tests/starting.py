"""Processes that tests start: on a port that stays free, and none that outlives the tests, even if these are killed."""

from __future__ import annotations

import random
import shutil
import socket
from collections.abc import Sequence

# Below those that systems give to connections by themselves (Linux: from 32768, others from 49152): a port that was
# looked for there, or whose server is away for a while, could be somebody's connection by the time it is listened on.
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
    """The command, made to be killed when the thread that starts it ends (where util-linux is there)."""
    return [_setpriv, "--pdeathsig", "KILL", *command] if _setpriv else list(command)
