"""Rule metrics in a run: mechanical lines need no judge, judged lines call it, code blocks run in the sandbox."""

from __future__ import annotations

import json
from typing import Any

import pytest

from datasets.models import Candidate
from judging.core.judges.scripted import ScriptedJudge
from judging.core.metric_definition import MetricDefinition
from judging.records.models import JudgeReply, Run, RunState
from judging.runs.selectors import MetricChoice, cost_of
from judging.transfer.export.files import jsonl_lines, table_columns, table_values
from judging.transfer.export.records import records
from tests.judging.runs.rule_runs import (
    CODE,
    FUZZY,
    GOOD,
    MECHANICAL,
    a_version,
    by_rules,
    by_written_reference,
)

pytestmark = pytest.mark.django_db(transaction=True)


def record(run: Run) -> dict[str, Any]:
    return next(iter(records(run)))


def lines(run: Run) -> list[tuple[str, str, Any]]:
    return [(one["field"], one["function"], one["score"]) for one in record(run)["rules"]]


def test_mechanical_lines_ask_nobody() -> None:
    run = by_rules(MECHANICAL, GOOD)
    assert (run.state, run.scored, run.calls) == (RunState.FINISHED, 1, 0)
    assert lines(run) == [("标签", "精确匹配", 5), ("主题", "字数限制", 5)]
    assert record(run)["value"] == 5


def test_each_line_keeps_why() -> None:
    run = by_rules(MECHANICAL, '{"标签": "化学", "主题": "光的折射"}')
    assert record(run)["value"] == 1
    assert record(run)["rules"][0]["reason"]


def test_a_thousand_answers_are_all_scored_once() -> None:
    run = by_rules(MECHANICAL, *[GOOD] * 1030)
    assert (run.scored, run.total) == (1030, 1030)
    assert run.judgements.filter(score=5, rules__contains='"line":2,"score":5,').count() == 1030


def test_an_answer_without_the_format_scores_1_and_is_flagged() -> None:
    run = by_rules(MECHANICAL, "不是 JSON")
    found = record(run)
    assert (found["value"], found["rules"], found["flags"]) == (1, [], ["format_failed"])


EXACT = "# DSL\n价:精确匹配\n@格式限制:JSON\n"
PI = "3.14159265358979323846264338327950288"


@pytest.mark.parametrize("script", ["", "def preprocess(data, resp):\n    data['seen'] = True\n"])
@pytest.mark.parametrize(("written", "score"), [(PI, 5), (PI[:-1] + "9", 1), (PI + "0", 5), (PI[:17], 1)])
def test_fractions_of_a_reference_are_compared_as_they_are_written(
    written: str, score: int, script: str
) -> None:
    run = by_written_reference(EXACT, f'{{"价": {PI}}}', f'{{"价": {written}}}', preprocess=script)
    assert record(run)["value"] == score


def test_a_script_that_changes_the_reference_has_the_last_word_on_it() -> None:
    script = "def preprocess(data, resp):\n    data['ref_answer'] = {'价': 0.5}\n"
    run = by_written_reference(EXACT, '{"价": 0.50}', f'{{"价": {PI}}}', preprocess=script)
    assert record(run)["value"] == 5


def test_a_script_that_takes_the_reference_away_leaves_the_row_s_own_answer() -> None:
    script = "def preprocess(data, resp):\n    data['ref_answer'] = None\n    data['gt'] = '{\"价\": 7}'\n"
    run = by_written_reference(EXACT, '{"价": 7}', '{"价": 8}', preprocess=script)
    assert record(run)["value"] == 5


def test_the_text_of_a_reference_has_its_numbers_as_they_are_written() -> None:
    rules = "# DSL\n@单个字段:精确全包括\n@格式限制:字符串\n"
    assert record(by_written_reference(rules, 'as given: {"a": 1.50}', '{"a":1.50}'))["value"] == 5


def test_a_reference_that_lacks_a_field_is_an_error_of_the_row() -> None:
    run = by_rules(MECHANICAL, GOOD, reference={"主题": "x"})
    assert (run.errors, record(run)["state"]) == (1, "error")
    assert record(run)["reason"].startswith("reference.field_missing: 2: 标签")


def test_a_judged_line_is_one_question_to_the_judge_model() -> None:
    with ScriptedJudge(reply="意思相同，只差一字。\n评分:[[4]]") as judge:
        run = by_rules(FUZZY, GOOD, url=judge.url)
        assert len(judge.requests) == 1
    assert lines(run) == [("标签", "精确匹配", 5), ("主题", "模糊匹配", 4)]
    assert record(run)["value"] == 4.5
    assert "只差一字" in record(run)["rules"][1]["reason"]


def test_the_reply_to_a_line_is_kept_with_its_verdict() -> None:
    with ScriptedJudge(reply="评分:[[4]]") as judge:
        run = by_rules(FUZZY, GOOD, url=judge.url)
    reply = JudgeReply.objects.get(judgement__run=run)
    assert (reply.judge, reply.repeat, reply.content) == (0, 1, "评分:[[4]]")
    assert record(run)["judges"][0]["verdict"] == 4


@pytest.mark.parametrize(("said", "code"), [("不好说", "nothing_offered"), ("评分:[[4.5]]", "not_integer")])
def test_a_line_that_could_not_be_read_makes_an_error_never_a_guess(said: str, code: str) -> None:
    with ScriptedJudge(reply=said) as judge:
        run = by_rules(FUZZY, GOOD, url=judge.url)
    assert (run.errors, record(run)["value"]) == (1, None)
    assert record(run)["reason"].startswith(code)
    assert lines(run)[0] == ("标签", "精确匹配", 5)


def test_a_judged_line_without_a_judge_model_is_an_error() -> None:
    assert record(by_rules(FUZZY, GOOD))["reason"].startswith("judge.missing")


def test_a_python_block_scores_in_the_sandbox() -> None:
    source = (
        "def score(ref_answer, model_answer):\n    return 5 if len(ref_answer) == len(model_answer) else 2.5"
    )
    run = by_rules(CODE.format(source=source), GOOD, '{"主题": "光"}')
    assert set(run.judgements.values_list("score", flat=True)) == {2.5, 5.0}


def test_a_block_that_fails_spares_the_judge_model() -> None:
    source = "def score(ref_answer, model_answer):\n    return 1 / 0"
    program = CODE.format(source=source).replace("@格式", "标签:模糊匹配\n@格式")
    with ScriptedJudge(reply="评分:[[4]]") as judge:
        run = by_rules(program, GOOD, url=judge.url)
        assert not judge.requests
    assert record(run)["reason"].startswith("code.failed")


def test_preprocess_can_take_the_fences_off() -> None:
    script = "def preprocess(data, resp):\n    resp['content'] = resp['content'].strip('`')"
    assert record(by_rules(MECHANICAL, f"```{GOOD}```", preprocess=script))["value"] == 5


def test_a_program_with_errors_is_an_error_of_every_item() -> None:
    run = by_rules("# DSL\n标签:精确匹佩\n@格式限制:JSON\n", GOOD)
    assert record(run)["reason"] == "rules_invalid: 2: unknown_function"


def test_a_line_for_all_fields_has_a_column_for_each_reply() -> None:
    with ScriptedJudge(reply="评分:[[4]]") as judge:
        run = by_rules("# DSL\n@全部字段:模糊匹配\n@格式限制:JSON\n", GOOD, url=judge.url)
    (row,) = table_values(run)
    assert dict(zip(table_columns(run), row, strict=True))["reply_2"] == "评分:[[4]]"


def test_the_cost_of_a_line_for_all_fields_follows_the_references() -> None:
    version = a_version(GOOD, GOOD, reference={"a": 1, "b": 2, "c": 3})
    rules = "# DSL\n@all:fuzzy_match\na:length:3\n@format:JSON\n"
    choice = MetricChoice(None, MetricDefinition(name="x", max_score=5, rules=rules), [])
    cost = cost_of(version, [Candidate(responses=2)], [choice], None)
    assert (cost.calls, cost.about) == (6, True)


HOSTILE = (
    '{"标签": "\\ud800", "主题": "\\u0000"}',
    '{"a\\u0000\\ud800": 1, "a\\u0000\\ud800": 2}',
    '{"标签": ' + "[" * 100_000,
    '{"标签": "' + "大" * 500_000 + '", "主题": "x"}',
    "<!DOCTYPE a ["
    + "".join(f'<!ENTITY a{n} "&a{n - 1};&a{n - 1};">' for n in range(1, 40))
    + "]><a>&a39;</a>",
    '{"标签": ' + "9" * 100_000 + ', "主题": 1e999999999}',
)


@pytest.mark.parametrize("lines", ["标签:精确匹配\n主题:字数限制:4", "@all:contains", "标签:精确存在于:a"])
@pytest.mark.parametrize("form", ["JSON", "XML"])
def test_hostile_answers_are_scored_and_stored_and_reported(lines: str, form: str) -> None:
    run = by_rules(f"# DSL\n{lines}\n@格式限制:{form}\n", *HOSTILE, reference='{"标签": "a", "主题": "b"}')
    assert run.scored + run.errors == len(HOSTILE)
    assert all(len(line) < 2 * 2**20 and json.loads(line) for line in jsonl_lines(run))


def test_a_hostile_name_in_the_reference_can_be_reported() -> None:
    run = by_rules("# DSL\n@all:精确匹配\n@格式限制:JSON\n", "{}", reference={"a\0\ud800": 1})
    assert (run.scored, len(record(run)["rules"])) == (1, 1)
