"""The site in a separate process while its storage is unavailable."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from django.conf import LazySettings
from django.db import connection

from evalsite import env
from evalsite.accounts.models import User
from evalsite.accounts.services import local_administrator_create
from evalsite.accounts.tokens import token_create
from evalsite.storage import data_dir
from evalsite.storage.backup import copy_sqlite
from evalsite.supervisor import PARENT, manage
from tests.deadlines import slack, wait_until
from tests.full_and_locked import silent_server
from tests.processes.conftest import SETTINGS, Processes
from tests.starting import free_port, leashed

pytestmark = pytest.mark.processes
UPLOAD = "/api/v1/projects/physics/datasets"
MOUNTED = (
    'mount -t tmpfs -o size=48m,mode=700 tmpfs "$0" && ln -s "$1" "$0/evalsite.sqlite3" && shift && exec "$@"'
)
FILLED = (
    'mount -t tmpfs -o size=16m,mode=700 tmpfs "$0" && cp -a "$1/." "$0" && shift || exit; '
    f'cat /dev/zero > "$0/filling"; unset {PARENT}; exec "$@"'
)


@dataclass
class Web:
    """A web process and its log."""

    port: int
    log: Path
    process: subprocess.Popen[bytes]

    def address(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def get(self, path: str, **headers: str) -> httpx.Response:
        return httpx.get(self.address(path), headers=headers, timeout=120)

    def is_up(self) -> bool:
        try:
            return self.get("/healthz").status_code == 200
        except httpx.TransportError:
            return False

    def problems(self) -> list[str]:
        return [line for line in self.log.read_text().splitlines() if "evalsite.web.refusals" in line]


Start = Callable[..., Web]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start web processes as the supervisor does once DATA_DIR and the tables are ready."""
    started: list[subprocess.Popen[bytes]] = []

    def begin(*before: str, **environment: str) -> Web:
        port, path = free_port(), tmp_path / "log"
        given = {**os.environ, **SETTINGS, "DATA_DIR": str(tmp_path), "PORT": str(port), "HOST": "127.0.0.1"}
        given |= {PARENT: str(os.getpid()), "REQUIRE_SIGN_IN": "1", **environment}
        with path.open("wb") as log:
            command = leashed([*before, *manage("serve", "--web-only")])
            started.append(subprocess.Popen(command, env=given, stderr=log))
        web = Web(port, path, started[-1])
        wait_until(web.is_up)
        return web

    yield begin
    for process in started:
        process.kill()
        process.wait()


def test_postgresql_that_never_answers_costs_pages_a_few_seconds_and_no_thread(start: Start) -> None:
    """As when the PostgreSQL process is stopped or its machine is unreachable."""
    with silent_server() as silent:
        web = start(DATABASE_URL=f"postgres://u:p@127.0.0.1:{silent}/evalsite")
        cookie = {"Cookie": "evalsite_session=abcdefghijklmnopqrstuvwxyz"}
        began = time.monotonic()
        with ThreadPoolExecutor(6) as visitors:
            answers = list(visitors.map(lambda _: web.get("/", **cookie), range(6)))
        took = time.monotonic() - began
        assert {(one.status_code, one.headers["Retry-After"]) for one in answers} == {(503, "30")}
        assert all("The database is not responding" in one.text for one in answers)
        assert took < 2 * env.PAGES_WAIT_SECONDS * slack()
        assert len(web.problems()) == 6
        chinese = web.get("/", **cookie, **{"Accept-Language": "zh-hans"})
        assert (chinese.status_code, "数据库没有响应" in chinese.text) == (503, True)
        ready = web.get("/readyz")
        assert (ready.status_code, ready.text) == (503, "the database does not answer\n")
        assert web.get("/healthz").status_code == 200


def skip_unless_mounting() -> None:
    if not shutil.which("unshare") or subprocess.run(["unshare", "-rm", "true"], check=False).returncode:
        pytest.skip("this machine lets no process mount a file system")


@pytest.mark.skipif(connection.vendor != "sqlite", reason="a file beside DATA_DIR, on this database only")
def test_a_disk_that_is_full_and_has_space_again(
    start: Start, processes: Processes, alice: User, tmp_path: Path
) -> None:
    """DATA_DIR is a 48 MB file system mounted for the web process only; the database is on another one."""
    skip_unless_mounting()
    disk, (_, secret) = tmp_path / "disk", token_create(user=alice, name="test", days=None)
    disk.mkdir()
    database = str(Path(str(connection.settings_dict["NAME"])).resolve())
    web = start("unshare", "-rm", "sh", "-c", MOUNTED, str(disk), database, DATA_DIR=str(disk))
    signed_in = {"Authorization": f"Bearer {secret}"}

    def upload() -> httpx.Response:
        file = {"file": ("a.jsonl", b" " * 2**20)}
        return httpx.post(web.address(UPLOAD), files=file, headers=signed_in, timeout=120)

    assert web.get("/readyz").status_code == 200
    filling = Path(f"/proc/{web.process.pid}/root{disk}/filling")
    with contextlib.suppress(OSError), filling.open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 2**16)
    ready, refused = web.get("/readyz"), upload()
    assert (ready.status_code, "MiB left" in ready.text) == (503, True)
    assert (refused.status_code, "disk is full" in refused.text) == (503, True)
    assert len(web.problems()) == 1
    assert web.get("/api/v1/projects", **signed_in).status_code == 200
    filling.unlink()
    assert (web.get("/readyz").status_code, upload().status_code) == (200, 202)


@pytest.fixture
def stopped_site(transactional_db: None, tmp_path: Path, settings: LazySettings) -> Iterator[Path]:
    """The DATA_DIR of a site that was used and stopped."""
    settings.DATA_DIR, umask = tmp_path / "data", os.umask(0o077)
    data_dir.prepare()
    local_administrator_create()
    copy_sqlite(settings.DATA_DIR)
    with closing(sqlite3.connect(settings.DATA_DIR / "evalsite.sqlite3")) as database:
        database.execute("PRAGMA journal_mode = WAL")
    yield settings.DATA_DIR
    os.umask(umask)


@pytest.mark.skipif(connection.vendor != "sqlite", reason="a file in DATA_DIR, on this database only")
def test_a_site_started_on_a_full_disk_is_read_and_says_why_nothing_can_be_changed(
    start: Start, stopped_site: Path, tmp_path: Path
) -> None:
    skip_unless_mounting()
    (disk := tmp_path / "disk").mkdir()
    mounted = ("unshare", "-rm", "sh", "-c", FILLED, str(disk), str(stopped_site))
    web = start(*mounted, DATA_DIR=str(disk), REQUIRE_SIGN_IN="0")
    home = web.get("/")
    assert (home.status_code, "disk is full" in home.text) == (200, True)
    assert web.get("/static/css/site.css").status_code == 200
    with contextlib.suppress(OSError), Path(f"/proc/{web.process.pid}/root{disk}/more").open("wb") as file:
        file.write(b"x" * 2**20)  # also what was freed at the start
    refused = httpx.post(web.address("/projects/new/"), data={"name": "later"}, timeout=120)
    assert (refused.status_code, "disk is full" in refused.text) == (507, True)
    assert web.get("/").status_code == 200
