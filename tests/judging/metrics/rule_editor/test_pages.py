"""Pages of rule metrics: the guided form, the editor with its live preview, and permissions."""

from __future__ import annotations

import io
import re
import threading
from html import unescape

import pytest
from django.http import QueryDict
from django.test import Client

from datasets.importing.worker import import_version
from datasets.models import Version
from datasets.services import dataset_upload
from evalsite.accounts.models import Project, User
from evalsite.models import Derived
from evalsite.tasks import jobs
from judging.core.judges.scripted import ScriptedJudge, as_script
from judging.core.metric_definition import MetricDefinition, Script
from judging.endpoints.models import Endpoint
from judging.metrics import lint
from judging.metrics.lint import lint_references
from judging.metrics.models import Metric
from judging.metrics.rule_editor.preview import rule_preview
from judging.metrics.selectors import newest_version
from judging.metrics.services import metric_create
from judging.records.models import Judgement
from judging.sandboxes import preview_sandbox
from tests.conftest import ClientOf

BASE = "/p/physics/metrics/"
PROGRAM = "# DSL\n标签:精确匹配\n主题:字数限制:4\n@聚合方式:min\n@格式限制:JSON\n"
FUZZY = PROGRAM.replace("字数限制:4", "模糊匹配")


@pytest.fixture
def rule_metric(project: Project, alice: User) -> Metric:
    definition = MetricDefinition(name="字段", max_score=5, rules=PROGRAM)
    return metric_create(project=project, definition=definition, user=alice)


@pytest.fixture
def analyst(client_of: ClientOf, alice: User) -> Client:
    return client_of(alice)


def form(rules: str = PROGRAM, **more: object) -> dict[str, object]:
    return {"name": "字段", "rules": rules, "preprocess": "", "postprocess": "", **more}


def preview_of(client: Client, rules: str, **more: object) -> str:
    return client.post(f"{BASE}rules/preview/", form(rules, **more)).content.decode()


def test_the_editor_begins_with_a_program_that_has_no_errors(analyst: Client) -> None:
    assert "The program has no errors." in analyst.get(f"{BASE}rules/new/").content.decode()


def test_a_program_is_saved_as_a_metric_from_1_to_5(analyst: Client, project: Project) -> None:
    analyst.post(f"{BASE}rules/new/", form(PROGRAM.replace("\n", "\r\n")))
    definition = MetricDefinition.from_json(newest_version(Metric.objects.get(project=project)).definition)
    assert (definition.rules, definition.judges) == (PROGRAM, ())
    assert (definition.min_score, definition.max_score) == (1, 5)


def test_a_program_with_errors_is_not_saved_and_each_is_reported_with_its_place(analyst: Client) -> None:
    page = analyst.post(f"{BASE}rules/new/", form("# DSL\n标签:精确匹佩\n主题:字数限制\n@格式限制:JSON"))
    text = page.content.decode()
    assert page.status_code == 422
    assert "line 2, column 4" in text
    assert "line 3, column" in text
    assert not Metric.objects.exists()


def test_a_judged_line_asks_for_a_judge_model(analyst: Client, endpoint: Endpoint) -> None:
    refused = analyst.post(f"{BASE}rules/new/", form(FUZZY))
    assert "needs a judge model: choose one" in refused.content.decode()
    analyst.post(f"{BASE}rules/new/", form(FUZZY, endpoint=endpoint.pk, params='{"temperature": 0}'))
    definition = MetricDefinition.from_json(newest_version(Metric.objects.get()).definition)
    assert [(one.endpoint, one.params) for one in definition.judges] == [(endpoint.pk, {"temperature": 0})]


def test_editing_makes_a_new_version(analyst: Client, rule_metric: Metric) -> None:
    analyst.post(f"{BASE}{rule_metric.pk}/", form(PROGRAM.replace("min", "max"), seen=1, began=1))
    assert newest_version(rule_metric).number == 2


def test_an_edit_of_an_old_version_is_reported_and_kept(analyst: Client, rule_metric: Metric) -> None:
    analyst.post(f"{BASE}{rule_metric.pk}/", form(PROGRAM.replace("min", "max"), seen=1, began=1))
    stale = analyst.post(f"{BASE}{rule_metric.pk}/", form(PROGRAM.replace("min", "mode"), seen=1, began=1))
    assert stale.status_code == 409
    assert "@聚合方式:mode" in stale.content.decode()


def test_two_versions_of_a_program_are_compared_line_by_line(analyst: Client, rule_metric: Metric) -> None:
    analyst.post(f"{BASE}{rule_metric.pk}/", form(PROGRAM.replace(":4", ":9"), began="1", seen="1"))
    page = analyst.get(f"{BASE}{rule_metric.pk}/compare/").text
    assert "Rule program" in page
    assert "主题:字数限制:9" in page


def test_the_sample_row_is_scored_line_by_line(analyst: Client, labels: Version) -> None:
    text = preview_of(analyst, PROGRAM, row_version=labels.pk, row_line=2)
    assert 'id="rules-score">1<' in text
    assert "Not equal to the reference." in text
    assert "Length 7, but only 0 to 4 characters are allowed." in text


def test_how_often_a_line_gives_1_is_counted_over_the_rows(analyst: Client, labels: Version) -> None:
    text = preview_of(analyst, PROGRAM, row_version=labels.pk, row_line=1)
    assert "1 of 4 answers don't match the format" in text
    assert "2 of 3" in text


def test_a_judged_line_is_left_to_the_run(analyst: Client, labels: Version) -> None:
    assert "Judge models are only called in runs;" in preview_of(analyst, FUZZY, row_line=1)


def test_an_answer_without_the_format_says_so(analyst: Client, labels: Version) -> None:
    assert "so it scores 1" in preview_of(analyst, PROGRAM, row_line=3)


def test_a_python_block_is_tried_on_the_row(analyst: Client, labels: Version) -> None:
    block = "def score(ref_answer, model_answer):\n    return 4"
    program = f"# DSL\n主题:Python代码:代码1\n@格式限制:JSON\n<代码1>\n{block}\n</代码1>\n"
    assert 'id="rules-score">4<' in preview_of(analyst, program, row_line=1)


CODE = "# DSL\n标签:Python代码:代码1\n@格式限制:JSON\n<代码1>\ndef f(ref_answer, model_answer):\n    {}\n</代码1>\n"


def test_what_python_gives_is_counted_over_the_rows(analyst: Client, labels: Version) -> None:
    program = CODE.format("return 5 if ref_answer == model_answer else 1")
    assert "2 of 3" in preview_of(analyst, program)  # the third answer is not JSON


def test_a_block_that_hangs_is_not_tried_on_every_row(project: Project, labels: Version) -> None:
    typed = QueryDict(mutable=True)
    typed.update({"rules": CODE.format("while True: pass")})
    shown = rule_preview(project, MetricDefinition(name=""), typed)
    assert shown.hangs
    assert shown.counts is not None
    assert shown.counts.lines == {(2, "标签"): (1, 1)}  # the answer without the field


def test_a_block_that_fails_on_some_rows_is_counted_on_the_others(analyst: Client, labels: Version) -> None:
    assert "1 of 2" in preview_of(analyst, CODE.format("return {'物理': 5}[model_answer]"))


def test_judged_lines_say_that_they_are_not_counted(analyst: Client, labels: Version) -> None:
    assert "this preview makes no calls" in preview_of(analyst, FUZZY)
    assert "this preview makes no calls" not in preview_of(analyst, PROGRAM)


def test_preprocess_comes_before_the_rules(analyst: Client, labels: Version) -> None:
    script = 'def preprocess(data, resp):\n    resp[\'content\'] = \'{"标签": "物理", "主题": "折射"}\''
    assert 'id="rules-score">5<' in preview_of(analyst, PROGRAM, row_line=3, preprocess=script)


def test_the_fields_of_the_version_are_offered_for_completion(analyst: Client, labels: Version) -> None:
    assert "&quot;fields&quot;: [&quot;标签&quot;, &quot;主题&quot;]" in preview_of(analyst, PROGRAM)


def test_all_references_are_held_against_the_program(analyst: Client, labels: Version) -> None:
    text = analyst.post(
        f"{BASE}rules/lint/", form(PROGRAM.replace("字数限制:4", "精确匹配"), check="1")
    ).content.decode()
    assert "1 of 4 references do not fit the program." in text
    assert 'data-code="reference.field_missing"' in text
    assert f"/v{labels.number}/rows/4/" in text


def test_a_reference_that_breaks_a_rule_itself_is_minded(labels: Version) -> None:
    (found,) = lint_references(labels, PROGRAM.replace("主题:字数限制:4", "标签:字数限制:1")).complaints
    assert (found.line, found.code, found.rows, found.first) == (3, "reference.breaks_rule", 4, [1, 2, 3, 4])


SHORTENS = "def preprocess(data, resp):\n    data.ref_answer = {'标签': '物理', '主题': '光'}\n"


def test_references_are_looked_at_as_preprocess_leaves_them(labels: Version) -> None:
    assert lint_references(labels, PROGRAM).faulty == 1
    assert (
        lint_references(
            labels, PROGRAM, [Script(kind="preprocess", source=SHORTENS)], preview_sandbox()
        ).complaints
        == []
    )


@pytest.fixture
def many(labels: Version) -> Version:
    """Four rows whose counter claims too many references to check in the request."""
    labels.rows = labels.valid_rows = lint.MAX_REFERENCES_AT_ONCE + 1
    labels.save()
    return labels


def test_many_references_are_left_to_a_worker(analyst: Client, many: Version) -> None:
    waiting = analyst.post(f"{BASE}rules/lint/", form(check="1")).text
    assert 'hx-trigger="every 1s"' in waiting
    assert "No worker is running" in waiting
    jobs.run("lint_template", Derived.objects.get().pk)
    assert "1 of 4 references" in analyst.post(f"{BASE}rules/lint/", form()).text


def test_a_worker_that_stops_gives_the_references_back(many: Version) -> None:
    waiting = lint.request(many, PROGRAM, (), lint.RULES)
    stop = threading.Event()
    stop.set()
    jobs.run("lint_template", waiting.pk, stop)
    after = lint.load(many, PROGRAM, (), lint.RULES)
    assert after
    assert after.job
    assert (after.result, after.job.state) == (None, "waiting")


def test_a_changed_program_asks_to_be_checked_again(analyst: Client, labels: Version) -> None:
    analyst.post(f"{BASE}rules/lint/", form(check="1"))
    assert "check again" in analyst.post(f"{BASE}rules/lint/", form(FUZZY)).text


def test_a_program_and_a_template_of_the_same_text_are_kept_apart(labels: Version) -> None:
    lint.request(labels, PROGRAM, ())
    lint.request(labels, PROGRAM, (), lint.RULES)
    assert {row.kind for row in Derived.objects.all()} == {"template_lint", "rules_lint"}


def test_half_a_character_in_a_reference_does_not_stop_the_lint(labels: Version) -> None:
    labels.data_rows.update(raw='{"messages": [], "ref_answer": {"\\ud800": 1, "a\\u0000": 2}}')
    found = lint.request(labels, "# DSL\n@all:length:0\n@format:JSON", (), lint.RULES)
    assert found.result
    assert b"?" in found.result


def test_the_guided_form_offers_the_references_fields(analyst: Client, labels: Version) -> None:
    text = analyst.get(f"{BASE}rules/start/").content.decode()
    assert "标签" in text
    assert "主题" in text
    assert "format JSON" in text


def test_the_guided_form_writes_the_program(analyst: Client, labels: Version) -> None:
    chosen = {"function-0": "exact_match", "function-1": "rule", "aggregate": "min", "build": "1"}
    text = analyst.post(f"{BASE}rules/start/", {"row_version": labels.pk, **chosen}).content.decode()
    assert "标签:exact_match\n主题:rule:rule1\n@aggregate:min\n@format:JSON\n&lt;rule1&gt;" in text
    assert "The program has no errors." in text


def test_the_format_is_named_in_the_readers_language(analyst: Client, version: Version) -> None:
    page = analyst.get(f"{BASE}rules/start/", headers={"accept-language": "zh-hans"})
    assert "格式为 字符串" in page.content.decode()


def test_a_field_of_the_guided_form_may_have_several_rules(analyst: Client, labels: Version) -> None:
    typed = {"row_version": labels.pk, "function-0": "", "function-1": ["fuzzy_match"], "argument-1": [""]}
    page = analyst.post(f"{BASE}rules/start/", {**typed, "more": "1", "aggregate": "min"})
    assert [field.rules for field in page.context["fields"]] == [[("", "")], [("fuzzy_match", ""), ("", "")]]
    assert "<option selected>min</option>" in page.content.decode()
    typed |= {"function-1": ["fuzzy_match", "length", ""], "argument-1": ["", "60", ""]}
    text = analyst.post(f"{BASE}rules/start/", {**typed, "build": "1"}).content.decode()
    assert "# DSL\n主题:fuzzy_match\n主题:length:60\n@aggregate:mean\n@format:JSON\n" in text


def test_two_rules_in_words_of_a_field_get_a_block_each(analyst: Client, labels: Version) -> None:
    typed = {"row_version": labels.pk, "function-0": ["rule", "rule"], "function-1": "", "build": "1"}
    text = analyst.post(f"{BASE}rules/start/", typed).content.decode()
    assert "标签:rule:rule1\n标签:rule:rule2\n" in text
    assert "The program has no errors." in text


def test_the_guided_form_speaks_chinese_to_a_chinese_reader(analyst: Client, labels: Version) -> None:
    chosen = {"function-0": "exact_match", "function-1": "length", "argument-1": "60", "build": "1"}
    page = analyst.post(
        f"{BASE}rules/start/", {"row_version": labels.pk, **chosen}, headers={"accept-language": "zh-hans"}
    )
    assert "标签:精确匹配\n主题:字数限制:60\n@聚合方式:mean\n@格式限制:JSON" in page.content.decode()


@pytest.mark.parametrize(("language", "word"), [("en", "exact_match"), ("zh-hans", "精确匹配")])
def test_the_reference_page_is_in_the_app(analyst: Client, language: str, word: str) -> None:
    page = analyst.get(f"{BASE}rules/reference/", headers={"accept-language": language})
    assert word in page.content.decode()


def test_the_reference_page_leads_to_itself_in_the_other_language(analyst: Client) -> None:
    (address,) = re.findall(r'href="(\?in=[^"]*)"', analyst.get(f"{BASE}rules/reference/").text)
    assert "评分函数" in analyst.get(f"{BASE}rules/reference/{address}").text


def test_the_list_and_the_version_show_the_program(analyst: Client, rule_metric: Metric) -> None:
    assert "rules" in analyst.get(BASE).content.decode()
    assert "主题:字数限制:4" in analyst.get(f"{BASE}{rule_metric.pk}/versions/1/").content.decode()


@pytest.mark.parametrize("path", ["rules/start/", "rules/new/", "rules/reference/"])
def test_an_outsider_finds_nothing(client_of: ClientOf, charlie: User, project: Project, path: str) -> None:
    assert client_of(charlie).get(BASE + path).status_code == 404


@pytest.mark.parametrize("path", ["rules/preview/", "rules/lint/"])
def test_a_rater_is_refused(client_of: ClientOf, rita: User, path: str) -> None:
    assert client_of(rita).post(BASE + path, form()).status_code == 403


def test_the_editor_shows_a_reference_s_numbers_as_they_are_written(project: Project) -> None:
    row = b'{"messages": [{"role": "user", "content": "?"}], "ref_answer": {"a": 0.30000000000000000001},'
    row += b' "model_outputs": [{"model_name": "m", "responses": [{"content": "{\\"a\\": 0.3}"}]}]}\n'
    made = dataset_upload(project=project, name="exact", file=io.BytesIO(row), file_name="e.jsonl", user=None)
    import_version(made.pk)
    typed = QueryDict(mutable=True)
    typed["rules"] = "# DSL\na:exact_match\n@format:JSON\n"
    shown = rule_preview(project, MetricDefinition(name=""), typed)
    assert (shown.reference_text, shown.score) == ('{"a": 0.30000000000000000001}', 1)


# --- judged lines tried on the sample row ----------------------------------------------------------------------


def tried(client: Client, labels: Version, judge: Endpoint | None, rules: str = FUZZY, **more: object) -> str:
    typed = form(rules, row_version=labels.pk, row_line=1, endpoint=judge.pk if judge else "", **more)
    return unescape(client.post(f"{BASE}rules/try/", typed).content.decode())


def test_a_judged_line_of_the_sample_row_can_be_tried(analyst: Client, labels: Version) -> None:
    text = preview_of(analyst, FUZZY, row_version=labels.pk, row_line=1)
    assert re.findall(r'name="try" value="(\d+)"', text) == ["1"]


def test_the_judge_is_asked_about_that_line_alone_and_nothing_is_stored(
    analyst: Client, labels: Version, live: Endpoint, server: ScriptedJudge
) -> None:
    server.server.script = as_script("It is narrower.\nScore: [[4]]")
    text = tried(analyst, labels, live, **{"try": "1"})
    assert '<span class="score">4</span>' in text
    assert "It is narrower." in text
    assert "主题 · 模糊匹配" in text
    (request,) = server.requests
    assert "折射" in request.body["messages"][-1]["content"]
    assert not Judgement.objects.exists()


def test_a_reply_that_is_no_whole_number_is_no_score(
    analyst: Client, labels: Version, live: Endpoint, server: ScriptedJudge
) -> None:
    server.server.script = as_script("Score: [[4.5]]")
    text = tried(analyst, labels, live, **{"try": "1"})
    assert "is not an integer from 1 to 5" in text
    assert 'data-state="unparsed"' in text


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"try": "1", "endpoint": ""}, "has no endpoint"),
        ({"try": "1", "params": "{"}, "settings have errors"),
        ({"try": "0"}, "no prompt to send"),
        ({"try": "99"}, "no prompt to send"),
        ({"try": "1", "rules": "# DSL"}, "no prompt to send"),
    ],
)
def test_what_keeps_a_line_from_being_tried_is_reported(
    analyst: Client,
    labels: Version,
    live: Endpoint,
    server: ScriptedJudge,
    changes: dict[str, object],
    says: str,
) -> None:
    typed = form(FUZZY, row_version=labels.pk, row_line=1, endpoint=live.pk) | changes
    assert says in analyst.post(f"{BASE}rules/try/", typed).content.decode()
    assert server.requests == []


def test_a_trial_of_a_line_takes_its_turn_beside_the_runs(
    analyst: Client, labels: Version, live: Endpoint, server: ScriptedJudge
) -> None:
    Endpoint.objects.filter(pk=live.pk).update(requests_per_minute=1)
    tried(analyst, labels, live, **{"try": "1"})
    assert "settings have errors" not in tried(analyst, labels, live, **{"try": "1"})
    assert len(server.requests) == 1  # the second request would have to wait for a minute


def test_a_line_is_tried_without_javascript_and_nothing_is_saved(
    analyst: Client, labels: Version, live: Endpoint
) -> None:
    typed = form(FUZZY, row_version=labels.pk, row_line=1, endpoint=live.pk)
    page = analyst.post(f"{BASE}rules/new/", {**typed, "try": "1"})
    assert "Test only; nothing was saved." in page.content.decode()
    assert not Metric.objects.exists()


def test_a_pasted_program_is_repaired_with_one_click(analyst: Client, project: Project) -> None:
    pasted = PROGRAM.replace("标签:", "• 标签:").replace("@聚合方式", "＠聚合方式")
    assert 'value="repair:rules"' in preview_of(analyst, pasted)
    assert 'value="repair:rules"' not in preview_of(analyst, PROGRAM)
    page = analyst.post(f"{BASE}rules/new/", form(pasted, change="repair:rules"))
    assert page.context["form"]["rules"].value() == PROGRAM
