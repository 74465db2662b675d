"""The client against a running site: the code of docs/notebook.md and docs/ci.md."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from evalsite.accounts.models import Project
from evalsite.accounts.tokens import token_create
from evalsite.api import evalsite_client
from evalsite.management.commands.serve import answers
from evalsite.mcp.tools import TOOLS
from evalsite.supervisor import manage
from judging.core.judges.scripted import ScriptedJudge
from judging.endpoints.models import Endpoint
from tests.conftest import person
from tests.judging.evaluate_files import write_metrics
from tests.judging.judged import a_judged_run, first_of, said
from tests.migrated import migrated
from tests.processes.conftest import SETTINGS, Processes, wait_until
from tests.starting import free_port

pytestmark = pytest.mark.processes
DOCS = Path(__file__).parents[2] / "docs"
ROWS = 12  # enough to decide the documented requirement


@pytest.fixture
def judge() -> Iterator[ScriptedJudge]:
    with ScriptedJudge(reply="Score: [[8]]") as running:
        yield running


@pytest.fixture
def work(processes: Processes, judge: ScriptedJudge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files and the environment that the documentation assumes, and a running site."""
    port = free_port()
    processes.environment |= {"HOST": "127.0.0.1", "PORT": str(port), "REQUIRE_SIGN_IN": "1"}
    project = Project.objects.create(name="Physics", slug="physics")
    Endpoint.objects.create(project=project, name="judge", url=judge.url, model="scripted")
    _token, secret = token_create(user=person("olga", is_superuser=True), name="ci", days=None)
    processes.start("serve", "--no-sample")
    folder = tmp_path / "work"
    folder.mkdir()
    write_metrics(folder, judge.url)
    write_answers(folder / "answers.jsonl", ("alpha", "beta"))
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(Path(evalsite_client.__file__).parent))
    monkeypatch.setenv("EVALSITE_URL", f"http://127.0.0.1:{port}")
    monkeypatch.setenv("EVALSITE_TOKEN", secret)
    wait_until(lambda: answers(f"http://127.0.0.1:{port}/"))
    return folder


def write_answers(path: Path, models: tuple[str, ...]) -> None:
    outputs = [{"model_name": name, "responses": [{"content": f"by {name}"}]} for name in models]
    rows = [
        {"id": str(number), "messages": [{"role": "user", "content": "?"}], "model_outputs": outputs}
        for number in range(ROWS)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_the_code_of_the_notebook_uploads_judges_and_reads(work: Path) -> None:
    text = (DOCS / "notebook.md").read_text(encoding="utf-8")
    text = text[: text.index("## In the site's own folder")]
    variables: dict[str, Any] = {}
    for cell in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(cell, variables)
    variables["site"].close()
    assert variables["run"].state["state"] == "finished"
    assert variables["report"]["candidates"]["alpha"]["quality"]["mean"] == 8
    assert sorted(variables["table"]["model"]) == ["alpha"] * ROWS + ["beta"] * ROWS
    assert len(variables["worst"]) == 10


SHELL = re.findall(r"```sh\n(.*?)```", (DOCS / "ci.md").read_text(encoding="utf-8"), re.DOTALL)
FILES = ["junit.xml", "report.html", "report.json", "summary.md"]


def written(work: Path, script: str, **environment: str) -> list[str]:
    """The files that a shell step of docs/ci.md writes; `python` and `evalsite` are those of the tests."""
    commands = work / "bin"
    commands.mkdir()
    for name, command in {"python": [sys.executable], "evalsite": manage()}.items():
        (commands / name).write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
        (commands / name).chmod(0o755)
    everything = {**os.environ, **environment, "PATH": f"{commands}:{os.environ['PATH']}", "NO_PROXY": "*"}
    subprocess.run(["sh", "-e", "-c", script], cwd=work, env=everything, check=True, timeout=300)
    return sorted(path.name for path in (work / "ci").iterdir())


def test_the_shell_step_with_the_client_writes_a_report(work: Path) -> None:
    assert written(work, SHELL[1]) == FILES
    summary = (work / "ci" / "summary.md").read_text()
    assert "| quality | alpha | 8.000 |" in summary
    assert os.environ["EVALSITE_URL"] in summary


def test_the_shell_step_with_the_command_writes_a_report(tmp_path: Path, judge: ScriptedJudge) -> None:
    write_metrics(tmp_path, judge.url)
    write_answers(tmp_path / "answers.jsonl", ("alpha", "beta"))
    migrated(tmp_path / "data" / "evalsite.sqlite3")
    settings = {"DJANGO_SETTINGS_MODULE": "evalsite.settings", "DATABASE_URL": "", "JUDGE_KEY": "k"}
    assert written(tmp_path, SHELL[0], **settings) == FILES


def test_the_workflows_run_that_step() -> None:
    step = " ".join(SHELL[0].split()).removeprefix("evalsite ")
    workflows = re.findall(r"```yaml\n(.*?)```", (DOCS / "ci.md").read_text(encoding="utf-8"), re.DOTALL)
    assert [step in " ".join(workflow.split()) for workflow in workflows] == [True, True]


def test_the_script_judges_and_gates_on_a_site_with_sign_in(work: Path) -> None:
    (script,) = re.findall(r"```python\n(.*?)```", (DOCS / "ci.md").read_text(encoding="utf-8"), re.DOTALL)
    assert httpx.get(os.environ["EVALSITE_URL"], trust_env=False).headers["Location"].startswith("/sign-in")
    environment = {**os.environ, "PYTHONPATH": str(Path(evalsite_client.__file__).parent), "NO_PROXY": "*"}
    for least, status, told in ((5, 0, ""), (9, 1, "Not surely above 9: alpha, beta\n")):
        Path("gate.py").write_text(script.replace("LEAST = 5", f"LEAST = {least}"))
        done = subprocess.run(
            [sys.executable, "gate.py"], env=environment, capture_output=True, text=True, timeout=300
        )
        assert (done.returncode, done.stderr) == (status, told)
        assert "alpha: 8.00 (7.07 to 8.70)" in done.stdout


def test_both_languages_have_the_same_steps() -> None:
    block = re.compile(r"```.*?```", re.DOTALL)
    english, chinese = (
        block.findall((DOCS / name).read_text(encoding="utf-8")) for name in ("ci.md", "ci.zh.md")
    )
    assert english == chinese


async def answers_of(server: Any, calls: dict[str, dict[str, Any]]) -> tuple[list[str], dict[str, Any]]:
    """The names of the tools, and the results of calls by tool, as the SDK's client sees them."""
    from mcp import Client as Agent

    async with Agent(server) as agent:
        tools = (await agent.list_tools()).tools
        results = {name: (await agent.call_tool(name, calls[name])).structured_content for name in calls}
    return [tool.name for tool in tools], results


def test_the_sdk_of_the_protocol_uses_the_site_and_the_command(work: Path) -> None:
    import anyio
    import httpx2
    from mcp.client.stdio import StdioServerParameters
    from mcp.client.streamable_http import streamable_http_client

    run = a_judged_run(Project.objects.get(), lambda place: said(3), rows=1)
    run.version.candidates.update(responses=1)
    place = {"run": run.pk, "judgement": first_of(run).pk}
    numbers = {"dataset": run.version.dataset_id, "version": run.version.number}
    yaml = (work / "metrics.yaml").read_text()
    with evalsite_client.Client(os.environ["EVALSITE_URL"], os.environ["EVALSITE_TOKEN"]) as site:
        (metric,) = site.metric(yaml)
    answer = {"version": run.version_id, "line": 1, "model": "alpha"}
    chosen = {"version": run.version_id, "candidates": ["alpha"], "metrics": ["quality"], "calls": 9}
    calls: dict[str, dict[str, Any]] = {
        "projects": {},
        "datasets": {"dataset": run.version.dataset_id},
        "findings": numbers,
        "metrics": {},
        "preview": {"metric": metric["id"], **answer},
        "runs": {"run": run.pk},
        "judgements": place | {"fields": "core,value,prompt"},
        "report": {"run": run.pk},
        "disagreements": {"run": run.pk, "least": 0.5},
        "judges": {},
        "upload": {"name": "by an agent", "content": "{}\n"},
        "save_metric": {"yaml": yaml},
        "start_run": chosen,
        "comment": {**place, "text": "Look."},
        "override": {**place, "value": 7, "reason": "It is better."},
    }
    url, secret = os.environ["EVALSITE_URL"], os.environ["EVALSITE_TOKEN"]
    environment = {**SETTINGS, "EVALSITE_URL": url, "EVALSITE_TOKEN": secret, "DATA_DIR": str(work)}
    python, *arguments = manage("mcp")

    async def by_http() -> Any:
        headers = {"Authorization": f"Bearer {secret}"}
        async with httpx2.AsyncClient(headers=headers, trust_env=False) as http:
            return await answers_of(streamable_http_client(f"{url}/mcp", http_client=http), calls)

    command = StdioServerParameters(command=python, args=arguments, env=environment)
    for names, results in (anyio.run(by_http), anyio.run(answers_of, command, calls)):
        assert names == [tool.name for tool in TOOLS] == list(calls)
        assert [name for name in calls if "code" in results[name]] == []
        assert results["projects"]["items"][0]["slug"] == "physics"
        assert (results["preview"]["error"], results["disagreements"]["items"]) == (None, [])
        assert (results["comment"]["text"], results["override"]["value"]) == ("Look.", 7)
