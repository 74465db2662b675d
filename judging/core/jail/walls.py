"""Which walls stand: tried out first in a process that may break, then raised for good."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from judging.core.jail import layers


@dataclass(frozen=True, slots=True)
class Confinement:
    """What a worker puts round itself: the walls that were found to hold, and its bounds."""

    held: frozenset[str]
    memory_bytes: int
    cpu_seconds: int


def memory_limit(memory_mb: int) -> int:
    """Bytes of address space: what the warm interpreter has, and what an item may add."""
    return layers.address_space() + memory_mb * 1024 * 1024


def raise_around_zygote(without: set[str]) -> set[str]:
    """Namespaces and dropped rights, now; returns every wall that holds here, its workers' ones tried out."""
    held = set()
    if "namespaces" not in without and _holds_in_a_trial(_namespaces_hold):
        layers.enter_namespaces()
        held.add("namespaces")
    layers.drop_privileges()
    if "namespaces" in held:
        _become_first_process()
    trials = {"landlock": _landlock_holds, "seccomp": _seccomp_holds}
    return held | {name for name, trial in trials.items() if name not in without and _holds_in_a_trial(trial)}


def raise_around_worker(confinement: Confinement) -> None:
    """The filter comes last, because it refuses the calls that raise the others."""
    if "landlock" in confinement.held:
        layers.landlock()
    layers.limit_resources(confinement.memory_bytes, confinement.cpu_seconds)
    if "seccomp" in confinement.held:
        layers.seccomp()


def _become_first_process() -> None:
    """Goes on in a child, the first process of the new tree: when it ends, the kernel ends the whole tree."""
    first = os.fork()
    if first:
        os.closerange(0, 1 << 16)
        os.waitpid(first, 0)
        os._exit(0)
    layers.die_with_parent(0)  # a parent outside one's own tree of processes is seen as process 0


def _holds_in_a_trial(trial: Callable[[], bool]) -> bool:
    pid = os.fork()
    if pid == 0:
        try:
            os._exit(0 if trial() else 1)
        finally:
            os._exit(1)
    return os.waitpid(pid, 0)[1] == 0


def _refused(attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except OSError:
        return True
    return False


def _namespaces_hold() -> bool:
    layers.enter_namespaces()
    return not any(Path("/").iterdir()) and _refused(Path("/x").mkdir)


def _landlock_holds() -> bool:
    layers.landlock()
    return _refused(lambda: os.open("/", os.O_RDONLY))


def _seccomp_holds() -> bool:
    layers.seccomp()
    return all(_refused(attempt) for attempt in (lambda: os.open("/", os.O_RDONLY), os.fork, os.pipe))
