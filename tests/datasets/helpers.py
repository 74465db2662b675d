"""Shared by the data set tests: a file of answers, and strategies for property tests."""

from __future__ import annotations

from typing import Any

from django.core.files.uploadedfile import SimpleUploadedFile
from django.http import HttpResponse
from django.test import Client
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from datasets.models import Version
from tests.datasets.conftest import jsonl

CELLS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
SETTINGS = settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def reply(text: str, model: str = "新模型", **key: Any) -> dict[str, Any]:
    return {**key, "model_name": model, "responses": [{"content": text}]}


GIVEN = jsonl(reply("北京", id="a"), reply("?", id="z"), reply("蓝", line=2)) + b"{bad\n"


def attach_address(version: Version, part: str = "") -> str:
    return f"/p/physics/datasets/{version.dataset_id}/v{version.number}/attach/{part}"


def send(client: Client, version: Version, content: bytes = GIVEN, **fields: Any) -> HttpResponse:
    return client.post(attach_address(version), {"file": SimpleUploadedFile("答案.jsonl", content), **fields})
