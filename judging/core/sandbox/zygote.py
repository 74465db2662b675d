"""The preloaded process that forks a worker for every job. It never sees a template or a script.

Started by its path with one argument (JSON: import paths, disabled layers, limits) and its control socket as standard
input. A request is a letter and a worker's process id: ``s`` returns a worker's id and channel, ``c`` a worker's
processor seconds; ``e`` ends a worker and returns its wait status; ``d`` ends one without waiting. One worker is always
waiting for a job, already isolated. The zygote exits when the other side of its control socket closes.
"""

import gc
import json
import os
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable
from typing import Any

REQUEST = struct.Struct("<cq")
ANSWER = struct.Struct("<qd")
Start = Callable[[int, int], None]  # (channel, zygote's process id): runs a worker


def processor_seconds(pid: int) -> float:
    """Processor time used by a child process; the clock id is computed as in ``clock_getcpuclockid(3)``."""
    return time.clock_gettime((~pid << 3) | 2)


def main() -> None:
    config: dict[str, Any] = json.loads(sys.argv[1])
    sys.path[:] = [*config["paths"], *sys.path]
    os.nice(config["nice"])
    control = socket.socket(fileno=os.dup(0))
    from judging.core.sandbox import isolation, preload, worker  # importable only with the paths set above

    preload.import_all()
    memory = isolation.memory_limit(config["memory_mb"])
    silence()
    os.environ.clear()
    held = isolation.raise_around_zygote(set(config["without"]))
    control.send(json.dumps(sorted(held)).encode())
    gc.collect()
    gc.freeze()
    confinement = isolation.Confinement(frozenset(held), memory, config["cpu_seconds"])

    def start(channel: int, zygote: int) -> None:
        worker.run(channel, zygote, confinement, config["seconds"])

    serve(control, start)


def silence() -> None:
    null = os.open("/dev/null", os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    os.close(null)


def serve(control: socket.socket, start: Start) -> None:
    dismissed: set[int] = set()
    ready, channel = fork_worker(start)
    while True:
        message = control.recv(REQUEST.size)
        if not message:
            os._exit(0)
        letter, number = REQUEST.unpack(message)
        if letter == b"s":
            socket.send_fds(control, [ANSWER.pack(ready, 0.0)], [channel])
            os.close(channel)
            ready, channel = fork_worker(start)
        elif letter == b"c":
            control.send(ANSWER.pack(0, processor_seconds(number)))
        elif letter == b"e":
            control.send(ANSWER.pack(end_worker(number), 0.0))
        elif letter == b"d":
            os.kill(number, signal.SIGKILL)
            dismissed.add(number)
            control.send(ANSWER.pack(0, 0.0))
        dismissed -= {pid for pid in dismissed if os.waitpid(pid, os.WNOHANG)[0]}


def fork_worker(start: Start) -> tuple[int, int]:
    """Fork a worker; returns its process id and the parent's end of its channel."""
    zygote = os.getpid()
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        start(theirs.detach(), zygote)
    theirs.close()
    return pid, ours.detach()


def end_worker(pid: int) -> int:
    """Kill a worker, if it is not dead yet, and wait for it: its process id cannot be reused before that."""
    os.kill(pid, signal.SIGKILL)
    return os.waitpid(pid, 0)[1]


if __name__ == "__main__":
    main()
