"""The sandbox pool: levels, threads, and that no process outlives its parent."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from judging.core.sandbox.job import SandboxLimits, SandboxRefused
from judging.core.sandbox.pool import Sandbox
from tests.judging.core.sandbox.conftest import WITHOUT
from tests.judging.core.sandbox.processes import IMPORTS, processes_with, wait_until_gone
from tests.judging.core.sandbox.readable import readable_copy
from tests.judging.core.sandbox.scripting import own_size, result_of, run, script

REPORT = """
import json, sys
from judging.core.sandbox.pool import Sandbox
from tests.judging.core.sandbox.scripting import OUTSIDE, run, script
with Sandbox() as sandbox:
    (outcome,) = run(sandbox, script("return os.listdir('/')", OUTSIDE))
    print(json.dumps([sandbox.level, sandbox.missing, outcome.failure.message]))
"""


def python_for_everyone() -> str:
    """Path of an interpreter of this version that an unprivileged user can start; skip the test if there is none."""
    for name in (os.path.realpath(sys.executable), f"/usr/bin/python3.{sys.version_info.minor}"):
        try:
            command = [name, "-c", "import ctypes"]
            if subprocess.run(command, user=65534, group=65534, extra_groups=[], check=False).returncode == 0:
                return name
        except OSError:
            continue
    pytest.skip("no interpreter that another user can start")


@pytest.mark.parametrize(("name", "level"), [("every layer", 3), ("no namespaces", 2), ("seccomp alone", 1)])
def test_the_level_says_how_many_layers_are_active(name: str, level: int) -> None:
    with Sandbox(without=WITHOUT[name]) as sandbox:
        assert sandbox.level == level
        assert set(sandbox.missing) == WITHOUT[name]


def test_without_seccomp_there_is_no_level_and_scripts_are_refused() -> None:
    with Sandbox(without=frozenset({"seccomp"})) as sandbox, pytest.raises(SandboxRefused):
        run(sandbox, script("return 1"))


def test_scripts_run_without_isolation_only_where_that_is_allowed() -> None:
    everything = frozenset({"namespaces", "landlock", "seccomp"})
    with Sandbox(without=everything, minimum_level=0) as sandbox:
        assert (sandbox.level, result_of(sandbox, "return 1")) == (0, 1)


def test_a_minimum_above_the_machines_level_refuses() -> None:
    with Sandbox(minimum_level=3, without=WITHOUT["no namespaces"]) as sandbox, pytest.raises(SandboxRefused):
        run(sandbox, script("return 1"))


@pytest.mark.skipif(os.getuid() != 0, reason="the whole suite runs as another user already")
def test_a_user_without_rights_has_the_same_sandbox() -> None:
    with readable_copy() as place:
        said = subprocess.run(
            [python_for_everyone(), "-c", REPORT],
            env={"PYTHONPATH": str(place)},
            cwd=place,
            user=65534,
            group=65534,
            extra_groups=[],
            stdout=subprocess.PIPE,
            check=True,
        ).stdout
    level, missing, message = json.loads(said)
    assert level == 3 - len(missing)
    assert message.startswith("PermissionError")


@pytest.mark.skipif(not shutil.which("setpriv") or not shutil.which("unshare"), reason="needs util-linux")
def test_where_namespaces_are_refused_two_walls_are_active() -> None:
    command = (
        "echo 0 > /proc/sys/user/max_user_namespaces && "
        'exec setpriv --inh-caps=-all --bounding-set=-all "$0" -c "$1"'
    )
    outside = ["unshare", "--user", "--map-root-user", "sh", "-c", command, sys.executable, REPORT]
    done = subprocess.run(
        outside, env=IMPORTS | {"PATH": os.environ["PATH"]}, capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip("user namespaces are refused here already")
    assert json.loads(done.stdout)[:2] == [2, ["namespaces"]]


def test_threads_may_use_one_sandbox_at_once(sandbox: Sandbox) -> None:
    with ThreadPoolExecutor(6) as threads:
        results = list(threads.map(lambda n: result_of(sandbox, f"return {n} * data.n + {n}"), range(30)))
    assert results == list(range(30))


def test_a_sandbox_whose_process_was_killed_starts_again() -> None:
    size, mark = own_size(301)
    with Sandbox(SandboxLimits(memory_mb=size)) as sandbox:
        assert result_of(sandbox, "return 1") == 1
        for process in processes_with(mark):
            with contextlib.suppress(ProcessLookupError):  # the others end with the first one
                os.kill(process, signal.SIGKILL)
        assert result_of(sandbox, "return 2") == 2


def test_closing_a_sandbox_leaves_no_process() -> None:
    size, mark = own_size(302)
    with Sandbox(SandboxLimits(memory_mb=size)) as sandbox:
        result_of(sandbox, "return 1")
    wait_until_gone(mark)


def test_a_closed_sandbox_starts_again_when_it_is_used() -> None:
    sandbox = Sandbox()
    for _ in range(2):
        assert result_of(sandbox, "return 1") == 1
        sandbox.close()


@pytest.mark.parametrize("layers", WITHOUT.keys())
def test_a_killed_server_leaves_no_process_behind_even_in_the_middle_of_a_script(layers: str) -> None:
    size, mark = own_size(303)
    source = f"""
import threading
from judging.core.sandbox.job import SandboxLimits
from judging.core.sandbox.pool import Sandbox
from tests.judging.core.sandbox.scripting import run
sandbox = Sandbox(SandboxLimits(seconds=600, memory_mb={size}), without={WITHOUT[layers]!r})
sandbox.level
threading.Thread(target=run, args=(sandbox, "while True: pass")).start()
print("started", flush=True)
"""
    server = subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE, env=IMPORTS)
    assert server.stdout is not None
    with server:
        assert server.stdout.readline() == b"started\n"
        server.kill()
    wait_until_gone(mark)
