"""The client against a running site: the code of docs/notebook.md."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evalsite.accounts.models import Project
from evalsite.accounts.tokens import token_create
from evalsite.api import evalsite_client
from evalsite.management.commands.serve import answers
from judging.core.judges.scripted import ScriptedJudge
from judging.endpoints.models import Endpoint
from tests.conftest import person
from tests.judging.evaluate_files import write_metrics
from tests.processes.conftest import Processes, wait_until
from tests.starting import free_port

pytestmark = pytest.mark.processes
DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def judge() -> Iterator[ScriptedJudge]:
    with ScriptedJudge(reply="Score: [[8]]") as running:
        yield running


@pytest.fixture
def work(processes: Processes, judge: ScriptedJudge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files and the environment that the documentation assumes, and a running site."""
    port = free_port()
    processes.environment |= {"HOST": "127.0.0.1", "PORT": str(port)}
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
        for number in range(4)
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
    assert sorted(variables["table"]["model"]) == ["alpha"] * 4 + ["beta"] * 4
    assert len(variables["worst"]) == 8
