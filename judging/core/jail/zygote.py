"""The warm process that forks a worker for every job. It never sees a template or a script.

Started by its path with one argument (JSON: paths to import from, walls to do without, limits), its control socket as
standard input. Requests are ``(letter, number)``: ``s`` forks a worker for the descriptor sent along, with that many
seconds of processor time at most, and answers its process id; ``c`` answers a worker's processor seconds; ``e`` ends
a worker and answers its wait status; ``d`` ends one without waiting.
It ends itself when the other side of its control socket closes.
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
Start = Callable[
    [int, int, int], None
]  # a worker's life: its channel, the zygote's process, processor seconds


def processor_seconds(pid: int) -> float:
    """What a process of ours has used; the clock's number is built as ``clock_getcpuclockid(3)`` does."""
    return time.clock_gettime((~pid << 3) | 2)


def main() -> None:
    config: dict[str, Any] = json.loads(sys.argv[1])
    sys.path[:] = [*config["paths"], *sys.path]
    os.nice(config["nice"])
    control = socket.socket(fileno=os.dup(0))
    from judging.core.jail import walls, warm, worker

    warm.import_all()
    memory = walls.memory_limit(config["memory_mb"])
    silence()
    os.environ.clear()
    held = walls.raise_around_zygote(set(config["without"]))
    control.send(json.dumps(sorted(held)).encode())
    gc.collect()
    gc.freeze()
    confinement = walls.Confinement(frozenset(held), memory)

    def start(channel: int, zygote: int, cpu_seconds: int) -> None:
        worker.run(channel, zygote, cpu_seconds, confinement, config["seconds"])

    serve(control, start)


def silence() -> None:
    null = os.open("/dev/null", os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    os.close(null)


def serve(control: socket.socket, start: Start) -> None:
    dismissed: set[int] = set()
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, REQUEST.size, 1)
        if not message:
            os._exit(0)
        letter, number = REQUEST.unpack(message)
        answer = (0, 0.0)
        if letter == b"s":
            answer = (fork_worker(descriptors[0], number, start), 0.0)
        elif letter == b"c":
            answer = (0, processor_seconds(number))
        elif letter == b"e":
            answer = (end_worker(number), 0.0)
        elif letter == b"d":
            os.kill(number, signal.SIGKILL)
            dismissed.add(number)
        dismissed -= {pid for pid in dismissed if os.waitpid(pid, os.WNOHANG)[0]}
        control.send(ANSWER.pack(*answer))


def fork_worker(channel: int, cpu_seconds: int, start: Start) -> int:
    zygote = os.getpid()
    pid = os.fork()
    if pid == 0:
        start(channel, zygote, cpu_seconds)
    os.close(channel)
    return pid


def end_worker(pid: int) -> int:
    """Kills it unless it is already dead, and waits: its process id can't have been given to another before that."""
    os.kill(pid, signal.SIGKILL)
    return os.waitpid(pid, 0)[1]


if __name__ == "__main__":
    main()
