"""A sandbox whose processes are killed from outside, that is closed while in use, or whose parent forks."""

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

from judging.core.sandbox.job import SandboxBroken, SandboxLimits
from judging.core.sandbox.pool import Sandbox
from judging.core.scripts import ScriptOutcome
from tests.judging.core.sandbox.conftest import WITHOUT
from tests.judging.core.sandbox.processes import IMPORTS, processes_with, wait_until_gone
from tests.judging.core.sandbox.scripting import own_size, result_of, run, script

FORKED = """
import os, sys, threading
from judging.core.sandbox.job import SandboxLimits
from judging.core.sandbox.pool import Sandbox
from tests.judging.core.sandbox.scripting import result_of

sandbox = Sandbox(SandboxLimits(memory_mb=int(sys.argv[1])))
stop = threading.Event()

def busy():
    while not stop.is_set():
        assert result_of(sandbox, "return 1") == 1

threads = [threading.Thread(target=busy) for _ in range(3)]
for thread in threads: thread.start()
for _ in range(2):
    child = os.fork()
    if child == 0:
        sandbox.close() if len(sys.argv) > 2 else None
        os._exit(0 if result_of(sandbox, "return 2") == 2 else 1)
    assert os.waitpid(child, 0)[1] == 0
stop.set()
for thread in threads: thread.join()
print(result_of(sandbox, "return 3"))
sandbox.close()
"""
LEFT = """
import os, sys, time
from judging.core.sandbox.job import SandboxLimits
from judging.core.sandbox.pool import Sandbox
sandbox = Sandbox(SandboxLimits(memory_mb=int(sys.argv[1])))
sandbox.level
if os.fork() == 0:
    os.close(1)
    time.sleep(60)
print("started", flush=True)
time.sleep(60)
"""


def parent_of(process: int) -> int:
    """Parent's process id, or 0 if the process has ended."""
    with suppress(OSError):
        return int(Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[1])
    return 0


def workers(sandbox: Sandbox, mark: str) -> list[int]:
    """Workers of the marked sandbox: the children of its zygote, which is itself a child if namespaces are used."""
    generations = [set(processes_with(mark))]
    for _ in range(1 if "namespaces" in sandbox.missing else 2):
        generations.append({one for one in generations[-1] if parent_of(one) in generations[-1]})
    return sorted(generations[-1])


def kill_workers(sandbox: Sandbox, mark: str) -> None:
    for process in workers(sandbox, mark):
        with suppress(ProcessLookupError):  # one killed before may have been reaped since it was listed
            os.kill(process, signal.SIGKILL)


@pytest.mark.parametrize("layers", WITHOUT.keys())
def test_a_worker_killed_while_it_waited_costs_no_job(layers: str) -> None:
    size, mark = own_size(310)
    with Sandbox(SandboxLimits(memory_mb=size), without=WITHOUT[layers]) as sandbox:
        for number in range(5):
            assert result_of(sandbox, f"return {number}") == number
            kill_workers(sandbox, mark)


@contextmanager
def killer(sandbox: Sandbox, mark: str) -> Iterator[None]:
    """Keep killing workers in a background thread."""
    stop = threading.Event()

    def kill() -> None:
        while not stop.wait(0.02):
            with suppress(OSError):
                kill_workers(sandbox, mark)

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
        Sandbox(SandboxLimits(memory_mb=size)) as sandbox,
        ThreadPoolExecutor(6) as threads,
        killer(sandbox, mark),
    ):
        jobs = [threads.submit(run, sandbox, source, 50) for _ in range(30)]
        assert all(killed_or_right(job.result()) for job in jobs)


def test_a_sandbox_closed_in_the_middle_of_a_script_says_so_and_leaves_nothing() -> None:
    size, mark = own_size(312)
    sandbox = Sandbox(SandboxLimits(seconds=60, memory_mb=size))
    assert sandbox.level
    with ThreadPoolExecutor(3) as threads:
        jobs = [threads.submit(run, sandbox, "while True: pass") for _ in range(3)]
        while len(workers(sandbox, mark)) < 4:
            time.sleep(0.01)
        sandbox.close()
        assert all(isinstance(job.exception(), SandboxBroken) for job in jobs)
    wait_until_gone(mark)


def test_closing_again_and_again_while_threads_use_it_ends_in_a_result_or_in_being_closed() -> None:
    with Sandbox() as sandbox, ThreadPoolExecutor(4) as threads:
        jobs = [threads.submit(result_of, sandbox, f"return {number}") for number in range(20)]
        for _ in range(3):
            sandbox.close()
            time.sleep(0.05)
        assert all(
            isinstance(job.exception(), SandboxBroken) or job.result() == n for n, job in enumerate(jobs)
        )


@pytest.mark.parametrize("arguments", [[], ["close first"]])
def test_a_forked_child_has_a_sandbox_of_its_own(arguments: list[str]) -> None:
    size, mark = own_size(313)
    command = [sys.executable, "-W", "error", "-c", FORKED, str(size), *arguments]
    done = subprocess.run(command, env=IMPORTS, capture_output=True, text=True, check=False, timeout=600)
    assert (done.returncode, done.stdout, done.stderr) == (0, "3\n", "")
    wait_until_gone(mark)


def test_a_forked_child_does_not_keep_a_dead_servers_sandbox_alive() -> None:
    size, mark = own_size(314)
    server = subprocess.Popen([sys.executable, "-c", LEFT, str(size)], stdout=subprocess.PIPE, env=IMPORTS)
    assert server.stdout is not None
    with server:
        assert server.stdout.readline() == b"started\n"
        server.kill()
        wait_until_gone(mark)


CROWDED = """
import os, resource
from judging.core.sandbox.supervisor import SandboxBroken
from judging.core.sandbox.pool import Sandbox
from tests.judging.core.sandbox.scripting import result_of
with Sandbox() as sandbox:
    sandbox.level
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    files = []
    try:
        while True: files.append(os.open("/", os.O_RDONLY))
    except OSError: pass
    try: result_of(sandbox, "return 1")
    except SandboxBroken: print("broken", flush=True)
    for file in files: os.close(file)
    print(result_of(sandbox, "return 2"))
"""


def test_a_server_without_a_free_descriptor_is_reported_and_goes_on_when_there_is_one() -> None:
    command = [sys.executable, "-W", "error", "-c", CROWDED]
    done = subprocess.run(command, env=IMPORTS, capture_output=True, text=True, check=False, timeout=600)
    assert (done.stdout, done.stderr) == ("broken\n2\n", "")
