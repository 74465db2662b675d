"""Attempts of a hostile script that has access to every loaded module."""

import os

import pytest

from judging.core.sandbox.pool import Sandbox
from tests.judging.core.sandbox.scripting import OUTSIDE, result_of

IS_X86 = os.uname().machine == "x86_64"

ATTEMPTS = {
    "read a file": "open('/etc/passwd').read()",
    "list a folder": "os.listdir('/')",
    "read its environment from the kernel": "open('/proc/self/environ').read()",
    "read its parent's environment": "open(f'/proc/{os.getppid()}/environ').read()",
    "read the parent's memory": "open(f'/proc/{os.getppid()}/mem', 'rb').read(1)",
    "look at a file": "os.stat('/')",
    "write a file": "open('/tmp/left-behind', 'w')",
    "open the database": "open('var/db.sqlite3', 'rb')",
    "append to a file": "os.open('/etc/hosts', os.O_WRONLY | os.O_APPEND)",
    "make a link": "os.symlink('/etc/passwd', '/tmp/left-behind')",
    "rename a file": "os.rename('/etc/hostname', '/etc/left-behind')",
    "change a file's rights": "os.chmod('/etc/passwd', 0o777)",
    "cut a file": "os.truncate('/etc/hostname', 0)",
    "list the processes": "os.listdir('/proc')",
    "open what its channel is": "os.open('/proc/self/fd/3', os.O_RDWR)",
    "share memory": "os.open('/dev/shm/x', os.O_RDWR | os.O_CREAT)",
    "load a library": "ctypes.CDLL('libcrypt.so.1')",
    "make a folder": "os.mkdir('/tmp/left-behind')",
    "remove a file": "os.unlink('/etc/hostname')",
    "change its folder": "os.chdir('/')",
    "open a TCP socket": "socket.socket(socket.AF_INET, socket.SOCK_STREAM)",
    "open a UDP socket": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
    "open an IPv6 socket": "socket.socket(socket.AF_INET6, socket.SOCK_STREAM)",
    "open a Unix socket": "socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)",
    "ask the kernel by netlink": "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)",
    "make a pair of sockets": "socket.socketpair()",
    "make an abstract socket": "socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).bind('\\0name')",
    "open a raw socket": "socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)",
    "take a connection on the channel": "call(libc.accept, 3, None, None)",
    "shut the channel down": "call(libc.shutdown, 3, 2)",
    "send on the channel as a socket": "call(libc.send, 3, b'x', 1, 0)",
    "receive a descriptor": "call(libc.recvmsg, 3, None, 0)",
    "connect the channel to an abstract socket": "call(libc.connect, 3, b'\\1\\0\\0name', 7)",
    "find a host": "socket.create_connection(('127.0.0.1', 80), 1)",
    "make a process": "os.fork()",
    "run a program": "os.execv('/bin/sh', ['sh'])",
    "spawn a program": "os.posix_spawn('/bin/sh', ['sh'], {})",
    "make a process by clone": "system_call(56 if x86 else 220, 17, 0, 0, 0, 0)",
    "kill its parent": "os.kill(os.getppid(), 9)",
    "kill its zygote": "os.kill(1, 9)",
    "stop its parent": "os.kill(os.getppid(), signal.SIGSTOP)",
    "kill its group": "os.killpg(0, 9)",
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
    "loosen its limits": "call(libc.prctl, 4, 1, 0, 0, 0)",
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


CALLS = {  # more system calls: name: (x86_64, aarch64)
    "acct": (163, 89), "add_key": (248, 217), "adjtimex": (159, 171), "bind": (49, 200), "capset": (126, 91),
    "close": (3, 57), "close_range": (436, 436), "copy_file_range": (326, 285), "dup3": (292, 24),
    "epoll_create1": (291, 20), "eventfd2": (290, 19), "execveat": (322, 281), "fanotify_init": (300, 262),
    "fcntl": (72, 25), "finit_module": (313, 273), "futex_waitv": (449, 449), "getpeername": (52, 205),
    "getppid": (110, 173), "init_module": (175, 105), "inotify_init1": (294, 26), "io_setup": (206, 0),
    "io_uring_enter": (426, 426), "io_uring_register": (427, 427), "ioctl": (16, 29), "kcmp": (312, 272),
    "kexec_load": (246, 104), "keyctl": (250, 219), "landlock_create_ruleset": (444, 444), "mbind": (237, 235),
    "membarrier": (324, 283), "memfd_secret": (447, 447), "migrate_pages": (256, 238), "mlockall": (151, 230),
    "mq_open": (240, 180), "msgget": (68, 186), "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265),
    "open_tree": (428, 428), "openat2": (437, 437), "perf_event_open": (298, 241), "personality": (135, 92),
    "pidfd_getfd": (438, 438), "pidfd_open": (434, 434), "pidfd_send_signal": (424, 424), "pkey_mprotect": (329, 288),
    "pread64": (17, 67), "prlimit64": (302, 261), "process_madvise": (440, 440), "process_vm_writev": (311, 271),
    "pwrite64": (18, 68), "quotactl": (179, 60), "readv": (19, 65), "reboot": (169, 142), "recvfrom": (45, 207),
    "remap_file_pages": (216, 234), "request_key": (249, 218), "rt_sigqueueinfo": (129, 138), "seccomp": (317, 277),
    "sched_setaffinity": (203, 122), "semget": (64, 190), "sendfile": (40, 71), "sendmsg": (46, 211),
    "sethostname": (170, 161), "setns": (308, 268), "setpriority": (141, 140), "setsid": (112, 157),
    "setsockopt": (54, 208), "shmget": (29, 194), "signalfd4": (289, 74), "splice": (275, 76), "swapon": (167, 224),
    "sysinfo": (99, 179), "syslog": (103, 116), "tgkill": (234, 131), "timer_create": (222, 107),
    "timerfd_create": (283, 85), "tkill": (200, 130), "umount2": (166, 39), "uname": (63, 160),
    "vmsplice": (278, 75), "writev": (20, 66),
}  # fmt: skip


def test_no_further_system_call_is_possible(each_sandbox: Sandbox) -> None:
    body = f"""
        done = []
        for name, numbers in {CALLS}.items():
            ctypes.set_errno(0)
            result = libc.syscall(ctypes.c_long(numbers[0 if {IS_X86} else 1]), 0, 0, 0, 0, 0, 0)
            if (result, ctypes.get_errno()) != (-1, 1):
                done.append(name)
        return str(done)
    """
    assert result_of(each_sandbox, body, OUTSIDE) == "[]"


SEEK = """
gc = modules["gc"]
def seen(value, found, depth=0):
    if isinstance(value, str):
        found.append(value)
    elif depth < 3 and isinstance(value, (dict, list, tuple, set)):
        for one in [*(value.items() if type(value) is dict else value)]:
            seen(one, found, depth + 1)
def everything():
    found, frame = [], sys._getframe()
    while frame:
        seen(dict(frame.f_locals), found)
        seen(frame.f_code.co_consts, found)
        frame = frame.f_back
    for thing in gc.get_objects():
        seen(thing, found)
        seen(getattr(thing, "__dict__", None), found)
    return found
"""


def test_whoever_walks_frames_and_objects_finds_nothing_of_the_parents(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SECRET_OF_THE_SERVER", "walls have ears")
    with Sandbox() as sandbox:
        assert result_of(sandbox, "return kept", "kept = 'walls have ears'") == "walls have ears"
        body = "return sum('{0}alls have ears'.format('w') in one for one in everything())"
        assert result_of(sandbox, body, OUTSIDE + SEEK) == 0


def test_c_code_finds_no_environment_either(each_sandbox: Sandbox) -> None:
    body = "return bool(ctypes.POINTER(ctypes.c_char_p).in_dll(libc, 'environ')[0])"
    assert result_of(each_sandbox, body, OUTSIDE) is False


LAZY = {
    "a finder of one's own": "sys.meta_path.insert(0, modules['_frozen_importlib_external'].PathFinder)",
    "the path that was": "sys.path[:] = ['/usr/lib/python3', '/usr/lib/python3/dist-packages']",
    "no memory of what is loaded": "sys.modules.clear()",
    "the builtin import": "pass",
}


@pytest.mark.parametrize("trick", LAZY.values(), ids=LAZY.keys())
def test_a_trick_with_imports_loads_nothing_from_the_disk(trick: str, sandbox: Sandbox) -> None:
    body = f"""
        load = traceback.sys.modules["builtins"].__import__
        {trick}
        try:
            return load("sqlite3").__name__
        except (ImportError, OSError, KeyError) as error:
            return "refused"
    """
    assert result_of(sandbox, body, OUTSIDE) == "refused"


@pytest.mark.parametrize("attempt", ATTEMPTS.values(), ids=ATTEMPTS.keys())
def test_a_script_is_refused_to(attempt: str, each_sandbox: Sandbox) -> None:
    body = f"""
        x86 = {IS_X86}
        try:
            {attempt}
        except (OSError, RuntimeError):
            return "refused"
        return "done"
    """
    assert result_of(each_sandbox, body, OUTSIDE) == "refused"


def test_the_environment_is_empty(each_sandbox: Sandbox) -> None:
    assert (
        result_of(each_sandbox, "return str((dict(os.environ), modules['posix'].environ))", OUTSIDE)
        == "({}, {})"
    )


@pytest.mark.parametrize(
    "name", ["os", "sys", "socket", "subprocess", "ctypes", "threading", "django", "urllib.request", "a"]
)
def test_a_module_that_is_not_on_the_list_fails_by_name(name: str, sandbox: Sandbox) -> None:
    body = f"""
        try:
            import {name}
        except ImportError as error:
            return str(error)
    """
    assert result_of(sandbox, body) == f"{name!r} can't be imported in a script"


def test_an_unloaded_module_can_not_be_imported_by_another_way_either(sandbox: Sandbox) -> None:
    body = """
        try:
            modules["importlib"].import_module("sqlite3")
        except ImportError as error:
            return str(error)
    """
    assert result_of(sandbox, body, OUTSIDE) == "No module named 'sqlite3' here"


@pytest.mark.parametrize("name", ["django", "judging.models", "evalsite.settings", "sqlite3", "msgspec"])
def test_nothing_of_the_program_or_its_database_is_loaded(name: str, sandbox: Sandbox) -> None:
    assert result_of(sandbox, f"return {name!r} in modules", OUTSIDE) is False
