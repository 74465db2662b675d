"""The MCP server at /mcp, and its tools."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import Any

import pytest
from django.conf import LazySettings
from django.test import Client

from evalsite.accounts.models import ApiToken, Project, User
from evalsite.accounts.tokens import token_create
from evalsite.mcp.messages import IN_RESULT
from evalsite.mcp.sizes import MOST_BYTES, fitting, fitting_page, size_of
from evalsite.mcp.tools import BY_NAME, TOOLS, WrongArguments
from judging.metrics.services import metric_create
from judging.records.models import Run
from tests.judging.judged import JUDGE_URL, a_judged_run, first_of, said
from tests.judging.people.make import about, rate_each
from tests.make import a_metric

METRIC = r"""
metrics:
- name: exact
  pipeline:
  - {type: RULES, file_content: "# DSL\n@whole: exact_match\n@format: text"}
"""


class Agent:
    """Sends messages to /mcp with a token of `user`."""

    def __init__(self, user: User, scope: str = "write") -> None:
        _token, secret = token_create(user=user, name="agent", days=None, scope=scope)
        self.headers = {"Authorization": f"Bearer {secret}"}

    def post(self, message: Any, **headers: str) -> Any:
        return Client().post("/mcp", message, "application/json", headers=self.headers | headers)

    def send(self, method: str, **params: Any) -> Any:
        return self.post({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).json()

    def call(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        result: dict[str, Any] = self.send("tools/call", name=name, arguments=arguments)["result"]
        return result


@pytest.fixture
def agent(alice: User) -> Agent:
    return Agent(alice)


@pytest.fixture
def run(project: Project) -> Run:
    return a_judged_run(project, lambda place: said(place % 3 + 1), rows=4)


def test_there_are_at_most_fifteen_tools() -> None:
    assert len(TOOLS) <= 15
    writing = {"upload", "save_metric", "start_run", "comment", "override"}
    assert {tool.name for tool in TOOLS if tool.writes} == writing


def test_a_client_is_told_what_the_server_can_do(agent: Agent) -> None:
    result = agent.send("initialize", protocolVersion="2025-06-18")["result"]
    assert (result["protocolVersion"], list(result["capabilities"])) == ("2025-06-18", ["tools"])
    assert len(agent.send("tools/list")["result"]["tools"]) == len(TOOLS)


def test_a_notification_has_no_answer(agent: Agent) -> None:
    response = agent.post({"jsonrpc": "2.0", "method": "notifications/initialized"})
    assert (response.status_code, response.content) == (202, b"")


def test_texts_stand_in_structured_content_only(agent: Agent, run: Run) -> None:
    result = agent.call("judgements", run=run.pk, fields="core,value,prompt", limit=2)
    assert len(result["structuredContent"]["items"]) == 2
    assert result["content"] == [{"type": "text", "text": "The result is in structuredContent."}]


def test_the_cursor_leads_to_the_next_page(agent: Agent, run: Run) -> None:
    first = agent.call("judgements", run=run.pk, limit=5)["structuredContent"]
    second = agent.call("judgements", run=run.pk, limit=100, cursor=first["next"])["structuredContent"]
    ids = [item["id"] for page in (first, second) for item in page["items"]]
    assert len(set(ids)) == run.total


def test_two_runs_are_reported_beside_each_other(agent: Agent, run: Run) -> None:
    report = agent.call("report", run=run.pk, baseline=run.pk)["structuredContent"]
    assert report["candidates"] == report["baseline"]["candidates"]
    assert report["comparison"]["state"] == "ready"
    assert report["comparison"]["metrics"]["quality"]["alpha"]["difference"] == 0


def test_a_refusal_of_the_site_is_a_result(agent: Agent) -> None:
    result = agent.call("runs", run=77)
    assert (result["isError"], result["structuredContent"]["code"]) == (True, "not_found")


def test_a_metric_is_saved_by_a_token_that_may_write_only(agent: Agent, alice: User) -> None:
    refused = Agent(alice, "read").call("save_metric", yaml=METRIC)
    assert refused["structuredContent"]["code"] == "read_only"
    (saved,) = agent.call("save_metric", yaml=METRIC)["structuredContent"]["metrics"]
    assert (saved["name"], saved["done"]) == ("exact", "new")


def test_a_judgement_is_commented_and_overridden_by_a_token_that_may_write_only(bob: User, run: Run) -> None:
    agent = Agent(bob)
    place: dict[str, Any] = {"run": run.pk, "judgement": first_of(run).pk}
    verdict = {"value": 7, "reason": "It is better."}
    for name, arguments in (("comment", {"text": "Look."}), ("override", verdict)):
        refused = Agent(bob, "read").call(name, **place, **arguments)
        assert refused["structuredContent"]["code"] == "read_only"
    assert agent.call("comment", **place, text="Look.")["structuredContent"]["text"] == "Look."
    override = agent.call("override", **place, **verdict)
    assert (override["structuredContent"]["value"], override["content"][0]["text"]) == (7, IN_RESULT)
    assert first_of(run).score_in_force == 7
    assert agent.call("override", **place, **verdict, seen=0)["structuredContent"]["code"] == "conflict"
    agent.call("override", **place, value=None, reason="It is not.")
    assert first_of(run).score_in_force == 1


def test_disagreements_of_judge_and_people_come_in_pages(
    agent: Agent, alice: User, rita: User, run: Run
) -> None:
    rate_each(about(run, [rita]), rita, lambda item: 9)
    metric = run.metrics.get().name
    first = agent.call("disagreements", run=run.pk, metric=metric, least=6.5, limit=1)["structuredContent"]
    second = agent.call("disagreements", run=run.pk, metric=metric, least=6.5, cursor=first["next"])
    differences = [
        item["difference"] for page in (first, second["structuredContent"]) for item in page["items"]
    ]
    assert (first["items"][0]["metric"], min(differences) >= 6.5, len(differences) > 1) == (
        metric,
        True,
        True,
    )


def test_judges_are_listed_in_pages_of_metrics(agent: Agent, project: Project) -> None:
    for name in ("exact", "helpful"):
        metric_create(project=project, definition=a_metric(JUDGE_URL, name=name), user=None)
    first = agent.call("judges", limit=1)["structuredContent"]
    second = agent.call("judges", cursor=first["next"])["structuredContent"]
    names = [judge["metric"] for page in (first, second) for judge in page["items"]]
    assert (names, first["items"][0]["licence"]) == (["exact", "helpful"], None)


def test_rows_are_uploaded(agent: Agent) -> None:
    result = agent.call("upload", name="sums", content="{}\n")["structuredContent"]
    assert agent.call("datasets")["structuredContent"]["items"][0]["id"] == result["dataset"]


def test_other_projects_stay_closed(charlie: User, run: Run) -> None:
    result = Agent(charlie).call("report", run=run.pk, project="physics")
    assert result["structuredContent"]["code"] == "not_found"


@pytest.mark.parametrize("arguments", [{}, {"run": "7"}, {"run": 1, "other": 2}])
def test_wrong_arguments_are_named(agent: Agent, arguments: dict[str, Any]) -> None:
    assert agent.call("report", **arguments)["structuredContent"]["code"] == "invalid"


@pytest.mark.parametrize("value", [7, 0.5, True, "good", None])
def test_a_value_is_of_one_of_its_types(value: Any) -> None:
    place = {"run": 1, "judgement": 2, "reason": "x"}
    BY_NAME["override"].check(place | {"value": value})
    with pytest.raises(WrongArguments, match="number or boolean or string or null"):
        BY_NAME["override"].check(place | {"value": [value]})


@pytest.mark.parametrize("least", [True, "1"])
def test_a_number_is_neither_a_truth_value_nor_a_text(least: Any) -> None:
    with pytest.raises(WrongArguments, match="least must be of type number"):
        BY_NAME["disagreements"].check({"run": 1, "least": least})


@pytest.mark.parametrize("method", ["resources/list", "server/discover"])
def test_other_methods_do_not_exist(agent: Agent, method: str) -> None:
    assert agent.send(method)["error"]["code"] == -32601


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Authorization": ""}, 401),
        ({"Authorization": "Bearer x"}, 401),
        ({"Origin": "https://evil.example"}, 403),
    ],
)
def test_a_token_and_the_sites_own_origin_are_required(
    agent: Agent, headers: dict[str, str], status: int
) -> None:
    response = agent.post({"jsonrpc": "2.0", "id": 1, "method": "ping"}, **headers)
    assert (response.status_code, "error" in response.json()) == (status, True)


def test_another_host_is_refused_in_json(agent: Agent) -> None:
    response = agent.post({"jsonrpc": "2.0", "id": 1, "method": "ping"}, Host="evil.example")
    assert (response.status_code, response.json()["error"]["code"]) == (400, "bad_request")


@pytest.mark.parametrize("method", ["get", "delete"])
def test_there_are_no_streams_and_sessions(agent: Agent, method: str) -> None:
    response = getattr(Client(), method)("/mcp", headers=agent.headers)
    assert (response.status_code, response["Allow"]) == (405, "POST")


def test_a_message_counts_once_however_many_addresses_its_tool_reads(
    agent: Agent, run: Run, settings: LazySettings
) -> None:
    settings.CONFIG = replace(settings.CONFIG, api_requests_per_minute=1)
    ApiToken.objects.update(calls_left=1.0, calls_at=time.time())
    assert agent.call("report", run=run.pk, baseline=run.pk)["isError"] is False
    ApiToken.objects.update(calls_left=-100.0)
    assert agent.post({"jsonrpc": "2.0", "id": 1, "method": "ping"}).status_code == 429


def test_what_is_no_json_is_refused(agent: Agent) -> None:
    response = Client().post("/mcp", b"{", "application/json", headers=agent.headers)
    assert (response.status_code, response.json()["error"]["code"]) == (400, -32700)


def test_a_page_holds_what_fits() -> None:
    page = fitting_page(lambda limit: {"items": ["x" * 3000] * limit, "next": limit}, 100)
    assert size_of(page) <= MOST_BYTES
    assert page["next"] == len(page["items"]) > 1


def test_a_long_result_is_shortened_and_says_so() -> None:
    result = fitting({"answer": "x" * 100_000, "list": list(range(9))})
    assert (result["cut"], result["list"]) == (True, list(range(9)))
    assert len(json.dumps(result)) <= MOST_BYTES
