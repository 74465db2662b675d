import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings

from tests.commands import Ended, command, start_in


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: LazySettings) -> Path:
    start_in(tmp_path, monkeypatch, settings)
    return tmp_path


def read_reply(folder: Path, lines: list[str], *arguments: str) -> Ended:
    folder.joinpath("replies.jsonl").write_text("\n".join(lines))
    return command("read_reply", "replies.jsonl", *arguments)


def documents(ended: Ended) -> list[Any]:
    return [json.loads(line) for line in ended.stdout.splitlines()]


def test_each_line_is_repeated_with_what_was_read(folder: Path) -> None:
    ended = read_reply(folder, ['{"id": 3, "reply": "Fine. Score: **8**/10"}'], "--gives", "score", "--json")
    (document,) = documents(ended)
    statement = {"value": 8, "reason": "", "evidence": "Score: **8**/10", "form": "label"}
    assert document == {
        "id": 3,
        "reply": "Fine. Score: **8**/10",
        **statement,
        "detail": "",
        "candidates": [statement],
    }
    assert ended.returncode == 0


def test_a_line_s_own_settings_go_before_the_options(folder: Path) -> None:
    lines = [
        '{"reply": "3/5"}',
        '{"reply": "7", "max_score": 10}',
        '{"reply": "[[B]]", "gives": "comparison"}',
        '{"reply": "b", "gives": "category", "labels": ["a", {"label": "B"}]}',
        '{"reply": "No.", "gives": "checklist"}',
        '{"reply": "Fluency: 4", "name": "fluency"}',
        '{"reply": "Score: 1", "finish_reason": "length"}',
    ]
    ended = read_reply(folder, lines, "--gives", "score", "--max-score", "5", "--json")
    assert [document["value"] for document in documents(ended)] == [3, 7, "B>A", "B", False, 4, None]


def test_the_options_describe_what_the_judge_gives(folder: Path) -> None:
    category = read_reply(
        folder, ['{"reply": "made_up"}'], "--gives", "category", "--label", "made up", "--json"
    )
    steps = read_reply(folder, ['{"reply": "3.2"}'], "--gives", "score", "--step", "0.5", "--json")
    assert documents(category)[0]["value"] == "made up"
    assert documents(steps)[0]["reason"] == "off_step"


def test_a_line_that_cannot_be_read_gives_its_error_and_the_others_go_on(folder: Path) -> None:
    lines = [
        '{"reply": "[[7]]", "gives": "score"}',
        "not JSON",
        "[]",
        '{"reply": "[[7]]"}',
        '{"gives": "score"}',
        '{"gives": "score", "reply": "7", "min_score": "1"}',
        '{"gives": "score", "reply": "7", "min_score": 10}',
        '{"gives": "score", "reply": "7", "whole": 1}',
        '{"gives": "category", "reply": "7"}',
        '{"gives": "category", "reply": "7", "labels": "a"}',
        '{"gives": "score", "reply": "7", "x": NaN}',
        '{"reply": "[[8]]", "gives": "score"}',
    ]
    ended = read_reply(folder, lines, "--json")
    first, *wrong, last = documents(ended)
    assert (ended.returncode, first["value"], last["value"]) == (1, 7, 8)
    assert [document["line"] for document in wrong] == list(range(2, 12))
    assert all(document["error"] and "value" not in document for document in wrong)


def test_without_json_each_reply_is_a_line_of_text(folder: Path) -> None:
    lines = ['{"reply": "Score: 8"}', '{"reply": "Score: 7-8"}', '{"reply": 3}']
    ended = read_reply(folder, lines, "--gives", "score")
    first, second = ended.stdout.splitlines()
    assert first == "line 1: 8 (label: Score: 8)"
    assert second.startswith("line 2: ")
    assert second.endswith("(7-8)")
    assert ended.stderr.startswith("line 3: ")


def test_half_a_character_does_no_harm(folder: Path) -> None:
    ended = read_reply(folder, ['{"reply": "\\ud83d [[8]]"}'], "--gives", "score", "--json")
    assert '"value": 8' in ended.stdout


def test_replies_may_come_on_standard_input(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = io.TextIOWrapper(io.BytesIO('{"reply": "评分：8"}\n'.encode()))
    monkeypatch.setattr("sys.stdin", source)
    assert documents(command("read_reply", "-", "--gives", "score", "--json"))[0]["value"] == 8


def test_a_missing_file_is_wrong_usage(folder: Path) -> None:
    assert command("read_reply", "missing.jsonl", "--gives", "score").returncode == 2
