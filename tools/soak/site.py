"""The site under soak test: real processes as in docs/deploy.md, user accounts, and a scripted judge over HTTP."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from judging.core.judges.scripted import Answer, Latency, Received, ScriptedJudge, rate_limited, server_error

ROOT = Path(__file__).resolve().parents[2]
TEMPLATE = (
    "Question: {{ data.question }}\nReference: {{ data.ref_answer }}\nAnswer: {{ response.content }}\n[[n]]"
)


def prepare(url: str, password: str, roles: dict[str, str]) -> str:
    """Fill the database that the environment names; return an API token of the administrator."""
    import django

    django.setup()
    from django.db import connections

    from evalsite.accounts.members import roles_set
    from evalsite.accounts.models import User
    from evalsite.accounts.services import project_create
    from evalsite.accounts.tokens import token_create
    from evalsite.storage import data_dir
    from judging.core.metric_definition import JudgeModel, MetricDefinition
    from judging.endpoints.models import Endpoint
    from judging.metrics.services import metric_create

    data_dir.prepare()
    admin = User.objects.create_user("admin", password=password, is_superuser=True, is_staff=True)
    project = project_create(name="Soak", slug="soak", owner=admin)
    for name, role in roles.items():
        roles_set(project=project, user=User.objects.create_user(name, password=password), roles=[role])
    endpoint = Endpoint.objects.create(
        project=project, name="judge", url=url, model="scripted", created_by=admin
    )
    judge = JudgeModel(name="judge", endpoint=endpoint.pk, template=TEMPLATE)
    metric_create(project=project, definition=MetricDefinition(name="quality", judges=(judge,)), user=admin)
    token = token_create(user=admin, name="soak", days=1)[1]
    connections.close_all()
    return token


@dataclass
class Site:
    """A running site: URL, folder, started processes, and an API token for /metrics."""

    address: str
    folder: Path
    processes: list[subprocess.Popen[bytes]]
    token: str

    @property
    def log(self) -> Path:
        return self.folder / "site.log"

    def figures(self) -> dict[str, float]:
        """The values of /metrics: {`queue_waiting{queue="data"}`: 0.0, …}."""
        headers = {"Authorization": f"Bearer {self.token}"}
        asked = urllib.request.Request(f"{self.address}/metrics", headers=headers)  # noqa: S310
        with urllib.request.urlopen(asked, timeout=60) as answer:  # noqa: S310
            lines = [line for line in answer.read().decode().splitlines() if not line.startswith("#")]
        return {
            name.removeprefix("evalsite_"): float(value)
            for name, _, value in (line.rpartition(" ") for line in lines)
        }


def verdict(received: Received) -> Answer:
    """Reply with a score, except for 1 % transient errors and 1 % replies without a score."""
    chance = random.random()
    if chance < 0.01:
        return server_error() if chance < 0.005 else rate_limited("1")
    if chance < 0.02:
        return Answer(content="I would rather not say.", tokens=(300, 20))
    return Answer(content=f"It is mostly right. [[{random.randint(1, 10)}]]", tokens=(300, 20))


@contextmanager
def running(
    folder: Path, port: int, database: str, celery: bool, roles: dict[str, str], password: str
) -> Iterator[Site]:
    """Run the site on `port` with its data below `folder`; stop all processes at the end."""
    environment = {
        "DJANGO_SETTINGS_MODULE": "evalsite.settings",
        "DATA_DIR": str(folder / "data"),
        "DATABASE_URL": database,
        "PORT": str(port),
        "REQUIRE_SIGN_IN": "1",
        "DEMO_JUDGE": "0",
        "LOG_FORMAT": "json",
    }
    commands = [["serve"]]
    with ExitStack() as stack:
        judge = stack.enter_context(ScriptedJudge(verdict, keep=False, latency=Latency(0.3, 0.6)))
        if celery:
            broker = stack.enter_context(_redis(port + 1))
            environment |= {"TASK_ENGINE": "celery", "CELERY_BROKER_URL": broker}
            commands = [["serve", "--web-only"], ["worker"]]
        os.environ |= environment
        token = prepare(judge.url, password, roles)
        log = stack.enter_context((folder / "site.log").open("ab"))
        processes = [
            stack.enter_context(_started([sys.executable, "manage.py", *one], log)) for one in commands
        ]
        site = Site(f"http://127.0.0.1:{port}", folder, processes, token)
        _wait_for(site)
        yield site


@contextmanager
def _started(command: list[str], log: IO[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log, start_new_session=True)
    try:
        yield process
    finally:
        process.terminate()  # as systemd does
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)


@contextmanager
def _redis(port: int) -> Iterator[str]:
    server = shutil.which("redis-server")
    if server is None:
        sys.exit("--celery needs a redis-server on this machine (Debian: apt install redis-server).")
    command = [server, "--port", str(port), "--save", "", "--bind", "127.0.0.1"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        process.terminate()
        process.wait()


def _wait_for(site: Site) -> None:
    until = time.monotonic() + 180
    while True:
        try:
            figures = site.figures()
            if all(figures[f'worker_up{{queue="{queue}"}}'] for queue in ("data", "runs")):
                return
        except OSError:
            pass
        if time.monotonic() > until:
            sys.exit(f"The site did not start; see {site.log}.")
        time.sleep(0.5)
