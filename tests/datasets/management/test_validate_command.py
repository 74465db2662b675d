"""`manage.py validate` as scripts use it: exit status and JSON document."""

import gzip
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings

from datasets.core.findings import CODES, Finding, finding
from datasets.messages import JSON_PROBLEMS, message
from tests.commands import Ended, command, start_in
from tests.datasets.core.imports.tabular import xlsx

ROOT = Path(__file__).parents[3]
GOOD = '{"messages": [{"role": "user", "content": "?"}]}\n'
BAD = '{"messages": [{"role": "user", "content": "!"}],}\n'
KEYS = ["format", "encoding", "rows", "valid_rows", "counts", "findings", "models", "fields", "fixed"]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: LazySettings) -> None:
    start_in(tmp_path, monkeypatch, settings)


def validate(*words: str) -> Ended:
    return command("validate", *words)


def validate_with(setting: str, value: str, file: Path) -> subprocess.CompletedProcess[str]:
    """Run `validate` in a separate process with an environment setting."""
    environment = {
        **os.environ,
        setting: value,
        "DATA_DIR": str(file.parent / "data"),
        "PYTHONIOENCODING": "utf-8",
    }
    arguments = [sys.executable, str(ROOT / "manage.py"), "validate", str(file), "--json"]
    return subprocess.run(arguments, env=environment, capture_output=True, text=True, encoding="utf-8")


def file(folder: Path, text: str) -> str:
    path = folder / "rows.jsonl"
    path.write_text(text, encoding="utf-8")
    return str(path)


def document(ran: Ended | subprocess.CompletedProcess[str]) -> dict[str, Any]:
    return json.loads(ran.stdout)  # type: ignore[no-any-return]


@pytest.mark.parametrize(("text", "status"), [(GOOD, 0), (GOOD + BAD, 1), (GOOD * 2, 0)])
def test_the_status_says_whether_there_are_errors(text: str, status: int, tmp_path: Path) -> None:
    ran = validate(file(tmp_path, text), "--json")
    assert (ran.returncode, list(document(ran)), ran.stderr) == (status, KEYS, "")


def test_a_finding_has_its_seven_keys(tmp_path: Path) -> None:
    (found,) = document(validate(file(tmp_path, GOOD + BAD), "--json"))["findings"]
    assert found.pop("message").startswith("Invalid JSON")
    assert found == {
        "line": 2,
        "column": 48,
        "path": None,
        "code": "json.invalid",
        "severity": "error",
        "repair": "strip_trailing_commas",
    }


def test_the_document_describes_the_input_and_fixed_the_output(tmp_path: Path) -> None:
    out = tmp_path / "fixed.jsonl"
    ran = validate(file(tmp_path, GOOD + BAD), "--fix", str(out), "--json")
    assert (ran.returncode, document(ran)["valid_rows"]) == (1, 1)
    assert document(ran)["fixed"] == {"rows": 2, "valid_rows": 2}
    assert out.read_text() == GOOD + BAD.replace(",}", "}")


TABLE = b"question,answer\nWhy?,So.\n"
PREFERENCE = b'{"question": "Why?", "answer": "So."}\n'


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("my table.csv", TABLE, "file.unknown_format"),
        ("table.xlsx", xlsx([["question", "answer"], ["Why?", "So."]]), "file.other_kind"),
        ("table.jsonl", PREFERENCE, "file.unknown_format"),
        ("table.json", b"[" + PREFERENCE.strip() + b"]", "file.not_jsonl"),
        ("table.csv", b"prompt,answer\nWhy?,So.\n", "csv.header"),
    ],
)
def test_of_a_table_is_said_which_command_imports_it(
    name: str, content: bytes, code: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    ran, shown = validate(str(path), "--json"), validate(str(path))
    first = document(ran)["findings"][0]
    assert (ran.returncode, shown.returncode, first["code"]) == (1, 1, code)
    sentence = f"“import_dataset” takes this file: manage.py import_dataset {shlex.quote(str(path))}"
    assert first["message"].endswith(sentence)
    assert shown.stdout.rstrip().endswith(sentence)


@pytest.mark.parametrize("text", [BAD, "Some text.\n", '{"mesages": [{"role": "user", "content": "?"}]}\n'])
def test_of_a_file_that_is_no_table_nothing_of_that_kind_is_said(text: str, tmp_path: Path) -> None:
    assert "import_dataset" not in validate(file(tmp_path, text)).stdout


def test_only_the_named_repairs_are_made(tmp_path: Path) -> None:
    out = tmp_path / "fixed.jsonl"
    ran = validate(file(tmp_path, BAD), "--fix", str(out), "--repair", "strip_comments", "--json")
    assert (document(ran)["fixed"], out.read_text()) == ({"rows": 1, "valid_rows": 0}, BAD)


@pytest.mark.parametrize(
    "words",
    [
        ["--repair", "to_utf8"],
        ["--fix", "OUT", "--repair", "nonsense"],
        ["--fix", "OUT", "--repair", "unify_model_names"],
        ["--fix", "OUT", "--repair", "unify_model_names=lark"],
        ["--fix", "OUT", "--repair", "to_utf8=x"],
        ["--fix", "IN"],
        ["--nonsense"],
    ],
)
def test_wrong_usage_ends_with_two_and_a_sentence(words: list[str], tmp_path: Path) -> None:
    source = file(tmp_path, GOOD)
    places = {"OUT": str(tmp_path / "out"), "IN": source}
    ran = validate(source, *(places.get(word, word) for word in words), "--json")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_file_that_cannot_be_opened_ends_with_two_and_a_sentence(tmp_path: Path) -> None:
    ran = validate(str(tmp_path / "nowhere"), "--json")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "nowhere" in ran.stderr


LARGE = GOOD.replace("?", "x" * 2_000).encode() * 1_000
BEYOND: dict[str, tuple[bytes, str]] = {
    "UPLOAD_MAX_MB": (LARGE, "file.too_large"),
    "UNPACKED_MAX_MB": (gzip.compress(LARGE, mtime=0), "file.too_large"),
    "ROW_MAX_KB": (LARGE, "row.too_large"),
    "ROWS_MAX": (LARGE, "file.too_many_rows"),
}


@pytest.mark.parametrize("out", ["", "no/such/folder/out.jsonl"])
def test_where_nothing_can_be_written_the_place_that_was_named_is_reported(out: str, tmp_path: Path) -> None:
    target = str(tmp_path / out)
    ran = validate(file(tmp_path, '{"messages": [{"role": "user", "content": "?"}]}\n'), "--fix", target)
    assert ran.returncode == 2
    assert f"{target}: " in ran.stderr
    assert ".repair-" not in ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_row_of_too_many_values_names_its_setting(tmp_path: Path) -> None:
    (tmp_path / "rows").write_text(GOOD.replace("}\n", f', "x": {list(range(1_000))}}}\n', 1))
    ran = validate_with("ROW_VALUES_MAX", "1000", tmp_path / "rows")
    (found,) = document(ran)["findings"]
    assert (ran.returncode, found["code"], "ROW_VALUES_MAX" in found["message"]) == (
        1,
        "row.too_large",
        True,
    )


@pytest.mark.parametrize("setting", BEYOND)
def test_what_is_beyond_a_limit_names_its_setting(setting: str, tmp_path: Path) -> None:
    source, code = BEYOND[setting]
    (tmp_path / "rows").write_bytes(source)
    ran = validate_with(setting, "1", tmp_path / "rows")
    first = next(found for found in document(ran)["findings"] if found["code"] == code)
    assert (ran.returncode, setting in first["message"]) == (1, True)


def test_people_see_a_caret_under_the_place(tmp_path: Path) -> None:
    shown = validate(file(tmp_path, GOOD + '{"名": “x”}\n')).stdout.splitlines()
    (at,) = [index for index, line in enumerate(shown) if line.strip() == "^"]
    assert shown[at - 1].strip() == '{"名": “x”}'
    assert shown[at].index("^") == 4 + len('{"名": ') + 1


def test_each_broken_object_of_a_printed_file_has_its_caret(tmp_path: Path) -> None:
    broken = '{\n  "messages": [],\n  "x" 1\n}\n'
    shown = validate(file(tmp_path, broken + broken)).stdout.splitlines()
    carets = [index for index, line in enumerate(shown) if line.strip() == "^"]
    assert [shown[at - 1].strip() for at in carets] == ['"x" 1'] * 2


PARAMS: dict[str, Any] = dict.fromkeys(
    (
        "name",
        "met",
        "limit",
        "format",
        "role",
        "model",
        "names",
        "absent",
        "rows",
        "fewest",
        "most",
        "missing",
        "first",
    ),
    7,
)
SPECIAL = {
    "json.invalid": {"reason": "unexpected", "wanted": "colon"},
    "csv.header": {"problem": "twice"},
    "csv.columns": {"wanted": 2},
    "file.other_kind": {"kind": "pdf"},
    "field.type_varies": {"types": "string, number"},
    "file.converted": {"encoding": "cp1252"},
    "csv.title": {"text": "Results"},
    "field.misspelt": {"near": "ref_anwser", "meant": "ref_answer"},
}
MEANT = {"near": "a", "meant": "b"}


@pytest.mark.parametrize("code", CODES)
def test_a_sentence_can_be_said_and_ends(code: str) -> None:
    found: Finding = finding(code, line=1, path="a", **{**PARAMS, **SPECIAL.get(code, {})})
    assert message(found).endswith((".", "?"))


@pytest.mark.parametrize(
    ("code", "params", "sentence"),
    [
        ("role.unknown", {"met": "bots", "meant": "tool"}, "The role is “bots”: did you mean “tool”?"),
        ("messages.missing", MEANT, "“b” is missing, but there is “a”: did you mean “b”?"),
        (
            "file.unknown_format",
            {**MEANT, "met": "{"},
            "Unknown format, but there is “a”: did you mean “b”?",
        ),
        (
            "csv.header",
            {**MEANT, "met": "a, c", "problem": "missing", "name": "b"},
            "In the header (a, c) the column “b” is missing, but there is “a”: did you mean “b”?",
        ),
        (
            "ref_answer.some_missing",
            {**MEANT, "missing": 1, "rows": 2},
            "1 of 2 rows has no “ref_answer”, but there is “a”: did you mean “ref_answer”?",
        ),
        (
            "field.misspelt",
            {**MEANT, "rows": 2},
            "2 rows have a field “a”, and none has “b”: did you mean “b”?",
        ),
    ],
)
def test_a_misspelling_is_asked_about(code: str, params: dict[str, str | int], sentence: str) -> None:
    assert message(finding(code, **params)) == sentence


def test_json_problems_ask_for_nothing_but_what_was_found_expected_and_opened() -> None:
    for sentence in JSON_PROBLEMS.values():
        assert str(sentence) % {"met": "7", "wanted": "8", "begun": 9}
