"""The system calls that a worker may make, as a program for the kernel's seccomp filter.

Numbers from the kernel's tables (arch/x86/entry/syscalls/syscall_64.tbl, include/uapi/asm-generic/unistd.h). System
calls that are not listed fail with EPERM.
"""

import errno
import platform
import struct

CHANNEL = 3  # the only descriptor that a worker may read and write

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_PROT_EXEC, _MAP_ANONYMOUS = 0x4, 0x20
_CLOCKS = 12  # clocks from this number on (and negative ones) belong to devices or to other processes
_X32 = 0x40000000

_AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_NUMBERS: dict[str, tuple[int, int]] = {  # name: (x86_64, aarch64); -1 if there is none
    "read": (0, 63),
    "write": (1, 64),
    "mmap": (9, 222),
    "mprotect": (10, 226),
    "munmap": (11, 215),
    "brk": (12, 214),
    "rt_sigreturn": (15, 139),
    "sched_yield": (24, 124),
    "mremap": (25, 216),
    "madvise": (28, 233),
    "nanosleep": (35, 101),
    "exit": (60, 93),
    "gettimeofday": (96, 169),
    "time": (201, -1),
    "futex": (202, 98),
    "restart_syscall": (219, 128),
    "clock_gettime": (228, 113),
    "clock_getres": (229, 114),
    "clock_nanosleep": (230, 115),
    "exit_group": (231, 94),
    "getrandom": (318, 278),
    "clone3": (435, 435),
}

Instruction = tuple[int, int, int, int]


def _refuse(number: int) -> Instruction:
    return (_RETURN, 0, 0, _ERRNO | number)


_ALLOWED: Instruction = (_RETURN, 0, 0, _ALLOW)
_REFUSED = _refuse(errno.EPERM)


def _argument(index: int) -> Instruction:
    """Load the lower half of an argument on little-endian machines; these arguments use no more."""
    return (_LOAD, 0, 0, _ARGUMENTS + 8 * index)


def _on_the_channel() -> list[Instruction]:
    return [_argument(0), (_EQUAL, 0, 1, CHANNEL), _ALLOWED, _REFUSED]


def _not_executable() -> list[Instruction]:
    return [_argument(2), (_ANY_BIT, 0, 1, _PROT_EXEC), _REFUSED, _ALLOWED]


def _anonymous_memory() -> list[Instruction]:
    anonymous = [_argument(3), (_ANY_BIT, 1, 0, _MAP_ANONYMOUS), _REFUSED]
    return anonymous + _not_executable()


def _own_clock() -> list[Instruction]:
    return [_argument(0), (_AT_LEAST, 0, 1, _CLOCKS), _REFUSED, _ALLOWED]


def _conditions(name: str) -> list[Instruction]:
    match name:
        case "read" | "write":
            return _on_the_channel()
        case "mmap":
            return _anonymous_memory()
        case "mprotect":
            return _not_executable()
        case "clock_gettime":
            return _own_clock()
        case "clone3":  # its flags cannot be read here; C libraries then fall back to clone, which is refused
            return [_refuse(errno.ENOSYS)]
    return [_ALLOWED]


def _instructions(machine: str) -> list[Instruction]:
    column = list(_AUDIT).index(machine)
    program: list[Instruction] = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, _AUDIT[machine]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
    ]
    if machine == "x86_64":
        program += [(_AT_LEAST, 0, 1, _X32), (_RETURN, 0, 0, _KILL)]
    for name, numbers in _NUMBERS.items():
        if numbers[column] >= 0:
            body = _conditions(name)
            program += [(_EQUAL, 0, len(body), numbers[column]), *body]
    return [*program, _REFUSED]


def filter_program(machine: str | None = None) -> bytes | None:
    """The ``struct sock_filter`` array for this machine, or None if its system call numbers are not known."""
    name = machine or platform.machine()
    if name not in _AUDIT:
        return None
    return b"".join(struct.pack("<HBBI", *instruction) for instruction in _instructions(name))
