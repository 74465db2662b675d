"""Start processes in tests: on a port that stays free, and killed with the tests even if those are killed."""

from __future__ import annotations

import random
import shutil
import socket
from collections.abc import Sequence

# Below the ephemeral ports (from 32768 on Linux, from 49152 elsewhere): an outgoing connection could occupy one
# when the server starts or restarts.
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
    """Wrap a command so that it is killed when the thread that started it ends (if util-linux is installed)."""
    return [_setpriv, "--pdeathsig", "KILL", *command] if _setpriv else list(command)
