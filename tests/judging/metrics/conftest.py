"""Fixtures of the metric tests: endpoints, metrics, and a data set to preview on."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import pytest

from datasets.core.kinds import SCORE
from datasets.importing.worker import import_version
from datasets.models import Version
from datasets.services import dataset_upload
from evalsite.accounts.models import Project, User
from evalsite.secrets import encrypt
from judging.core.judges.scripted import ScriptedJudge
from judging.core.metric_definition import JudgeModel, MetricDefinition
from judging.endpoints.models import Endpoint
from judging.metrics.models import Metric
from judging.metrics.selectors import newest_version
from judging.metrics.services import metric_create
from tests.datasets.conftest import jsonl

KEY = "sk-very-secret-key-0815"


@pytest.fixture
def endpoint(project: Project) -> Endpoint:
    """An endpoint with every kind of secret (key, headers, proxy password). Nothing listens at its address."""
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
    """An endpoint backed by a scripted judge."""
    return Endpoint.objects.create(
        project=project, name="Live", url=server.url, model="scripted", key_encrypted=encrypt(KEY)
    )


def imported(project: Project, name: str, rows: list[dict[str, Any]]) -> Version:
    """A data set of these rows, uploaded and read by the real importer."""
    file = io.BytesIO(jsonl(*rows))
    made = dataset_upload(project=project, name=name, file=file, file_name=f"{name}.jsonl", user=None)
    import_version(made.pk)
    made.refresh_from_db()
    return made


@pytest.fixture
def version(project: Project) -> Version:
    """Three rows with answers from two models. The second row lacks `topic`, and its question looks like HTML."""
    rows = [
        {"messages": [{"role": "user", "content": "What is 1+1?"}], "ref_answer": "2", "topic": "sums"},
        {"messages": [{"role": "user", "content": "<b>bold</b> & 你好"}], "ref_answer": None},
        {"messages": [{"role": "user", "content": "What is 3+3?"}], "ref_answer": "6", "topic": "sums"},
    ]
    for number, row in enumerate(rows, 1):
        row["model_outputs"] = [
            {"model_name": name, "responses": [{"content": f"{name} says {number}"}]}
            for name in ("ant", "bee")
        ]
    return imported(project, "Sums", rows)


@pytest.fixture
def labels(project: Project) -> Version:
    """Four rows: a good answer, a wrong label, invalid JSON, and a reference without 主题."""
    answers = ('{"标签": "物理", "主题": "折射"}', '{"标签": "化学", "主题": "光的折射与反射"}', "不是", "{}")
    rows = [
        {
            "messages": [{"role": "user", "content": f"标注第 {n} 段"}],
            "ref_answer": {"标签": "物理"} if n == 4 else {"标签": "物理", "主题": "光的折射"},
            "model_outputs": [{"model_name": "甲", "responses": [{"content": answer}]}],
        }
        for n, answer in enumerate(answers, 1)
    ]
    return imported(project, "标注", rows)


@pytest.fixture
def metric(project: Project, live: Endpoint, alice: User) -> Metric:
    judge = JudgeModel(
        name="Live", endpoint=live.pk, template="Q: {{ data.question }}\nA: {{ response.content }}"
    )
    return metric_create(
        project=project, definition=MetricDefinition(name="Quality", judges=(judge,)), user=alice
    )


def form_of(metric: Metric | None, **changes: object) -> dict[str, object]:
    """The editor's form data for the newest version of `metric`, with `changes`."""
    version = newest_version(metric) if metric else None
    definition = MetricDefinition.from_json(version.definition) if version else MetricDefinition(name="New")
    fields: dict[str, object] = {
        "start": "",
        "metric": metric.pk if metric else "",
        "began": version.number if version else "",
        "seen": version.number if version else "",
        "name": definition.name,
        "gives": definition.kind if version else SCORE,
        "min_score": "1",
        "max_score": "10",
        "undefined": "strict",
        "preprocess": "",
        "postprocess": "",
    }
    for number, judge in enumerate(definition.judges or (JudgeModel(name="", template="t"),)):
        fields |= {
            f"judge-{number}-endpoint": judge.endpoint or "",
            f"judge-{number}-template": judge.template,
            f"judge-{number}-parse": "",
            f"judge-{number}-pattern": "",
            f"judge-{number}-system_prompt": "",
            f"judge-{number}-params": "",
        }
    return fields | changes
