"""`manage.py rules`: exit status, JSON document and messages."""

import contextlib
import json
import os
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.core.management import CommandError, call_command
from django.utils import translation

from datasets.messages import JSON_PROBLEMS
from evalsite.accounts.models import Project
from judging.core.judges.scripted import ScriptedJudge, refusal
from judging.core.rules.check import read_program
from judging.core.rules.evaluate import plan
from judging.core.rules.functions import FUNCTIONS
from judging.core.rules.problems import PROBLEMS
from judging.core.rules.program import ARGUMENTS, Problem, Reason
from judging.endpoints.models import Endpoint
from judging.rule_messages import REASONS, problem_sentence, reason_sentence
from tests.commands import Ended, command, start_in
from tests.judging.core.rules.faulty_programs import RULES

ROOT = Path(__file__).parents[3]
GOOD = "# DSL\na:精确匹配\nb:字数限制:3\n@聚合方式:min\n@格式限制:JSON"
FUZZY = "# DSL\na:模糊匹配\n@格式限制:JSON"
REFERENCE = '{"a": 1.0, "b": "x"}'


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: LazySettings) -> None:
    start_in(tmp_path, monkeypatch, settings)


def rules(*words: str) -> Ended:
    return command("rules", *words)


def file(folder: Path, text: str) -> str:
    path = folder / "program.dsl"
    path.write_text(text, encoding="utf-8")
    return str(path)


def checked(folder: Path, text: str) -> tuple[int, Any]:
    ran = rules("check", file(folder, text), "--json")
    return ran.returncode, json.loads(ran.stdout)


def scored(folder: Path, text: str, answer: str, reference: str) -> tuple[int, Any]:
    texts = ("--answer", answer, "--reference", reference)
    ran = rules("score", file(folder, text), *texts, "--json")
    return ran.returncode, json.loads(ran.stdout)


def test_a_program_without_errors_has_status_0_and_needs_no_data_folder(tmp_path: Path) -> None:
    assert checked(tmp_path, GOOD) == (0, {"errors": [], "warnings": []})
    assert not (tmp_path / "data").exists()


def test_an_error_has_its_place_its_code_and_a_sentence(tmp_path: Path) -> None:
    status, document = checked(tmp_path, GOOD.replace("精确匹配", "精准匹配"))
    (error,) = document["errors"]
    assert "Did you mean “精确匹配”?" in error.pop("message")
    assert (status, error) == (1, {"line": 2, "column": 3, "code": "unknown_function"})


def test_a_warning_is_no_error(tmp_path: Path) -> None:
    status, document = checked(tmp_path, f"{GOOD}\n<规则1>\n</规则1>")
    assert (status, [warning["code"] for warning in document["warnings"]]) == (0, ["label_unused"])


def test_errors_are_reported_in_words_too(tmp_path: Path) -> None:
    ran = rules("check", file(tmp_path, "# DSL\n@格式限制:JSON"))
    assert (ran.returncode, ran.stdout[:21]) == (1, "2:1: error no_rules: ")


def test_an_answer_is_scored_line_by_line(tmp_path: Path) -> None:
    status, document = scored(tmp_path, GOOD, '{"a": 1, "b": "long"}', REFERENCE)
    first, second = document["lines"]
    assert (status, document["score"], document["format_ok"], document["error"]) == (0, 1, True, None)
    assert first.pop("reason") == "Equal to the reference."
    assert first == {"field": "a", "function": "精确匹配", "score": 5, "answer": 1, "reference": 1}
    assert (second["score"], second["reference"]) == (1, None)


def test_numbers_are_shown_as_they_are_written(tmp_path: Path) -> None:
    texts = ("--answer", '{"a": 1.50, "b": 1}', "--reference", REFERENCE, "--json")
    assert '"answer": 1.50, "reference": 1.0' in rules("score", file(tmp_path, GOOD), *texts).stdout


def test_an_answer_without_the_format_scores_1_and_says_why(tmp_path: Path) -> None:
    status, document = scored(tmp_path, GOOD, "no JSON", REFERENCE)
    assert "line 1, column 1" in document.pop("format_reason")
    assert (status, document) == (
        0,
        {"score": 1, "format_ok": False, "lines": [], "error": None, "errors": []},
    )


@pytest.mark.parametrize(("text", "format_ok"), [(GOOD, True), ("# DSL\na:foo\n@格式限制:JSON", None)])
def test_only_an_answer_without_the_format_has_a_reason_for_it(
    text: str, format_ok: bool | None, tmp_path: Path
) -> None:
    _status, document = scored(tmp_path, text, '{"a": 1, "b": "x"}', REFERENCE)
    assert (document["format_ok"], document["format_reason"]) == (format_ok, None)


@pytest.mark.parametrize("returned", ["4.5", "5", "10 / 3", "1e0"])
def test_a_score_is_always_a_number(returned: str, tmp_path: Path) -> None:
    block = f"<代码1>\ndef f(ref_answer, model_answer):\n    return {returned}\n</代码1>"
    text = f"# DSL\na:Python代码:代码1\n@格式限制:JSON\n{block}"
    _status, document = scored(tmp_path, text, '{"a": 1}', '{"a": 1}')
    assert type(document["score"]) in (int, float)
    assert document["lines"][0]["score"] == document["score"]


@pytest.mark.parametrize(
    ("text", "reference", "code", "line"),
    [
        (GOOD, "{}", "reference.field_missing", 2),
        (GOOD, "no JSON", "reference.format", 2),
        (FUZZY, REFERENCE, "judge.missing", 2),
        ("# DSL\na:foo\n@格式限制:JSON", REFERENCE, "unknown_function", 2),
    ],
)
def test_an_error_has_status_1_and_no_score(
    text: str, reference: str, code: str, line: int, tmp_path: Path
) -> None:
    status, document = scored(tmp_path, text, '{"a": 1, "b": "x"}', reference)
    assert document["error"].pop("message")
    assert (status, document["score"], document["error"]) == (1, None, {"code": code, "line": line})


def test_all_errors_of_a_program_are_listed_and_the_first_is_marked(tmp_path: Path) -> None:
    status, document = scored(tmp_path, "# DSL\na:foo\nb:字数限制\n@格式限制:YAML", "{}", REFERENCE)
    errors = [(error["line"], error["column"], error["code"]) for error in document["errors"]]
    assert (status, errors) == (
        1,
        [(2, 3, "unknown_function"), (3, 7, "argument_missing"), (4, 7, "unknown_format")],
    )
    assert document["error"] == {name: document["errors"][0][name] for name in ("code", "line", "message")}


def test_all_errors_of_a_program_are_said_in_words(tmp_path: Path) -> None:
    texts = ("--answer", "{}", "--reference", REFERENCE)
    ran = rules("score", file(tmp_path, "# DSL\na:foo\n@格式限制:YAML"), *texts)
    assert [line.partition(":")[0] for line in ran.stdout.splitlines()] == ["line 2", "line 3"]


def test_python_code_runs_without_a_database(tmp_path: Path) -> None:
    code = "<代码1>\ndef f(ref_answer, model_answer):\n    return ref_answer + model_answer\n</代码1>"
    status, document = scored(
        tmp_path, f"# DSL\na:Python代码:代码1\n@格式限制:JSON\n{code}", '{"a": 2}', '{"a": 1.5}'
    )
    assert (status, document["score"]) == (0, 3.5)
    assert not (tmp_path / "data").exists()


def test_half_a_character_in_the_answer_is_escaped(tmp_path: Path) -> None:
    status, document = scored(tmp_path, GOOD, '{"a": "\\ud800é😀", "b": ""}', REFERENCE)
    assert (status, document["lines"][0]["answer"]) == (0, "\ud800é😀")


def test_a_terminal_without_chinese_gets_escapes(tmp_path: Path) -> None:
    """In a separate process whose output encoding is ASCII."""
    arguments = ("score", file(tmp_path, GOOD), "--answer", "{}", "--reference", REFERENCE)
    environment = {**os.environ, "DATA_DIR": str(tmp_path / "data"), "PYTHONIOENCODING": "ascii"}
    ran = subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), "rules", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, "\\u7cbe" in ran.stdout) == (0, True)


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("lint", "{file}"),
        ("check",),
        ("check", "{file}.missing"),
        ("score", "{file}", "--answer", "x"),
        ("check", "{latin}"),
    ],
)
def test_wrong_usage_has_status_2_and_a_sentence(words: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes(b"# DSL\n\xe9:length:3")
    paths = {"file": file(tmp_path, GOOD), "latin": str(tmp_path / "latin")}
    ran = rules(*(word.format(**paths) for word in words))
    assert (ran.returncode, ran.stdout, "Traceback" in ran.stderr) == (2, "", False)
    assert ran.stderr


# --- a judge model ---------------------------------------------------------------------------------------------


def by_judge(folder: Path, text: str = FUZZY) -> Any:
    out = StringIO()
    texts = ("--answer", '{"a": "x"}', "--reference", '{"a": "y"}', "--judge", "strict", "--json")
    with contextlib.suppress(SystemExit):
        call_command("rules", "score", file(folder, text), *texts, stdout=out)
    return json.loads(out.getvalue())


def endpoint(project: Project, url: str) -> Endpoint:
    return Endpoint.objects.create(project=project, name="strict", url=url, model="m")


def test_the_named_endpoint_is_asked(project: Project, tmp_path: Path) -> None:
    with ScriptedJudge("相近。\n评分:[[4]]") as judge:
        endpoint(project, judge.url)
        document = by_judge(tmp_path)
    assert (document["score"], document["lines"][0]["reason"], len(judge.requests)) == (
        4,
        "相近。\n评分:[[4]]",
        1,
    )


@pytest.mark.parametrize(
    ("reply", "code"), [("Perhaps 3.", "nothing_offered"), (refusal(401, "no"), "bad_key")]
)
def test_a_judge_without_a_score_is_an_error(project: Project, reply: Any, code: str, tmp_path: Path) -> None:
    with ScriptedJudge(reply) as judge:
        endpoint(project, judge.url)
        document = by_judge(tmp_path)
    assert (document["score"], document["error"]["code"], document["error"]["line"]) == (None, code, 2)


def test_the_judge_is_not_asked_where_another_line_already_failed(project: Project, tmp_path: Path) -> None:
    code = "<代码1>\ndef f(ref_answer, model_answer):\n    return 0\n</代码1>"
    with ScriptedJudge() as judge:
        endpoint(project, judge.url)
        document = by_judge(tmp_path, f"# DSL\na:模糊匹配\na:python:代码1\n@格式限制:JSON\n{code}")
    assert (document["error"]["code"], document["error"]["line"], judge.requests) == ("code.result", 3, [])


def test_an_unknown_endpoint_is_wrong_usage(db: None, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="No endpoint named strict") as raised:
        by_judge(tmp_path)
    assert raised.value.returncode == 2


def test_an_endpoint_of_two_projects_is_wrong_usage(project: Project, tmp_path: Path) -> None:
    endpoint(project, "http://127.0.0.1:1")
    endpoint(Project.objects.create(name="Other", slug="other"), "http://127.0.0.1:1")
    with pytest.raises(CommandError, match="Several projects") as raised:
        by_judge(tmp_path)
    assert raised.value.returncode == 2


# --- messages --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [text for text, _ in RULES])
def test_every_error_has_a_sentence_that_fits(text: str) -> None:
    for problem in read_program(text).problems:
        assert "%(" not in problem_sentence(problem)


def test_every_sentence_is_about_an_error_that_there_is() -> None:
    met = {problem.code for text, _ in RULES for problem in read_program(text).problems}
    assert {code.split(".")[0] for code in PROBLEMS} == met


def test_a_misspelt_setting_is_distinguished_from_a_misspelt_function() -> None:
    (problem,) = read_program("# DSL\na:精确匹配\n@聚合方法:min\n@格式限制:JSON").problems
    assert "Did you mean “@聚合方式”?" in problem_sentence(problem)


@pytest.mark.parametrize("reader", ["en", "zh-hans"])
@pytest.mark.parametrize(
    ("program", "own", "other"),
    [
        ("# DSL\n主题:摸糊\n@格式限制:JSON", ("精确匹配", "字数限制"), "exact_match"),
        ("# DSL\n主题:精确匹配", ("@格式限制:JSON", "字符串"), "@format"),
        ("# DSL\n主题:自然语言规则\n@格式限制:JSON", ("规则1",), "rule1"),
        ("# DSL\n主题:Python代码\n@格式限制:JSON", ("代码1",), "code1"),
        ("# DSL\na:精确匹配\n@格式限制:字符串", ("@单个字段",), "@whole"),
        ("# DSL\na:misty\n@format:JSON", ("exact_match", "length"), "精确匹配"),
        ("# DSL\n主题:exact_match", ("@format:JSON",), "@格式限制"),
        ("# DSL\na:rule\n@format:JSON", ("rule1",), "规则1"),
        ("# DSL\na:exact_match\n@format:text", ("@whole",), "@单个字段"),
    ],
)
def test_a_program_is_answered_in_its_own_words(
    program: str, own: tuple[str, ...], other: str, reader: str
) -> None:
    with translation.override(reader):
        sentence = problem_sentence(read_program(program).errors[0])
    assert all(word in sentence for word in own), sentence
    assert other not in sentence


def test_a_program_without_words_is_answered_in_the_readers(db: None) -> None:
    problem = read_program("# DSL\n").errors[0]
    with translation.override("zh-hans"):
        assert "@格式限制:JSON" in problem_sentence(problem)
    assert "@format:JSON" in problem_sentence(problem)


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        ("<规则1>text</规则1>", "bad_line"),
        ("<规则1>one: two</规则1>", "header_after_format"),
        ("<规则1>text\n</规则1>", "bad_line"),
        ("<规则1>\ntext</规则1>", "block_unclosed"),
    ],
)
def test_a_tag_that_shares_its_line_gets_a_hint(lines: str, code: str) -> None:
    problems = read_program(f"# DSL\na:自然语言规则:规则1\n@格式限制:JSON\n{lines}").problems
    (problem,) = [one for one in problems if one.code == code]
    assert "need their own lines: write “<规则1>”" in problem_sentence(problem)


def test_two_functions_are_distinguished_from_none() -> None:
    several = Problem(
        "python_no_function", read_program("").problems[0].place, {"label": "代码1", "count": "2"}
    )
    assert "2 functions" in problem_sentence(several)


def test_every_function_has_its_help_and_its_argument_reported() -> None:
    assert all(function.help for function in FUNCTIONS)
    assert set(ARGUMENTS) == {function.argument for function in FUNCTIONS}


@pytest.mark.parametrize(
    ("reason", "sentence"),
    [
        (Reason("judge_said", {"said": "100 % alike %s"}), "100 % alike %s"),
        (Reason("equal"), REASONS["equal"]),
        (Reason("rate_limited", {"detail": "slow down"}), "Details: slow down"),
        (
            Reason("code.failed", {"label": "c", "why": "exception", "detail": "d", "code_line": "7"}),
            "(line 7: d)",
        ),
        (
            Reason("reference.format", {"name": "a", "why": "not_object"}),
            "(JSON, but not an object in braces.)",
        ),
        (Reason("reference.field_missing", {"name": "a", "why": "none"}), "neither ref_answer"),
        (Reason("part_of_argument", {"argument": "电影"}), "A part of “电影”."),
        (Reason("not_part_of_argument", {"argument": "100 %s"}), "Not a part of “100 %s”."),
        (Reason("holds_argument", {"argument": "电影"}), "Contains “电影”."),
        (Reason("does_not_hold_argument", {"argument": "电影"}), "Does not contain “电影”."),
        (Reason("nothing_offered"), "choose another judge model"),
    ],
)
def test_reasons_are_reported_in_words(reason: Reason, sentence: str) -> None:
    assert str(sentence) in reason_sentence(reason)


@pytest.mark.parametrize("text", ['{"a": 1,}', '\n{"a": [1,]}'])
def test_an_answer_with_a_trailing_comma_says_so_as_validate_does(text: str) -> None:
    program = read_program("# DSL\na:精确匹配\n@格式限制:JSON").program
    assert program is not None
    failure = plan(program, text, '{"a": 1}').failure
    assert failure is not None
    assert str(JSON_PROBLEMS["trailing_comma"]) in reason_sentence(failure)


def test_a_line_says_that_its_reference_was_forgiven() -> None:
    program = read_program("# DSL\na:精确匹配\nb:字数限制:3\n@格式限制:JSON").program
    assert program is not None
    compared, counted = plan(program, '{"a": 1, "b": "x"}', '{"a": 1,}').lines
    assert "Trailing commas and comments" in reason_sentence(compared.reason)
    assert "Trailing commas" not in reason_sentence(counted.reason)


def test_a_field_inside_a_root_says_which_format_to_write() -> None:
    program = read_program("# DSL\na:精确匹配\n@格式限制:XML").program
    assert program is not None
    (line,) = plan(program, "<content><a>1</a></content>", "<a>1</a>").lines
    assert "Write “@格式限制:XML:content”." in reason_sentence(line.reason)


def test_a_reason_that_was_kept_before_problems_were_named_still_reads() -> None:
    kept = Reason("reference.format", {"name": "a", "why": "not_json", "line": "1", "column": "9"})
    assert "Not JSON: line 1, column 9." in reason_sentence(kept)
