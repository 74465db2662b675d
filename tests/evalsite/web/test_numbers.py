"""Numbers in URLs that exceed the database's integer range do not cause server errors."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from evalsite.accounts.models import Project, User
from judging.engine import planning
from tests.make import a_metric, a_run, a_version

BEYOND = [("get", 2**63), ("post", 10**40)]
_PARAMETER = re.compile(r"<(?:(\w+):)?(\w+)>")
_TEXTS = {"code": "json.invalid", "form": "jsonl", "name": "report.json", "token": "x", "key": "x"}


def routes(patterns: list[URLPattern | URLResolver], before: str = "") -> Iterator[str]:
    for one in patterns:
        route = before + str(one.pattern)
        if isinstance(one, URLResolver):
            yield from routes(one.url_patterns, route)
        else:
            yield route


def addresses_with(number: int) -> list[str]:
    """The path of every route with an integer parameter, filled with `number`."""

    def value(parameter: re.Match[str]) -> str:
        kind, name = parameter[1], parameter[2]
        return str(number) if kind == "int" else "physics" if kind == "slug" else _TEXTS.get(name, "x")

    found = [route for route in routes(get_resolver().url_patterns) if "<int:" in route]
    return ["/" + _PARAMETER.sub(value, route) for route in found]


@pytest.fixture
def administrator(client: Client, project: Project) -> Client:
    client.force_login(User.objects.create_superuser("root", password="x"))
    client.raise_request_exception = False
    return client


@pytest.mark.parametrize(("method", "number"), BEYOND)
def test_there_is_nothing_at_a_number_that_no_database_has(
    administrator: Client, method: str, number: int
) -> None:
    statuses = {path: getattr(administrator, method)(path).status_code for path in addresses_with(number)}
    assert {path: status for path, status in statuses.items() if status not in (404, 405)} == {}


QUERIES = {
    "": ["before"],
    "datasets/": ["before", "undo"],
    "datasets/upload/": ["dataset"],
    "runs/": ["before"],
    "runs/new/": ["version", "from_version"],
    "evaluations/": ["before"],
    "evaluations/new/": ["version"],
    "metrics/new/": ["version", "sample_version", "sample_row", "row_judge", "metric"],
    "log/": ["before", "after", "who", "what"],
    "datasets/{dataset}/v1/rows/": ["line", "after", "before", "model"],
    "datasets/{dataset}/v1/rows/1/": ["model", "line"],
    "runs/{run}/judgements/": ["after", "before", "line", "rule", "metric", "candidate"],
    "runs/{run}/judgements/{judgement}/": ["line", "rule", "metric", "candidate"],
    "runs/{run}/judge-again/": ["only", "line", "metric", "candidate"],
    "runs/{run}/report/pair/": ["metric", "a", "b", "page"],
}
VALUES = [str(2**63), "9" * 5000, "1~" + "9" * 30, "nan~1", "²"]


@pytest.mark.parametrize("page", QUERIES)
def test_no_number_in_a_query_is_a_fault(administrator: Client, project: Project, page: str) -> None:
    version = a_version(project, rows=2)
    run = a_run(version, a_metric("http://127.0.0.1:9/v1"))
    planning.plan(run.pk)
    judgement = run.judgements.order_by("pk").values_list("pk", flat=True)[0]
    path = page.format(dataset=version.dataset_id, run=run.pk, judgement=judgement)
    asked = [(name, value) for name in QUERIES[page] for value in VALUES]
    found = {one: administrator.get(f"/p/{project.slug}/{path}", dict([one])).status_code for one in asked}
    assert {one: status for one, status in found.items() if status >= 500} == {}
