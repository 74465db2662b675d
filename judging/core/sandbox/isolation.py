"""The isolation layers of a worker, set up through ctypes system calls, and which of them work on this machine.

Each layer has a function that sets it up or raises OSError. Layers are first tried in a process that may fail.
"""

import _thread
import contextlib
import ctypes
import errno
import mmap
import os
import resource
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from judging.core.sandbox.seccomp import CHANNEL, filter_program
from judging.core.sandbox.wire import Raw

_NOBODY = 65534
_CLONE_NEWNS, _CLONE_NEWUTS, _CLONE_NEWIPC = 0x00020000, 0x04000000, 0x08000000
_CLONE_NEWUSER, _CLONE_NEWPID, _CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
_NAMESPACES = _CLONE_NEWNS | _CLONE_NEWUTS | _CLONE_NEWIPC | _CLONE_NEWPID | _CLONE_NEWNET
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC = 1, 2, 4, 8
_MS_REMOUNT, _MS_REC, _MS_PRIVATE = 32, 16384, 1 << 18
_MNT_DETACH = 2
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 1, 4, 22, 38
_SECCOMP_MODE_FILTER = 2
_SIGKILL = 9
_CAPABILITY_VERSION_3 = 0x20080522
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_LANDLOCK_CREATE, _LANDLOCK_RESTRICT = 444, 446
_LANDLOCK_FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15}  # by interface version; 16 since the fifth

_libc = ctypes.CDLL(None, use_errno=True)


def _checked(result: int, what: str) -> int:
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def _system_call(number: int, what: str, *arguments: object) -> int:
    return _checked(_libc.syscall(ctypes.c_long(number), *arguments), what)


def _prctl(option: int, value: object, what: str) -> None:
    _checked(_libc.prctl(option, value, 0, 0, 0), what)


def _mount(source: bytes | None, target: bytes, kind: bytes | None, flags: int, data: bytes | None) -> None:
    _checked(_libc.mount(source, target, kind, ctypes.c_ulong(flags), data), "mount")


def enter_namespaces() -> None:
    """Enter new namespaces for processes, network, mounts and names; the next fork is the first process of a new tree.

    Root does so directly; other users, and root without the permission, use a user namespace.
    """
    user, group = os.getuid(), os.getgid()
    if user != 0 or _libc.unshare(_NAMESPACES) == -1:
        _checked(_libc.unshare(_NAMESPACES | _CLONE_NEWUSER), "unshare")
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{_NOBODY} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{_NOBODY} {group} 1")
    _enter_empty_root()


def _enter_empty_root() -> None:
    _mount(None, b"/", None, _MS_REC | _MS_PRIVATE, None)
    place = next(path for path in (b"/tmp", b"/dev", b"/proc") if Path(os.fsdecode(path)).is_dir())
    flags = _MS_NOSUID | _MS_NODEV | _MS_NOEXEC
    _mount(b"tmpfs", place, b"tmpfs", flags, b"size=4k,nr_inodes=2,mode=555")
    os.chdir(place)
    _system_call(_PIVOT_ROOT[os.uname().machine], "pivot_root", b".", b".")
    _checked(_libc.umount2(b".", _MNT_DETACH), "umount")
    os.chdir("/")
    _mount(None, b"/", None, _MS_REMOUNT | _MS_RDONLY | flags, None)


def drop_privileges() -> None:
    """Become user nobody without capabilities, unable to gain any by exec or to be traced by another process."""
    if os.geteuid() == 0:
        with contextlib.suppress(OSError):  # a container may forbid the change; the other layers still hold
            os.setgroups([])
            os.setresgid(_NOBODY, _NOBODY, _NOBODY)
            os.setresuid(_NOBODY, _NOBODY, _NOBODY)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    _checked(_libc.capset(header, (ctypes.c_uint32 * 6)()), "capset")
    _prctl(_PR_SET_NO_NEW_PRIVS, 1, "no_new_privs")
    _prctl(_PR_SET_DUMPABLE, 0, "not dumpable")


def die_with_parent(parent: int) -> None:
    """Have the kernel send SIGKILL when the parent ends; exit at once if it already has."""
    _prctl(_PR_SET_PDEATHSIG, _SIGKILL, "parent death signal")
    if os.getppid() != parent:
        os._exit(1)


def landlock() -> None:
    """Deny access to files, TCP ports, abstract sockets and outside signals, as far as this kernel's Landlock can."""
    version = _system_call(_LANDLOCK_CREATE, "landlock", None, ctypes.c_size_t(0), 1)
    handled = [(1 << _LANDLOCK_FILE_RIGHTS.get(version, 16)) - 1]
    if version >= 4:
        handled.append(0b11)
    if version >= 6:
        handled.append(0b11)
    rules = (ctypes.c_uint64 * len(handled))(*handled)
    ruleset = _system_call(_LANDLOCK_CREATE, "landlock", rules, ctypes.c_size_t(ctypes.sizeof(rules)), 0)
    try:
        _system_call(_LANDLOCK_RESTRICT, "landlock", ruleset, 0)
    finally:
        os.close(ruleset)


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


_code = filter_program()  # once, not in every worker
_program = _Program(len(_code or b"") // 8, _code)


def seccomp() -> None:
    """Block every system call except the few that a preloaded interpreter needs. Nothing can be opened afterwards."""
    if _code is None:
        raise OSError(errno.ENOSYS, f"no system call table for {os.uname().machine}")
    _checked(
        _libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(_program), 0, 0),
        "seccomp",
    )


def address_space() -> int:
    """Bytes of address space that this process has mapped."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * resource.getpagesize()


def limit_resources(memory_bytes: int, cpu_seconds: int) -> None:
    """Set kernel limits in addition to the parent's, in case the parent is gone."""
    limits = {
        resource.RLIMIT_AS: memory_bytes,
        resource.RLIMIT_CPU: cpu_seconds,
        resource.RLIMIT_NOFILE: CHANNEL + 1,
        resource.RLIMIT_FSIZE: 0,
        resource.RLIMIT_NPROC: 0,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_MEMLOCK: 0,
    }
    for name, value in limits.items():
        highest = resource.getrlimit(name)[1]
        bound = value if highest == resource.RLIM_INFINITY else min(value, highest)
        resource.setrlimit(name, (bound, bound))


def keep_only(descriptor: int) -> None:
    """Move the descriptor to the channel's number and close all higher ones."""
    if descriptor != CHANNEL:
        os.dup2(descriptor, CHANNEL, inheritable=False)
    os.closerange(CHANNEL + 1, 1 << 16)


@dataclass(frozen=True, slots=True)
class Confinement:
    """The confinement of a worker: the working layers, and its limits."""

    held: frozenset[str]
    memory_bytes: int
    cpu_seconds: int


def memory_limit(memory_mb: int) -> int:
    """Bytes of address space: what the preloaded interpreter uses plus what an item may add."""
    return address_space() + memory_mb * 1024 * 1024


def raise_around_zygote(without: set[str]) -> set[str]:
    """Enter namespaces and drop privileges; returns all layers that work here, after trials of the workers' ones."""
    held = set()
    if "namespaces" not in without and _holds_in_a_trial(_namespaces_hold):
        enter_namespaces()
        held.add("namespaces")
    drop_privileges()
    if "namespaces" in held:
        _become_first_process()
    trials = {"landlock": _landlock_holds, "seccomp": _seccomp_holds}
    return held | {name for name, trial in trials.items() if name not in without and _holds_in_a_trial(trial)}


def raise_around_worker(confinement: Confinement) -> None:
    """Confine a worker. The system call filter comes last, because it blocks the calls that set up the others."""
    if "landlock" in confinement.held:
        landlock()
    limit_resources(confinement.memory_bytes, confinement.cpu_seconds)
    if "seccomp" in confinement.held:
        seccomp()


def _become_first_process() -> None:
    """Continue in a child, the first process of the new tree: when it ends, the kernel ends the whole tree."""
    first = os.fork()
    if first:
        os.closerange(0, 1 << 16)
        os.waitpid(first, 0)
        os._exit(0)
    die_with_parent(0)  # a parent outside the process namespace has process id 0


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
    except (OSError, RuntimeError):  # RuntimeError: "can't start new thread"
        return True
    return False


def _namespaces_hold() -> bool:
    enter_namespaces()
    return not any(Path("/").iterdir()) and _refused(Path("/x").mkdir)


def _landlock_holds() -> bool:
    landlock()
    return _refused(lambda: os.open("/", os.O_RDONLY))


def _seccomp_holds() -> bool:
    seccomp()
    return all(_refused(attempt) for attempt in (lambda: os.open("/", os.O_RDONLY), os.fork, os.pipe))


def _fork() -> None:
    if os.fork() == 0:
        os._exit(0)


_FORBIDDEN: dict[str, Callable[[], object]] = {
    "read a file": lambda: os.open("/", os.O_RDONLY),
    "open a TCP socket": lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM),
    "open a Unix socket": lambda: socket.socket(socket.AF_UNIX, socket.SOCK_STREAM),
    "make a process": _fork,
    "make a thread": lambda: _thread.start_new_thread(lambda: None, ()),
    "signal the parent": lambda: os.kill(os.getppid(), 0),
    "map executable memory": lambda: mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC).close(),
}


class IsolationProbe:
    """A job handler that attempts forbidden actions, and reports those that were not blocked."""

    def __init__(self, job: dict[str, Any]) -> None:
        pass

    def answer(self, raw: Raw) -> list[str]:
        return [name for name, attempt in _FORBIDDEN.items() if not _refused(attempt)]

    def line_of(self, trace: TracebackType | None) -> int | None:
        return None
