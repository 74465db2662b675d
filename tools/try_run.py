"""Try the first start as a new user, with an empty data folder, then a second time. Exits 1 on any problem.

    python -m tools.try_run [CLONE]          `make run` in a fresh clone
    python -m tools.try_run --wheel FILE     `evalsite serve` in a fresh environment with nothing but the wheel

CLONE: a clone made before, which may be installed already (.ci/run installs it beside other packages).
Checks that the site opens without signing in, the sample run is linked and finishes, every link on the first pages
works, Ctrl-C stops every process, and it starts again. Prints how long each step takes.
"""

from __future__ import annotations

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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import unescape
from pathlib import Path

from tests.deadlines import wait_until
from tests.starting import free_port

ROOT = Path(__file__).resolve().parent.parent
RUN_LINK, FINISHED = re.compile(r'href="(/p/[^"]+/runs/\d+/)"'), 'data-run-state="finished"'
TIMEOUT = 120.0  # for every step, on an idle machine as in tests/deadlines.py; how long each takes is printed


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


def wait(what: str, look: Callable[[], object], seconds: float = TIMEOUT) -> tuple[object, float]:
    """Wait for a truthy result of `look`; return it with the elapsed seconds, or exit after `seconds`."""
    result: object = None
    last_error: OSError | None = None

    def happened() -> bool:
        nonlocal result, last_error
        try:
            result = look()
        except OSError as error:
            last_error = error
        return bool(result)

    try:
        elapsed = wait_until(happened, seconds)
    except AssertionError as error:
        sys.exit(f"FAIL {what}: {error}; last error: {last_error}")
    return result, elapsed


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
    """How the site is started, and from where."""

    command: Sequence[str]
    folder: Path


def cloned(clone: Path) -> Installation:
    """A clone, which `make run` installs; made if it is not there."""
    if not clone.exists():
        subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], check=True)
    return Installation(["make", "run"], clone)


def installed(wheel: Path, folder: Path) -> Installation:
    """An environment with the wheel and what it depends on, from the package index."""
    subprocess.run([sys.executable, "-m", "venv", str(folder / "environment")], check=True)
    programs = folder / "environment" / "bin"
    pip = [str(programs / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    subprocess.run([*pip, str(wheel.resolve())], check=True)
    return Installation([str(programs / "evalsite"), "serve"], folder)


@contextlib.contextmanager
def started(installation: Installation, data: Path, port: int) -> Iterator[subprocess.Popen[bytes]]:
    """A running site. It is killed if the block fails, so that its last output stands before the reason."""
    # A new user has no PYTHON… variables: PYTHONDONTWRITEBYTECODE, for one, would recompile everything at each start.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment |= {"DATA_DIR": str(data), "PORT": str(port)}
    process = subprocess.Popen(
        installation.command, cwd=installation.folder, env=environment, start_new_session=True
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def stop(process: subprocess.Popen[bytes], data: Path) -> None:
    os.killpg(process.pid, signal.SIGINT)  # like Ctrl-C: to the whole process group
    process.wait(timeout=TIMEOUT)
    wait("the end of every process after Ctrl-C", lambda: not processes_of(data), 10.0)


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
    site = Site(port)
    with started(installation, data, port) as process:
        if installation.command[0] == "make":
            marker = installation.folder / ".venv" / ".runs"
            wait("installing", lambda: marker.exists() or process.poll() is not None, 1200.0)
        _, seconds = wait("the first page", lambda: site.get("/"))
        report(f"first page {seconds:.1f} s after the installation")
        home = site.get("/")
        runs, _ = wait("a link to the sample's run", lambda: RUN_LINK.findall(site.get("/")))
        path = str(runs[0])  # type: ignore[index]
        _, seconds = wait("the sample's end", lambda: FINISHED in site.get(path))
        report(f"the sample was judged {seconds:.1f} s later")
        seen = links(home) | links(site.get(path))
        bad = {link: status for link in sorted(seen) if (status := site.status(link)) != 200}
        if bad:
            sys.exit(f"FAIL links that do not answer: {bad}")
        report(f"{len(seen)} links answer")
        stop(process, data)
    with started(installation, data, port) as process:
        _, seconds = wait("the first page of the second start", lambda: site.get("/"))
        report(f"second start: first page after {seconds:.1f} s")
        stop(process, data)


def report(text: str) -> None:
    print(f"ok   {text}", flush=True)


if __name__ == "__main__":
    main()
