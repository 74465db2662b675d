"""Import of promptfoo results."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from datasets.core.imports import promptfoo
from datasets.core.imports.model import NotUsable, Options
from datasets.core.imports.registry import recognise
from tests.datasets.core.imports.reading import files, lines, taken


def result(provider: str = "openai:gpt-5", riddle: str = "What echoes?", **changes: Any) -> dict[str, Any]:
    given = {
        "gradingResult": {
            "pass": False,
            "score": 0.5,
            "reason": "Too slow",
            "componentResults": [
                {
                    "pass": True,
                    "score": 1,
                    "reason": "fine",
                    "assertion": {"type": "contains", "value": "echo"},
                },
                {"pass": False, "score": 0, "reason": "Too slow", "assertion": {"type": "latency"}},
            ],
        },
        "prompt": {"raw": f"Solve: {riddle}", "label": "Solve: {{riddle}}"},
        "provider": {"id": provider, "label": ""},
        "response": {"output": f"{provider} says: an echo."},
        "score": 0.5,
        "success": False,
        "testCase": {"vars": {"riddle": riddle}, "assert": [{"type": "contains", "value": "echo"}]},
        **{"promptIdx": 0, "promptId": "409", "testIdx": 0, "failureReason": 1, "latencyMs": 473},
        "vars": {"riddle": riddle, "question": "kept"},
        "namedScores": {},
    }
    return given | changes


def test_json_lines_hold_one_result_each(tmp_path: Path) -> None:
    found = taken(tmp_path, out__jsonl=lines(result(), result("other:model")))
    assert (found.source, len(found.rows), len(found.verdicts)) == ("promptfoo", 1, 2)


def export(*results: dict[str, Any]) -> str:
    prompt = {"raw": "Solve: {{riddle}}", "provider": "openai:gpt-5", "metrics": {"score": 2}}
    inside = {"version": 3, "timestamp": "2026-01-01", "prompts": [prompt], "results": list(results)}
    whole = {"evalId": "eval-1", "results": inside | {"stats": {}}, "config": {}, "shareableUrl": None}
    return json.dumps(whole, indent=2)


def test_providers_answer_one_row_and_each_answer_has_one_verdict(tmp_path: Path) -> None:
    found = taken(tmp_path, out__json=export(result(), result("other:model")))
    (row,) = found.rows
    assert found.source == "promptfoo"
    assert row["messages"] == [{"role": "user", "content": "Solve: What echoes?"}]
    assert (row["riddle"], row["vars_question"]) == ("What echoes?", "kept")
    assert list(found.answers) == ["openai:gpt-5", "other:model"]
    assert found.said("model", "metric", "value") == [
        ("openai:gpt-5", "score", 0.5),
        ("other:model", "score", 0.5),
    ]


def test_what_its_assertions_said_stays_in_the_verdict(tmp_path: Path) -> None:
    ((reasoning,),) = taken(tmp_path, out__json=export(result())).said("reasoning")
    assert reasoning == "Too slow\n- contains: pass, 1. fine\n- latency: fail, 0. Too slow"


def test_repeats_of_a_test_are_answers_of_one_row(tmp_path: Path) -> None:
    again = result(testIdx=1, response={"output": "Wind."})
    found = taken(tmp_path, out__json=export(result(), again))
    assert found.answers == {"openai:gpt-5": ["openai:gpt-5 says: an echo.", "Wind."]}
    assert found.said("response") == [(1,), (2,)]


def test_another_prompt_is_another_row(tmp_path: Path) -> None:
    found = taken(tmp_path, out__json=export(result(), result(prompt={"raw": "Guess: What echoes?"})))
    assert len(found.rows) == 2


def test_an_older_file_with_its_results_at_the_top_is_read(tmp_path: Path) -> None:
    old = json.dumps({"version": 2, "results": [result()], "stats": {}, "table": {}})
    assert taken(tmp_path, out__json=old).source == "promptfoo"


def test_a_chat_prompt_is_messages_and_an_object_is_its_json(tmp_path: Path) -> None:
    chat = json.dumps([{"role": "system", "content": "Brief."}, {"role": "user", "content": "Hi"}])
    found = taken(tmp_path, out__json=export(result(prompt={"raw": chat}, response={"output": {"a": 1}})))
    assert [one["role"] for one in found.rows[0]["messages"]] == ["system", "user"]
    assert found.answers == {"openai:gpt-5": ['{"a": 1}']}


def test_an_error_and_an_answer_that_was_not_graded_are_named(tmp_path: Path) -> None:
    failed = result("down:model", response=None, error="API error: 500", gradingResult=None)
    ungraded = result("other:model", gradingResult=None)
    found = taken(tmp_path, out__json=export(result(), failed, ungraded))
    assert found.left_out == {"no_answer": 1, "no_value": 1}
    assert list(found.answers) == ["openai:gpt-5", "other:model"]


def yaml_export(*results: dict[str, Any]) -> str:
    """The export as YAML, with anchors for repeated objects, as js-yaml writes it."""
    return yaml.safe_dump(json.loads(export(*results)), sort_keys=False, allow_unicode=True)


def test_yaml_is_the_same_as_json(tmp_path: Path) -> None:
    variables = {"riddle": "What echoes?", "n": "007", "day": "2024-01-01", "yes": "no"}
    given = result(vars=variables, testCase={"vars": variables}), result("other:model", vars=variables)
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    text = yaml_export(*given).replace("    vars:\n", "    vars: &v\n", 1)
    found = taken(tmp_path / "a", out__yaml=text)
    assert found == taken(tmp_path / "b", out__json=export(*given))


def test_what_yaml_names_to_use_again_is_there_each_time(tmp_path: Path) -> None:
    text = yaml_export(result(vars={"riddle": "What echoes?"}), result("other:model"))
    text = text.replace(
        "    vars:\n      riddle: What echoes?\n", "    vars: &v\n      riddle: What echoes?\n", 1
    )
    text = text.replace("    vars:\n      riddle: What echoes?\n      question: kept\n", "    vars: *v\n", 1)
    assert "*v" in text
    found = taken(tmp_path, out__yaml=text)
    assert (len(found.rows), list(found.answers)) == (1, ["openai:gpt-5", "other:model"])


def test_yaml_that_ends_early_keeps_what_came_before(tmp_path: Path) -> None:
    found = taken(
        tmp_path, out__yaml=yaml_export(result(), result("b")).replace("  - gradingResult", "  - [", 2)
    )
    assert found.left_out == {"yaml_broken": 1}


def test_yaml_s_aliases_cannot_unfold_to_millions_of_values(tmp_path: Path) -> None:
    bomb = "\n".join(f"      a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12))
    results = f"  - vars:\n      a0: &a0 [1]\n{bomb}\n    prompt: x\n  - {{prompt: y}}\n"
    text = f"results:\n  version: 3\n  results:\n{results}"
    found = taken(tmp_path, out__yaml=text)
    assert found.left_out["too_large"] == 1
    assert [row["messages"][0]["content"] for row in found.rows] == ["y"]


CSV_HEAD = (
    '"Description","riddle","n",'
    '"[openai:gpt-5] Solve:\n{{ riddle }}","Status","Score","Named Scores","Metric: wit","Grader Reason","Comment",'
    '"[other:model] Solve:\n{{ riddle }}","Status","Score","Named Scores","Metric: wit","Grader Reason","Comment"\n'
)


def test_csv_s_answers_are_judged_by_the_columns_after_them(tmp_path: Path) -> None:
    cells = '"An echo",PASS,1.00,"{""wit"":0.5}",0.50,fine,nice,"429",ERROR,0.00,,,,\n'
    found = taken(tmp_path, out__csv=CSV_HEAD + 'first,"What, echoes?",7,' + cells)
    assert found.source == "promptfoo"
    assert found.rows[0]["messages"] == [{"role": "user", "content": "Solve:\nWhat, echoes?"}]
    assert (found.rows[0]["riddle"], found.rows[0]["description"]) == ("What, echoes?", "first")
    assert found.answers == {"openai:gpt-5": ["An echo"]}
    assert found.said("model", "metric", "value", "reasoning") == [
        ("openai:gpt-5", "score", 1.0, 'fine\nNamed Scores: {"wit":0.5}\nComment: nice')
    ]
    assert found.left_out == {"no_answer": 1}


def test_csv_of_older_releases_has_the_verdict_in_the_answer_s_cell(tmp_path: Path) -> None:
    cells = [
        "[PASS] (1.00)\n\nAn echo.\n\nIt says:\n\nyes\n\nPass Reason: All assertions passed",
        "[FAIL] (0.25, wit: 0.50)\n\nWind.\n\nFail Reason: Not an echo",
    ]
    made = io.StringIO()
    csv.writer(made).writerows(
        [["riddle", "[a:1] Solve: {{riddle}}", "[b:2] Solve: {{riddle}}"], ["Q", *cells]]
    )
    found = taken(tmp_path, out__csv=made.getvalue())
    assert found.answers == {"a:1": ["An echo.\n\nIt says:\n\nyes"], "b:2": ["Wind."]}
    assert found.said("model", "value", "reasoning") == [
        ("a:1", 1.0, "All assertions passed"),
        ("b:2", 0.25, "Not an echo\nNamed Scores: wit: 0.50"),
    ]


def test_a_prompt_of_csv_that_is_only_a_label_leaves_the_variables_to_be_the_question(tmp_path: Path) -> None:
    text = "riddle,hint,[a:1] my prompt,Status,Score\nWhat?,Wind,An echo,PASS,1.00\n"
    found = taken(tmp_path, out__csv=text)
    assert found.rows[0]["messages"] == [{"role": "user", "content": "What?\n\nWind"}]


def test_a_chat_template_of_csv_is_messages(tmp_path: Path) -> None:
    chat = json.dumps(
        [{"role": "system", "content": "Brief."}, {"role": "user", "content": "Say {{riddle}}"}]
    )
    made = io.StringIO()
    head = ["riddle", f"[a:1] prompts/chat.json: {chat}", "Status", "Score"]
    csv.writer(made).writerows([head, ['"What?"', "An echo", "PASS", "1.00"]])
    (row,) = taken(tmp_path, out__csv=made.getvalue()).rows
    assert [one["content"] for one in row["messages"]] == ["Brief.", 'Say "What?"']


@pytest.mark.parametrize(
    "text",
    [
        '<!doctype html>\n<html><title>Riddles</title><body><div aria-label="Promptfoo"></div></body></html>',
        "<html><table><tr><th>riddle</th>\n<th class='x'>[openai:gpt-5] Solve</th></tr></table></html>",
        "<promptfoo><evalId>e</evalId></promptfoo>",
    ],
)
def test_a_report_for_reading_says_which_export_to_use(tmp_path: Path, text: str) -> None:
    (file,) = files(tmp_path, out__html=text)
    source = recognise([file])
    assert source is promptfoo.SOURCE
    with pytest.raises(NotUsable, match="promptfoo_report"):
        source.read([file], Options())


def test_a_page_that_is_no_report_is_not_taken_for_one(tmp_path: Path) -> None:
    (file,) = files(tmp_path, page__html="<html><body>About promptfoo</body></html>")
    assert recognise([file]) is None


def test_the_notes_of_csv_name_its_variables(tmp_path: Path) -> None:
    (file,) = files(tmp_path, out__csv=CSV_HEAD)
    notes = promptfoo.SOURCE.read([file], Options()).notes
    assert [one.origin for one in notes if one.becomes == "field"] == ["Description", "riddle", "n"]


def test_yaml_that_is_nested_without_end_is_given_up_early(tmp_path: Path) -> None:
    text = "results:\n  results:\n  - {prompt: y, response: {output: z}}\n  - vars: " + "[" * 50_000
    found = taken(tmp_path, out__yaml=text)
    assert (len(found.rows), found.left_out["too_deep"]) == (1, 1)
