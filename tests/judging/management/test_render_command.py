import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings

from tests.commands import Ended, command, start_in

ROOT = Path(__file__).parents[3]
ROWS = [
    {"messages": [{"role": "user", "content": "问题 1"}]},
    None,
    {
        "messages": [{"role": "user", "content": "问题 3"}],
        "level": 2,
        "model_outputs": [
            {"model_name": "a", "responses": [{"content": "a1"}, {"content": "a2"}]},
            {"model_name": "b", "responses": [{"content": "b1"}]},
        ],
    },
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: LazySettings) -> Path:
    start_in(tmp_path, monkeypatch, settings)
    lines = [json.dumps(row, ensure_ascii=False) if row else "" for row in (ROWS[2], *ROWS[1:])]
    tmp_path.joinpath("rows.jsonl").write_text("\n".join(lines))
    tmp_path.joinpath("plain.jsonl").write_text(json.dumps(ROWS[0]))
    tmp_path.joinpath("bad.jsonl").write_text(json.dumps(ROWS[0]) + '\n{"messages": []}\n')
    tmp_path.joinpath("t.j2").write_text("{{ data.question }}/{{ response.content }}\n")
    return tmp_path


def render(*arguments: str) -> Ended:
    return command("render", *arguments)


def document(*arguments: str) -> Any:
    done = render(*arguments, "--json")
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def with_template(folder: Path, text: str) -> Path:
    folder.joinpath("t.j2").write_text(text)
    return folder


def test_the_first_row_and_its_first_answer_are_rendered_by_default(folder: Path) -> None:
    assert document("rows.jsonl", "t.j2") == {
        "prompt": "问题 3/a1\n",
        "preprocess_result": None,
        "undefined": [],
        "error": None,
    }


@pytest.mark.parametrize(
    ("arguments", "prompt"),
    [
        (["--row", "3"], "问题 3/a1\n"),
        (["--response", "2"], "问题 3/a2\n"),
        (["--model", "b"], "问题 3/b1\n"),
        (["--model", "a", "--response", "2", "--row", "3"], "问题 3/a2\n"),
    ],
)
def test_row_model_and_response_can_be_named(arguments: list[str], prompt: str, folder: Path) -> None:
    assert document("rows.jsonl", "t.j2", *arguments)["prompt"] == prompt


def test_a_row_without_answers_has_an_empty_one(folder: Path) -> None:
    assert document("plain.jsonl", "t.j2")["prompt"] == "问题 1/\n"


def test_without_json_the_prompt_alone_is_printed(folder: Path) -> None:
    """In a separate process without a database."""
    arguments = [sys.executable, str(ROOT / "manage.py"), "render", "rows.jsonl", "t.j2"]
    environment = {"DATA_DIR": str(folder / "data"), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(arguments, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "问题 3/a1\n", "")


def test_the_scale_is_seen(folder: Path) -> None:
    with_template(folder, "{{ min_score }}..{{ max_score }}")
    assert document("rows.jsonl", "t.j2")["prompt"] == "1..10"
    assert document("rows.jsonl", "t.j2", "--min-score", "0.5", "--max-score", "5")["prompt"] == "0.5..5"


def test_preprocess_runs_first(folder: Path) -> None:
    folder.joinpath("p.py").write_text(
        "def preprocess(data, resp):\n    resp.up = resp.content.upper()\n    return 7\n"
    )
    with_template(folder, "{{ response.up }} {{ preprocess_result }}")
    made = document("rows.jsonl", "t.j2", "--preprocess", "p.py")
    assert (made["prompt"], made["preprocess_result"]) == ("A1 7", 7)


def test_a_failing_preprocess_is_the_error_with_its_line(folder: Path) -> None:
    folder.joinpath("p.py").write_text("def preprocess(data, resp):\n    return 1 / 0\n")
    done = render("rows.jsonl", "t.j2", "--preprocess", "p.py", "--json")
    assert (done.returncode, json.loads(done.stdout)["error"]) == (
        1,
        {"line": 2, "message": "ZeroDivisionError: division by zero"},
    )


def test_undefined_names_are_listed_and_an_error(folder: Path) -> None:
    with_template(folder, "x\n{{ data.none }}{{ response.no }}{{ data.none }}")
    done = render("rows.jsonl", "t.j2", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout) == {
        "prompt": None,
        "preprocess_result": None,
        "undefined": ["data.none", "response.no"],
        "error": {"line": 2, "message": "'data.none' is undefined"},
    }


def test_a_bomb_is_an_error_and_not_an_end(folder: Path) -> None:
    with_template(folder, "{% for i in range(10**9) %}x{% endfor %}")
    done = render("rows.jsonl", "t.j2", "--json")
    assert (done.returncode, json.loads(done.stdout)["error"]["line"]) == (1, 1)


@pytest.mark.parametrize(
    "arguments",
    [
        ["rows.jsonl"],
        ["rows.jsonl", "nowhere.j2"],
        ["nowhere.jsonl", "t.j2"],
        ["rows.jsonl", "t.j2", "--preprocess", "nowhere.py"],
        [".", "t.j2"],
        ["rows.jsonl", "t.j2", "--row", "2"],
        ["rows.jsonl", "t.j2", "--row", "one"],
        ["rows.jsonl", "t.j2", "--model", "c"],
        ["rows.jsonl", "t.j2", "--response", "3"],
        ["rows.jsonl", "t.j2", "--response", "0"],
        ["plain.jsonl", "t.j2", "--model", "a"],
        ["bad.jsonl", "t.j2", "--row", "2"],
        ["rows.jsonl", "t.j2", "--min-score", "nan"],
        ["rows.jsonl", "t.j2", "--min-score", "10", "--max-score", "1"],
        ["rows.jsonl", "t.j2", "--min-score", "11"],
        ["rows.jsonl", "t.j2", "--max-score", "1"],
    ],
)
def test_wrong_usage_ends_with_status_2_and_a_sentence(arguments: list[str], folder: Path) -> None:
    done = render(*arguments, "--json")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr
    assert "Traceback" not in done.stderr
