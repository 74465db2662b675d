"""A jail whose processes are killed by others, that is closed while it is in use, or whose process forks."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from judging.core.jail.job import Limits
from judging.core.jail.keeper import JailBroken
from judging.core.jail.pool import Jail
from judging.core.scripts import ScriptOutcome
from tests.judging.core.jail.conftest import WITHOUT
from tests.judging.core.jail.scripting import own_size, result_of, run, script
from tests.judging.core.jail.test_pool import IMPORTS, gone, processes_with

FORKED = """
import os, sys, threading
from judging.core.jail.job import Limits
from judging.core.jail.pool import Jail
from tests.judging.core.jail.scripting import result_of

jail = Jail(Limits(memory_mb=int(sys.argv[1])))
stop = threading.Event()

def busy():
    while not stop.is_set():
        assert result_of(jail, "return 1") == 1

threads = [threading.Thread(target=busy) for _ in range(3)]
for thread in threads: thread.start()
for _ in range(2):
    child = os.fork()
    if child == 0:
        jail.close() if len(sys.argv) > 2 else None
        os._exit(0 if result_of(jail, "return 2") == 2 else 1)
    assert os.waitpid(child, 0)[1] == 0
stop.set()
for thread in threads: thread.join()
print(result_of(jail, "return 3"))
jail.close()
"""
LEFT = """
import os, sys, time
from judging.core.jail.job import Limits
from judging.core.jail.pool import Jail
jail = Jail(Limits(memory_mb=int(sys.argv[1])))
jail.level
if os.fork() == 0:
    os.close(1)
    time.sleep(60)
print("started", flush=True)
time.sleep(60)
"""


def parent_of(process: int) -> int:
    """0 of one that has ended since it was seen."""
    with suppress(OSError):
        return int(Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[1])
    return 0


def workers(jail: Jail, mark: str) -> list[int]:
    """The marked jail's workers: the children of its zygote, which is itself a child where there are namespaces."""
    generations = [set(processes_with(mark))]
    for _ in range(1 if "namespaces" in jail.missing else 2):
        generations.append({one for one in generations[-1] if parent_of(one) in generations[-1]})
    return sorted(generations[-1])


def kill_workers(jail: Jail, mark: str) -> None:
    for process in workers(jail, mark):
        os.kill(process, signal.SIGKILL)


@pytest.mark.parametrize("wall", WITHOUT.keys())
def test_a_worker_killed_while_it_waited_costs_no_job(wall: str) -> None:
    size, mark = own_size(310)
    with Jail(Limits(memory_mb=size), without=WITHOUT[wall]) as jail:
        for number in range(5):
            assert result_of(jail, f"return {number}") == number
            kill_workers(jail, mark)


@contextmanager
def killer(jail: Jail, mark: str) -> Iterator[None]:
    """Somebody who kills workers all the time."""
    stop = threading.Event()

    def kill() -> None:
        while not stop.wait(0.02):
            with suppress(OSError):
                kill_workers(jail, mark)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def killed_or_right(outcomes: list[ScriptOutcome]) -> bool:
    codes = {one.failure.code for one in outcomes if one.failure}
    results = [number for number, one in enumerate(outcomes) if not one.failure and one.result != number]
    return len(outcomes) == 50 and codes <= {"killed"} and not results


def test_threads_whose_workers_are_killed_have_one_outcome_an_item_and_never_a_wrong_one() -> None:
    size, mark = own_size(311)
    source = script("return data.n")
    with (
        Jail(Limits(memory_mb=size)) as jail,
        ThreadPoolExecutor(6) as threads,
        killer(jail, mark),
    ):
        jobs = [threads.submit(run, jail, source, 50) for _ in range(30)]
        assert all(killed_or_right(job.result()) for job in jobs)


def test_a_jail_closed_in_the_middle_of_a_script_says_so_and_leaves_nothing() -> None:
    size, mark = own_size(312)
    jail = Jail(Limits(seconds=60, memory_mb=size))
    assert jail.level
    with ThreadPoolExecutor(3) as threads:
        jobs = [threads.submit(run, jail, "while True: pass") for _ in range(3)]
        while len(workers(jail, mark)) < 4:
            time.sleep(0.01)
        jail.close()
        assert all(isinstance(job.exception(), JailBroken) for job in jobs)
    assert gone(mark)


def test_closing_again_and_again_while_threads_use_it_ends_in_a_result_or_in_being_closed() -> None:
    with Jail() as jail, ThreadPoolExecutor(4) as threads:
        jobs = [threads.submit(result_of, jail, f"return {number}") for number in range(20)]
        for _ in range(3):
            jail.close()
            time.sleep(0.05)
        assert all(isinstance(job.exception(), JailBroken) or job.result() == n for n, job in enumerate(jobs))


@pytest.mark.parametrize("arguments", [[], ["close first"]])
def test_a_forked_child_has_a_jail_of_its_own(arguments: list[str]) -> None:
    size, mark = own_size(313)
    command = [sys.executable, "-W", "error", "-c", FORKED, str(size), *arguments]
    done = subprocess.run(command, env=IMPORTS, capture_output=True, text=True, check=False, timeout=600)
    assert (done.returncode, done.stdout, done.stderr) == (0, "3\n", "")
    assert gone(mark)


def test_a_forked_child_does_not_keep_a_dead_servers_jail_alive() -> None:
    size, mark = own_size(314)
    server = subprocess.Popen([sys.executable, "-c", LEFT, str(size)], stdout=subprocess.PIPE, env=IMPORTS)
    assert server.stdout is not None
    with server:
        assert server.stdout.readline() == b"started\n"
        server.kill()
        assert gone(mark)


CROWDED = """
import os, resource
from judging.core.jail.keeper import JailBroken
from judging.core.jail.pool import Jail
from tests.judging.core.jail.scripting import result_of
with Jail() as jail:
    jail.level
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    files = []
    try:
        while True: files.append(os.open("/", os.O_RDONLY))
    except OSError: pass
    try: result_of(jail, "return 1")
    except JailBroken: print("broken", flush=True)
    for file in files: os.close(file)
    print(result_of(jail, "return 2"))
"""


def test_a_server_without_a_free_descriptor_is_told_and_goes_on_when_there_is_one() -> None:
    command = [sys.executable, "-W", "error", "-c", CROWDED]
    done = subprocess.run(command, env=IMPORTS, capture_output=True, text=True, check=False, timeout=600)
    assert (done.stdout, done.stderr) == ("broken\n2\n", "")
