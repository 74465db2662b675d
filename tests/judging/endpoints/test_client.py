"""The endpoint client: which server an API key is sent to, remembered refusals, and shared slots."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connections

from evalsite.accounts.models import Project
from evalsite.secrets import encrypt
from judging.core.metric_definition import JudgeModel
from judging.endpoints import limiter
from judging.endpoints.client import ClientPool, ModelConnection
from judging.endpoints.models import Endpoint, EndpointShare

KEY = "sk-a-secret-key"


def endpoint(project: Project, url: str = "http://127.0.0.1:9001", key: str = KEY) -> Endpoint:
    return Endpoint.objects.create(
        project=project,
        name="judge",
        url=url,
        model="m",
        key_encrypted=encrypt(key),
        refuses=["stream_options"],
    )


async def at_once(work: Callable[..., Any], *arguments: Any) -> Any:
    return work(*arguments)


def pool() -> ClientPool:
    return ClientPool("test:1:1", reads=at_once, writes=at_once)


def connection(row: Endpoint, url: str) -> ModelConnection:
    return pool().connection(JudgeModel(name="judge", template="", endpoint=row.pk, url=url, model="m"))


def test_a_key_goes_to_the_server_that_it_is_kept_for(project: Project) -> None:
    found = connection(endpoint(project), "http://127.0.0.1:9001/v1/chat/completions")
    assert (found.settings.api_key, found.failure) == (KEY, None)


def test_a_key_does_not_go_to_the_server_of_an_older_run(project: Project) -> None:
    found = connection(endpoint(project, "http://127.0.0.1:9001"), "http://127.0.0.1:9002/v1")
    assert found.failure is not None
    assert found.failure.code == "endpoint_moved"


def test_an_endpoint_without_secrets_may_move(project: Project) -> None:
    assert connection(endpoint(project, key=""), "http://127.0.0.1:9002/v1").failure is None


def test_what_a_server_refuses_is_remembered(project: Project) -> None:
    assert connection(endpoint(project), "http://127.0.0.1:9001").settings.refuses == {"stream_options"}


def test_a_lost_key_is_reported(project: Project) -> None:
    row = endpoint(project)
    Endpoint.objects.filter(pk=row.pk).update(key_encrypted="encrypted with another key")
    found = connection(row, "http://127.0.0.1:9001")
    assert found.failure is not None
    assert found.failure.code == "key_unreadable"


def test_a_key_of_the_environment_that_is_not_set_is_named(monkeypatch: pytest.MonkeyPatch, db: None) -> None:
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    judge = JudgeModel(
        name="judge", template="", url="http://127.0.0.1:9001", model="m", api_key_env="NO_SUCH_KEY"
    )
    found = pool().connection(judge)
    assert found.failure is not None
    assert (found.failure.code, found.failure.detail) == ("key_missing", "NO_SUCH_KEY")


def test_slots_are_shared_by_all_who_ask_an_address(db: None) -> None:
    found = pool()
    one, two = (JudgeModel(name=n, template="", url="http://127.0.0.1:9001", model="m") for n in "ab")
    assert found.connection(one).client is found.connection(two).client


def test_a_share_is_released_after_an_allocation_that_is_still_being_written(
    transactional_db: None,
) -> None:
    threads = ThreadPoolExecutor(1)

    async def slowly(work: Callable[..., Any], *arguments: Any) -> Any:
        def in_thread() -> Any:
            time.sleep(0.1 if work is limiter.allocate else 0.0)
            return work(*arguments)

        return await asyncio.get_running_loop().run_in_executor(threads, in_thread)

    async def end_while_allocating(worker: ClientPool) -> None:
        syncing = asyncio.create_task(worker.allocate())
        await asyncio.sleep(0.02)
        syncing.cancel()
        await worker.release_shares()

    worker = ClientPool("test:1:1", reads=slowly, writes=slowly)
    worker.client(JudgeModel(name="judge", template="", url="http://127.0.0.1:9001", model="m"))
    asyncio.run(end_while_allocating(worker))
    threads.submit(connections.close_all).result()
    threads.shutdown()
    assert not EndpointShare.objects.exists()
