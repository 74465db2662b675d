import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings

from tests.commands import Ended, command, start_in

ROOT = Path(__file__).parents[3]
ROWS: list[dict[str, Any] | None] = [
    {
        "messages": [{"role": "user", "content": "问题 1"}],
        "level": 1,
        "model_outputs": [
            {"model_name": "a", "responses": [{"content": "a1"}, {"content": "a2 and more"}]},
            {"model_name": "b", "responses": [{"content": "b1"}]},
        ],
    },
    None,
    {
        "messages": [{"role": "user", "content": "问题 3"}],
        "model_outputs": [{"model_name": "a", "responses": [{"content": "a"}]}],
    },
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: LazySettings) -> Path:
    start_in(tmp_path, monkeypatch, settings)
    lines = [json.dumps(row, ensure_ascii=False) if row else "" for row in ROWS]
    tmp_path.joinpath("rows.jsonl").write_text("\n".join(lines))
    tmp_path.joinpath("one bad.jsonl").write_text('{"messages": []}\n' + "\n".join(lines))
    tmp_path.joinpath("bad.jsonl").write_text('{"messages": []}\n')
    return tmp_path


def lint(folder: Path, template: str, *arguments: str, file: str = "rows.jsonl") -> Ended:
    folder.joinpath("t.j2").write_text(template)
    return command("lint", file, "t.j2", *arguments)


def document(folder: Path, template: str, *arguments: str, **more: str) -> Any:
    done = lint(folder, template, "--json", *arguments, **more)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def codes(folder: Path, template: str, *arguments: str, **more: str) -> list[tuple[str, str | None]]:
    made = document(folder, template, *arguments, **more)
    findings = [(one["code"], one["name"]) for one in made["errors"] + made["warnings"]]
    return [finding for finding in findings if finding[0] != "no_answer_format"]


def test_a_clean_template_has_only_its_longest_render(folder: Path) -> None:
    assert document(folder, "{{ data.question }}/{{ response.content }}[[n]]") == {
        "errors": [],
        "warnings": [],
        "longest": {"line": 1, "characters": 21, "tokens": 7},
    }


def test_a_finding_has_exactly_these_keys(folder: Path) -> None:
    done = lint(folder, "{{ response.content }}\n{{ data.levle }}", "--json")
    (error,) = json.loads(done.stdout)["errors"]
    assert (done.returncode, error) == (
        1,
        {
            "code": "unknown_name",
            "name": "data.levle",
            "line": 2,
            "rows": 2,
            "first_rows": [1, 3],
            "suggestion": "data.level",
        },
    )


def test_warnings_are_no_errors(folder: Path) -> None:
    done = lint(folder, "{{ data.level }}{{ data.gt }}", "--json")
    warnings = [(one["code"], one["rows"]) for one in json.loads(done.stdout)["warnings"]]
    assert warnings == [
        ("name_missing", 1),
        ("name_none", 2),
        ("response_unused", 0),
        ("no_answer_format", 0),
    ]
    assert (done.returncode, done.stderr) == (0, "")


def test_a_syntax_error_has_its_line_and_its_words_on_standard_error(folder: Path) -> None:
    done = lint(folder, "\n{% if %}", "--json")
    (error,) = json.loads(done.stdout)["errors"]
    assert (done.returncode, error["code"], error["line"]) == (1, "syntax", 2)
    assert "Expected an expression" in done.stderr


def test_people_read_sentences(folder: Path) -> None:
    done = lint(folder, "{{ response.content }}{{ data.levle }}[[")
    assert done.stdout.splitlines() == [
        "error unknown_name: line 1: No row has “data.levle”. Did you mean “data.level”?",
        "Longest prompt: 13 characters, about 4 tokens (row at line 1)",
    ]


def test_rows_with_errors_are_passed_over(folder: Path) -> None:
    made = document(folder, "{{ data.gt }}{{ response.content }}", file="one bad.jsonl")
    assert made["warnings"][0]["first_rows"] == [2, 4]


def test_preprocess_runs_before_every_render(folder: Path) -> None:
    folder.joinpath("p.py").write_text(
        "def preprocess(data, resp):\n    data.up = resp.content.upper()\n    return 7\n"
    )
    template = "{{ data.up }}{{ preprocess_result }}{{ response.content }}"
    assert codes(folder, template, "--preprocess", "p.py") == []
    assert codes(folder, template) == [("unknown_name", "data.up"), ("name_none", "preprocess_result")]


def test_a_failing_preprocess_is_an_error_of_its_rows(folder: Path) -> None:
    folder.joinpath("p.py").write_text(
        "def preprocess(data, resp):\n    return 1 / (len(resp.content) - 1)\n"
    )
    (error,) = document(folder, "{{ response.content }}", "--preprocess", "p.py")["errors"]
    assert error == {
        "code": "render_error",
        "name": "preprocess",
        "line": 2,
        "rows": 1,
        "first_rows": [3],
        "suggestion": None,
    }


def test_nothing_is_written(folder: Path) -> None:
    """In a separate process without a database."""
    folder.joinpath("t.j2").write_text("x{{ response.content }}")
    arguments = [sys.executable, str(ROOT / "manage.py"), "lint", "rows.jsonl", "t.j2"]
    environment = {"DATA_DIR": str(folder / "data"), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(arguments, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert not folder.joinpath("data").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["nowhere.jsonl", "rows.jsonl"],
        ["rows.jsonl", "nowhere.j2"],
        ["rows.jsonl"],
        [".", "rows.jsonl"],
        ["bad.jsonl", "rows.jsonl"],
        ["rows.jsonl", "rows.jsonl", "--preprocess", "nowhere.py"],
    ],
)
def test_wrong_usage_ends_with_status_2_and_a_sentence(arguments: list[str], folder: Path) -> None:
    done = command("lint", "--json", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr
    assert "Traceback" not in done.stderr
