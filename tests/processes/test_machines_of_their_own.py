"""Web and workers on separate machines: real processes with their own DATA_DIR, one database, files in a bucket."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from django.conf import LazySettings
from django.conf import settings as dj
from django.db import connection
from django.test import Client

from datasets.models import SearchIndex, Version, VersionState
from evalsite.accounts.models import Membership, Project, Role, User
from judging.core.judges.scripted import ScriptedJudge
from judging.records.models import Run, RunState
from tests import s3
from tests.make import a_metric, a_run
from tests.processes.conftest import Processes, wait_until
from tests.starting import free_port

pytestmark = pytest.mark.processes
ROWS = "".join(
    json.dumps(
        {
            "messages": [{"role": "user", "content": f"question {n}"}],
            "model_outputs": [{"model_name": "alpha", "responses": [{"content": f"answer {n}"}]}],
        }
    )
    + "\n"
    for n in range(1, 31)
)


class Site:
    """A site of several machines, each with an empty DATA_DIR, and an HTTP client."""

    def __init__(self, processes: Processes, settings: LazySettings, folder: Path, address: str) -> None:
        self.processes, self.folder = processes, folder
        self.port = free_port()
        keys = {"SECRET_KEY": settings.SECRET_KEY, "ENCRYPTION_KEY": "k" * 50, "PORT": str(self.port)}
        given = s3.environment(address)
        s3.use(settings, given, self._machine("this test"))
        s3.make_bucket()
        processes.environment |= {**given, **keys}

    def _machine(self, name: str) -> Path:
        made = self.folder / name
        made.mkdir(mode=0o700)
        if connection.vendor == "sqlite":
            (made / "evalsite.sqlite3").symlink_to(Path(str(connection.settings_dict["NAME"])).resolve())
        return made

    def start(self, machine: str, *command: str) -> None:
        self.processes.environment["DATA_DIR"] = str(self._machine(machine))
        self.processes.start(*command)

    def browser(self, user: User) -> httpx.Client:
        """An HTTP client with the user signed in; waits until the site responds."""
        session = Client()
        session.force_login(user)
        cookie = session.cookies[dj.SESSION_COOKIE_NAME].value
        client = httpx.Client(
            base_url=f"http://127.0.0.1:{self.port}",
            cookies={dj.SESSION_COOKIE_NAME: cookie},
            timeout=30,
            trust_env=False,
        )
        wait_until(lambda: answers(client), 90)
        return client

    def holds(self, machine: str) -> set[str]:
        """Relative paths of stored files in a machine's DATA_DIR."""
        wanted = {"uploads", "search", "copies"}
        found = (path.relative_to(self.folder / machine) for path in (self.folder / machine).rglob("*.*"))
        return {str(path) for path in found if path.parts[0] in wanted}


def answers(client: httpx.Client) -> bool:
    try:
        return client.get("/healthz").status_code == 200
    except httpx.HTTPError:
        return False


@pytest.fixture
def site(processes: Processes, settings: LazySettings, tmp_path: Path) -> Iterator[Site]:
    with s3.server() as address:
        yield Site(processes, settings, tmp_path, address)


@pytest.fixture
def alice(site: Site) -> User:
    project = Project.objects.create(name="Physics", slug="physics")
    user = User.objects.create_user("alice", password="correct horse battery")
    Membership.objects.create(user=user, project=project, role=Role.ANALYST)
    return user


def upload(browser: httpx.Client) -> None:
    browser.get("/p/physics/datasets/upload/")
    token = {"X-CSRFToken": browser.cookies[dj.CSRF_COOKIE_NAME]}
    sent = browser.post(
        "/p/physics/datasets/upload/", files={"file": ("rows.jsonl", ROWS.encode())}, headers=token
    )
    assert sent.status_code == 302, sent.text


def test_an_upload_goes_from_machine_to_machine_and_is_judged(site: Site, alice: User) -> None:
    site.start("web", "serve", "--web-only")
    site.start("reader", "worker", "--queue", "data")
    with closing(site.browser(alice)) as browser:
        upload(browser)
        assert judged_elsewhere(site, browser).scored == 30


def judged_elsewhere(site: Site, browser: httpx.Client) -> Run:
    wait_until(lambda: Version.objects.filter(state=VersionState.READY).exists(), 60)
    version = Version.objects.get()
    assert version.valid_rows == 30
    with ScriptedJudge("Score: [[7]]") as judge:
        site.start("judge", "worker", "--queue", "runs")
        run = a_run(version, a_metric(judge.url))
        wait_until(lambda: Run.objects.get(pk=run.pk).state == RunState.FINISHED, 60)
    wait_until(lambda: SearchIndex.objects.filter(state=SearchIndex.State.READY).exists(), 60)
    rows = f"/p/physics/datasets/{version.dataset_id}/v1/"
    assert browser.get(f"{rows}original/").text == ROWS
    assert "question 17" in browser.get(f"{rows}rows/", params={"q": "question 17"}).text
    assert site.holds("judge") == set()  # run workers use the database only
    assert {name.split("/")[0] for name in site.holds("web") | site.holds("reader")} <= {"copies", "search"}
    return Run.objects.get(pk=run.pk)
