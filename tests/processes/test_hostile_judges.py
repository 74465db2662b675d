"""Judges that mean ill beside a healthy one: its run is finished, and worker and web process need little memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from django.conf import LazySettings
from django.test import Client
from django.urls import reverse

from judging.core.judges.scripted import Answer, Received, ScriptedJudge
from judging.endpoints.limiter import KEY
from judging.endpoints.models import Endpoint, EndpointLoad
from judging.records.models import Run, RunState
from tests.conftest import person
from tests.judging.core.judges.hostile import ANSWERS, LISTS
from tests.judging.working import an_endpoint, run_on
from tests.make import a_project
from tests.processes.conftest import Processes, wait_until
from tests.starting import free_port

pytestmark = pytest.mark.processes
MOST_MEMORY = 700 * 2**20  # bytes
ROWS = 200


def peak_memory(pid: int) -> int:
    """The most memory that the process has held, in bytes (proc(5): VmHWM)."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


@pytest.fixture
def web(processes: Processes, settings: LazySettings) -> Iterator[tuple[int, Callable[[Endpoint], str]]]:
    """Start a web process. Yields its process id, and a function that tests a connection and returns the page."""
    session, form_token, port = Client(), "f" * 32, free_port()
    session.force_login(person("olga", is_superuser=True))
    processes.environment |= {"HOST": "127.0.0.1", "PORT": str(port), "REQUIRE_SIGN_IN": "1"}
    processes.environment |= {"SECRET_KEY": settings.SECRET_KEY}
    web = processes.start("serve", "--web-only")
    address = f"http://127.0.0.1:{port}"
    cookie = session.cookies[settings.SESSION_COOKIE_NAME].value
    client = httpx.Client(
        headers={"X-CSRFToken": form_token},
        cookies={settings.SESSION_COOKIE_NAME: cookie, settings.CSRF_COOKIE_NAME: form_token},
        follow_redirects=True,
        timeout=120,
    )

    def is_up() -> bool:
        try:
            return client.get(f"{address}/healthz").status_code == 200
        except httpx.TransportError:
            return False

    def test(endpoint: Endpoint) -> str:
        page = client.post(address + reverse("endpoints:test", args=(endpoint.project.slug, endpoint.pk)))
        assert page.status_code == 200
        return page.text

    with client:
        wait_until(is_up, 60)
        yield web.pid, test


def test_a_healthy_run_is_finished_beside_hostile_judges(
    processes: Processes, web: tuple[int, Callable[[Endpoint], str]]
) -> None:
    web_pid, tested = web
    with ExitStack() as judges:
        hostile = {}
        for name, (answer, _) in ANSWERS.items():
            judge = judges.enter_context(ScriptedJudge(answer, listing=LISTS.get(name)))
            endpoint = an_endpoint(a_project(name), judge.url)
            hostile[name] = run_on(endpoint, 10), endpoint, judge
        healthy = run_on(an_endpoint(a_project(), judges.enter_context(ScriptedJudge("[[5]]")).url), ROWS)
        worker = processes.start("worker", "--queue", "runs")
        for _, endpoint, _ in hostile.values():
            assert "Connection failed" in tested(endpoint)
        wait_until(lambda: Run.objects.get(pk=healthy.pk).state == RunState.FINISHED, 60)
        wait_until(lambda: all(judge.requests for _, _, judge in hostile.values()), 20)
        out_of_order = f"{KEY}{hostile['an error with NUL'][1].pk}"
        wait_until(lambda: "\ufffd" in EndpointLoad.objects.get(key=out_of_order).problem_detail, 20)
        assert worker.poll() is None
        assert max(peak_memory(worker.pid), peak_memory(web_pid)) < MOST_MEMORY
    assert Run.objects.get(pk=healthy.pk).scored == ROWS
    assert not Run.objects.filter(worker_deaths__gt=0).exists()


def test_a_run_that_kills_its_workers_is_set_aside_and_another_is_finished(processes: Processes) -> None:
    def kill(_asked: Received) -> Answer:
        processes.started[-1].kill()
        return Answer(fault="hang")

    def now(run: Run) -> Run:
        return Run.objects.get(pk=run.pk)

    def are_over() -> bool:
        return now(hostile).state == RunState.PAUSED and now(healthy).state == RunState.FINISHED

    with ScriptedJudge(kill) as deadly, ScriptedJudge("[[5]]") as judge:
        hostile = run_on(an_endpoint(a_project("other"), deadly.url), 10)
        healthy = run_on(an_endpoint(a_project(), judge.url), 10)
        # A request that a dead worker sent can still be answered, and kill the next worker before it counts as a death.
        while not are_over():
            worker = processes.start("worker", "--queue", "runs")
            wait_until(lambda worker=worker: worker.poll() is not None or are_over(), 60)
    assert (now(hostile).problem, now(hostile).worker_deaths) == ("worker_died", 2)
    assert now(healthy).scored == 10
