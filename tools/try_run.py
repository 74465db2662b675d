"""Try the first start as a new user, with an empty data folder, then a second time. Exits 1 on any problem.

    python -m tools.try_run [CLONE]          `make run` in a fresh clone
    python -m tools.try_run --wheel FILE     `evalsite serve` in a fresh environment with nothing but the wheel

CLONE: a clone made before, which may be installed already (.ci/run installs it beside other packages).
Checks that the site opens without signing in, the sample run is linked and finishes, every link on the first pages
works, Ctrl-C stops every process, and the second start is quick.
"""

from __future__ import annotations

import atexit
import contextlib
import http.cookiejar
import os
import re
import signal
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import unescape
from pathlib import Path

from tests.deadlines import wait_until
from tests.starting import free_port

ROOT = Path(__file__).resolve().parent.parent
RUN_LINK, FINISHED = re.compile(r'href="(/p/[^"]+/runs/\d+/)"'), 'data-run-state="finished"'
# on an idle machine, as in tests/deadlines.py
FIRST_SECONDS, SECOND_SECONDS, SAMPLE_SECONDS = 90.0, 10.0, 90.0
WHEEL_SECONDS = 8.0
TIMEOUT = 120.0  # for steps without a time limit of their own


class Site:
    """An HTTP client with cookies."""

    def __init__(self, port: int) -> None:
        self.base = f"http://127.0.0.1:{port}"
        self.open = urllib.request.build_opener(
            urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()), urllib.request.ProxyHandler({})
        ).open

    def get(self, path: str) -> str:
        with self.open(self.base + path, timeout=TIMEOUT) as answer:
            return str(answer.read().decode("utf-8", "replace"))

    def status(self, path: str) -> int:
        try:
            with self.open(self.base + path, timeout=TIMEOUT) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code


def wait(what: str, seconds: float, happened: Callable[[], object]) -> tuple[object, float]:
    """Wait for a truthy result of `happened`; return it with the elapsed seconds, or exit after `seconds`."""
    given: object = None

    def true() -> bool:
        nonlocal given
        with contextlib.suppress(OSError):
            given = happened()
        return bool(given)

    try:
        took = wait_until(true, seconds)
    except AssertionError as error:
        sys.exit(f"FAIL {what}: {error}")
    return given, took


def links(html: str) -> set[str]:
    return {
        unescape(link) for link in re.findall(r'href="(/[^"#]*)', html) if not link.startswith("/static/")
    }


def processes_of(data: Path) -> list[str]:
    """Command lines of the processes whose DATA_DIR is this folder."""
    wanted = f"DATA_DIR={data}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdecimal() and wanted in (entry / "environ").read_bytes().split(b"\0"):
                found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return [line for line in found if line.strip()]


@dataclass(frozen=True)
class Installation:
    """How the site is started, and from where. `first_seconds`: at most until the first page of an empty folder."""

    command: Sequence[str]
    folder: Path
    first_seconds: float


def cloned(clone: Path) -> Installation:
    """A clone, which `make run` installs; made if it is not there."""
    if not clone.exists():
        subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], check=True)
    return Installation(["make", "run"], clone, FIRST_SECONDS)


def installed(wheel: Path, folder: Path) -> Installation:
    """An environment with the wheel and what it depends on, from the package index."""
    subprocess.run([sys.executable, "-m", "venv", str(folder / "environment")], check=True)
    programs = folder / "environment" / "bin"
    pip = [str(programs / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    subprocess.run([*pip, str(wheel.resolve())], check=True)
    return Installation([str(programs / "evalsite"), "serve"], folder, WHEEL_SECONDS)


def start(installation: Installation, data: Path, port: int) -> subprocess.Popen[bytes]:
    # A new user has no PYTHON… variables: PYTHONDONTWRITEBYTECODE, for one, would recompile everything at each start.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment |= {"DATA_DIR": str(data), "PORT": str(port)}
    process = subprocess.Popen(
        installation.command, cwd=installation.folder, env=environment, start_new_session=True
    )
    atexit.register(kill, process)
    return process


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill the process group if it is still running (registered with atexit)."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def stop(process: subprocess.Popen[bytes], data: Path) -> None:
    os.killpg(process.pid, signal.SIGINT)  # like Ctrl-C: to the whole process group
    process.wait(timeout=TIMEOUT)
    wait("the end of every process after Ctrl-C", 10, lambda: not processes_of(data))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("clone", nargs="?", type=Path, metavar="CLONE")
    parser.add_argument("--wheel", type=Path, metavar="FILE")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if chosen.wheel:
            try_start(installed(chosen.wheel, folder), folder / "data")
        else:
            try_start(cloned(chosen.clone or folder / "evalsite"), folder / "data")


def try_start(installation: Installation, data: Path) -> None:
    """Start it twice; see above."""
    port = free_port()
    process, site = start(installation, data, port), Site(port)
    if installation.command[0] == "make":
        marker = installation.folder / ".venv" / ".runs"
        wait("installing", 1200, lambda: marker.exists() or process.poll() is not None)
    _, seconds = wait("the first page", installation.first_seconds, lambda: site.get("/"))
    print(f"ok   first page {seconds:.1f} s after the installation")
    home = site.get("/")
    found, _ = wait("a link to the sample's run", TIMEOUT, lambda: RUN_LINK.findall(site.get("/")))
    path = str(found[0])  # type: ignore[index]
    _, seconds = wait("the sample's end", SAMPLE_SECONDS, lambda: FINISHED in site.get(path))
    print(f"ok   the sample was judged {seconds:.1f} s later")
    seen = links(home) | links(site.get(path))
    bad = {link: status for link in sorted(seen) if (status := site.status(link)) != 200}
    if bad:
        sys.exit(f"FAIL links that do not answer: {bad}")
    print(f"ok   {len(seen)} links answer")
    stop(process, data)
    process = start(installation, data, port)
    _, seconds = wait("the first page of the second start", SECOND_SECONDS, lambda: site.get("/"))
    print(f"ok   second start: first page after {seconds:.1f} s")
    stop(process, data)


if __name__ == "__main__":
    main()
