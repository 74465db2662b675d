"""What this room's tests share: endpoints, metrics, and a data set to preview on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from evalsite.accounts.models import Project
from evalsite.secrets import encrypt
from judging.core.judges.scripted import ScriptedJudge
from judging.metrics.models import Endpoint

KEY = "sk-very-secret-key-0815"


@pytest.fixture
def endpoint(project: Project) -> Endpoint:
    """An endpoint with everything that must never be shown; nothing answers at its address."""
    return Endpoint.objects.create(
        project=project,
        name="Judge",
        url="http://127.0.0.1:9/v1",
        model="judge-1",
        key_encrypted=encrypt(KEY),
        headers_encrypted=encrypt('{"X-Team": "hidden-header-value"}'),
        proxy_encrypted=encrypt("http://someone:proxy-password@127.0.0.1:9"),
    )


@pytest.fixture
def server() -> Iterator[ScriptedJudge]:
    with ScriptedJudge("Score: [[7]]", api_key=KEY) as judge:
        yield judge


@pytest.fixture
def live(project: Project, server: ScriptedJudge) -> Endpoint:
    """An endpoint at which a scripted judge answers."""
    return Endpoint.objects.create(
        project=project, name="Live", url=server.url, model="scripted", key_encrypted=encrypt(KEY)
    )
