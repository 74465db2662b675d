"""What a hostile script tries, having found its way to every module that is loaded."""

import os

import pytest

from judging.core.jail.pool import Jail
from tests.judging.core.jail.scripting import OUTSIDE, result_of

IS_X86 = os.uname().machine == "x86_64"

ATTEMPTS = {
    "read a file": "open('/etc/passwd').read()",
    "list a folder": "os.listdir('/')",
    "read its environment from the kernel": "open('/proc/self/environ').read()",
    "read its parent's environment": "open(f'/proc/{os.getppid()}/environ').read()",
    "read the parent's memory": "open(f'/proc/{os.getppid()}/mem', 'rb').read(1)",
    "look at a file": "os.stat('/')",
    "write a file": "open('/tmp/left-behind', 'w')",
    "make a folder": "os.mkdir('/tmp/left-behind')",
    "remove a file": "os.unlink('/etc/hostname')",
    "change its folder": "os.chdir('/')",
    "open a TCP socket": "socket.socket(socket.AF_INET, socket.SOCK_STREAM)",
    "open a UDP socket": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
    "open an IPv6 socket": "socket.socket(socket.AF_INET6, socket.SOCK_STREAM)",
    "open a Unix socket": "socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)",
    "ask the kernel by netlink": "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)",
    "make a pair of sockets": "socket.socketpair()",
    "send on the channel as a socket": "call(libc.send, 3, b'x', 1, 0)",
    "receive a descriptor": "call(libc.recvmsg, 3, None, 0)",
    "connect the channel to an abstract socket": "call(libc.connect, 3, b'\\1\\0\\0name', 7)",
    "find a host": "socket.create_connection(('127.0.0.1', 80), 1)",
    "make a process": "os.fork()",
    "run a program": "os.execv('/bin/sh', ['sh'])",
    "spawn a program": "os.posix_spawn('/bin/sh', ['sh'], {})",
    "make a process by clone": "system_call(56 if x86 else 220, 17, 0, 0, 0, 0)",
    "kill its parent": "os.kill(os.getppid(), 9)",
    "kill everyone": "os.kill(-1, 9)",
    "ask for a handle on a process": "os.pidfd_open(os.getppid())",
    "trace its parent": "call(libc.ptrace, 16, 1, None, None)",
    "read another process": "system_call(310 if x86 else 270, 1, None, 0, None, 0, 0)",
    "raise its limits": "call(libc.setrlimit, 7, (ctypes.c_ulong * 2)(100, 100))",
    "map executable memory": "mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC)",
    "make memory executable": "call(libc.mprotect, ctypes.c_void_p(id(data) & ~4095), 4096, 7)",
    "map a file": "mmap.mmap(3, 4096)",
    "make a file in memory": "os.memfd_create('x')",
    "make a pipe": "os.pipe()",
    "copy a descriptor": "os.dup(3)",
    "close the channel": "os.close(3)",
    "read another descriptor": "os.read(0, 1)",
    "write another descriptor": "os.write(1, b'x')",
    "loosen its walls": "call(libc.prctl, 4, 1, 0, 0, 0)",
    "outlive its parent": "call(libc.prctl, 1, 0, 0, 0, 0)",
    "put a filter of its own": "call(libc.prctl, 22, 2, None, 0, 0)",
    "enter namespaces": "call(libc.unshare, 0x10000000)",
    "mount": "call(libc.mount, b'x', b'/', b'tmpfs', 0, None)",
    "leave its root": "os.chroot('.')",
    "become root": "os.setuid(0)",
    "load a kernel program": "system_call(321 if x86 else 280, 0, None, 0)",
    "use io_uring": "system_call(425, 1, None)",
    "use a user fault handler": "system_call(323 if x86 else 282, 0)",
    "use the kernel's keys": "system_call(250 if x86 else 219, 0, 0)",
    "read another process's clock": "modules['time'].clock_gettime(~1 << 3 | 2)",
    "set the time": "modules['time'].clock_settime(0, 0)",
    "set a signal handler": "signal.signal(signal.SIGTERM, lambda *_: None)",
    "make a thread": "thread.start_new_thread(print, ())",
    "find its user": "call(libc.getuid)",
}


@pytest.mark.parametrize("attempt", ATTEMPTS.values(), ids=ATTEMPTS.keys())
def test_a_script_is_refused_to(attempt: str, each_jail: Jail) -> None:
    body = f"""
        x86 = {IS_X86}
        try:
            {attempt}
        except (OSError, RuntimeError):
            return "refused"
        return "done"
    """
    assert result_of(each_jail, body, OUTSIDE) == "refused"


def test_the_environment_is_empty(each_jail: Jail) -> None:
    assert (
        result_of(each_jail, "return str((dict(os.environ), modules['posix'].environ))", OUTSIDE)
        == "({}, {})"
    )


@pytest.mark.parametrize(
    "name", ["os", "sys", "socket", "subprocess", "ctypes", "threading", "django", "urllib.request", "a"]
)
def test_a_module_that_is_not_on_the_list_fails_by_name(name: str, jail: Jail) -> None:
    body = f"""
        try:
            import {name}
        except ImportError as error:
            return str(error)
    """
    assert result_of(jail, body) == f"{name!r} can't be imported in a script"


def test_an_unloaded_module_can_not_be_imported_by_another_way_either(jail: Jail) -> None:
    body = """
        try:
            modules["importlib"].import_module("sqlite3")
        except ImportError as error:
            return str(error)
    """
    assert result_of(jail, body, OUTSIDE) == "No module named 'sqlite3' here"


@pytest.mark.parametrize("name", ["django", "judging.models", "evalsite.settings", "sqlite3", "msgspec"])
def test_nothing_of_the_program_or_its_database_is_loaded(name: str, jail: Jail) -> None:
    assert result_of(jail, f"return {name!r} in modules", OUTSIDE) is False
