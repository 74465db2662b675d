"""`manage.py evaluate` as scripts use it: a process, two output files, an exit status.

What does not depend on the process is in tests/judging/management/test_evaluate_command.py.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evalsite.supervisor import manage
from judging.core.judges.scripted import Answer, ScriptedJudge
from tests.commands import command
from tests.judging.evaluate_files import write_metrics, write_rows
from tests.migrated import migrated
from tests.processes.conftest import SETTINGS, wait_until
from tests.starting import leashed

pytestmark = pytest.mark.processes


class Folder:
    """A DATA_DIR and the files around it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.out = path / "out"
        self.started: list[subprocess.Popen[str]] = []
        self.environment = {
            **os.environ,
            **SETTINGS,
            "DATA_DIR": str(path / "data"),
            "DATABASE_URL": "",
            "JUDGE_KEY": "k-123456",
        }

    def metrics(self, url: str) -> Path:
        return write_metrics(self.path, url)

    def rows(self, count: int) -> Path:
        return write_rows(self.path, count)

    def start(self, *arguments: object) -> subprocess.Popen[str]:
        command = manage("evaluate", *map(str, arguments), "--out", str(self.out), "--json")
        process = subprocess.Popen(
            leashed(command), env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.started.append(process)
        return process

    def evaluate(self, *arguments: object) -> tuple[int, dict[str, Any], str]:
        process = self.start(*arguments)
        out, err = process.communicate(timeout=600)
        return process.returncode, json.loads(out) if out else {}, err

    def judgements(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.out / "judgements.jsonl").read_text().splitlines()]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    made = Folder(tmp_path)
    migrated(tmp_path / "data" / "evalsite.sqlite3")
    yield made
    for process in made.started:
        with process:  # closes its pipes and waits
            process.kill()


def test_a_file_is_judged_both_results_are_written_and_no_process_is_left(folder: Folder) -> None:
    shutil.rmtree(folder.path / "data")  # the command creates it
    with ScriptedJudge(reply="Score: [[8]]", api_key="k-123456") as judge:
        status, found, _ = folder.evaluate(folder.rows(5), "--metrics", folder.metrics(judge.url))
        assert len(judge.requests) == 5
    assert (status, found["judgements"], found["scored"]) == (0, 5, 5)
    assert found["report"]["candidates"]["alpha"]["quality"]["mean"] == 8
    assert json.loads((folder.out / "report.json").read_text()) == found["report"]
    assert [one["line"] for one in folder.judgements()] == [1, 2, 3, 4, 5]
    wanted = f"DATA_DIR={folder.path / 'data'}".encode()
    wait_until(lambda: not any(wanted in environment(entry) for entry in Path("/proc").glob("[0-9]*")), 1)


def test_candidates_of_the_metrics_file_are_asked_and_judged(folder: Folder) -> None:
    with ScriptedJudge(
        reply=lambda asked: "Score: [[6]]" if asked.prompt.startswith("[") else "mine", api_key="k-123456"
    ) as judge:
        metrics = folder.metrics(judge.url)
        candidate = {"name": "qwen", "url": judge.url, "model": "q", "api_key_env": "JUDGE_KEY", "n": 2}
        candidate |= {"system_prompt": "Be brief.", "generation_params": {"seed": 5}}
        metrics.write_text(f"candidates: [{json.dumps(candidate)}]\n" + metrics.read_text())
        status, found, error = folder.evaluate(folder.rows(2), "--metrics", metrics)
        sent = [one.body for one in judge.requests if one.prompt == "?"]
    assert (status, found["judgements"], found["scored"], error) == (0, 6, 6, "")
    assert sorted(body["seed"] for body in sent) == [5, 5, 6, 6]
    assert sent[0]["messages"][0] == {"role": "system", "content": "Be brief."}
    generation = next(one["generation"] for one in folder.judgements() if one["model"] == "qwen")
    assert (generation["answer"], generation["calls"]) == ({"content": "mine"}, 1)
    assert not list(holding(folder.path, b"k-123456"))


def holding(path: Path, text: bytes) -> list[Path]:
    return [file for file in path.rglob("*") if file.is_file() and text in file.read_bytes()]


def test_a_run_that_was_killed_goes_on_where_it_was(folder: Folder) -> None:
    with ScriptedJudge(reply=lambda _: Answer(content="Score: [[8]]", delay=0.3)) as judge:
        arguments = (folder.rows(600), "--metrics", folder.metrics(judge.url), "--name", "killed")
        process = folder.start(*arguments)
        wait_until(lambda: len(judge.requests) > 200, 30)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        status, found, _ = folder.evaluate("--resume", "killed")
    assert (status, found["judgements"], found["scored"]) == (0, 600, 600)
    assert len({one["line"] for one in folder.judgements()}) == len(folder.judgements()) == 600


def test_a_run_that_was_stopped_says_how_to_go_on(folder: Folder) -> None:
    with ScriptedJudge(reply=lambda _: Answer(content="Score: [[8]]", delay=0.3)) as judge:
        process = folder.start(folder.rows(600), "--metrics", folder.metrics(judge.url), "--name", "stopped")
        wait_until(lambda: len(judge.requests) > 100, 30)
        process.terminate()
        out, err = process.communicate(timeout=120)
    found = json.loads(out)
    assert process.returncode == 1
    assert found["not_run"] > 0
    assert "--resume" in err
    assert sum(one["state"] == "not_run" for one in folder.judgements()) == found["not_run"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["absent.jsonl", "--metrics", "absent.yaml"], "absent.jsonl"),
        (["--metrics", "absent.yaml"], "evaluate FILE"),
    ],
)
def test_wrong_usage_is_reported_in_a_sentence(tmp_path: Path, arguments: list[str], sentence: str) -> None:
    ended = command("evaluate", *arguments, "--out", str(tmp_path / "out"))
    assert ended.returncode == 2
    assert sentence in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_run_that_is_not_there_is_reported_in_a_sentence(folder: Folder) -> None:
    status, _, err = folder.evaluate("--resume", "nobody")
    assert status == 1
    assert "no run called nobody" in err
    assert "Traceback" not in err


def test_a_database_that_does_not_answer_is_reported_in_a_sentence(folder: Folder) -> None:
    folder.environment["DATABASE_URL"] = "postgres://x:y@127.0.0.1:1/z"
    status, _, err = folder.evaluate(folder.rows(2), "--metrics", folder.metrics("http://127.0.0.1:9"))
    assert status == 1
    assert "is not responding" in err
    assert "Traceback" not in err


def environment(process: Path) -> bytes:
    try:
        return (process / "environ").read_bytes()
    except OSError:
        return b""
