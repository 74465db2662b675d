"""Several judge models, scripts, lint and past replies in the metric editor, in a browser."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from datasets.models import Version
from evalsite.accounts.models import User
from judging.core.judges.scripted import ScriptedJudge
from judging.core.metric_definition import MetricDefinition
from judging.core.scripts import RECOMMENDED
from judging.metrics.models import Metric, MetricVersion
from judging.metrics.selectors import newest_version
from judging.runs.services import ChosenMetric, run_create
from tests.judging.judged import judge, said
from tests.judging.metrics.conftest import live, metric, server, version

__all__ = ["live", "metric", "server", "version"]  # fixtures

Enter = Callable[..., Page]


@pytest.fixture
def editor(enter: Enter, alice: User, metric: Metric, version: Version, server: ScriptedJudge) -> Page:
    page = enter(alice, f"/p/physics/metrics/{metric.pk}/")
    page.wait_for_selector("code-editor .prism-code-editor:visible")
    return page


def typed(page: Page, field: str, text: str) -> None:
    place = page.locator(field)
    place.press("Control+a")
    place.press("Delete")
    page.keyboard.insert_text(text)


def test_a_second_judge_is_added_moved_and_saved(editor: Page, metric: Metric) -> None:
    editor.get_by_role("button", name="Add a judge model").click()
    editor.wait_for_selector("fieldset[data-judge='1'] .prism-code-editor")
    typed(editor, "#id_judge-1-template", "Second {{ response.content }}")
    editor.select_option("#id_judge-1-endpoint", label="Live · scripted")
    editor.locator("fieldset[data-judge='1']").get_by_role("button", name="Move up").click()
    editor.wait_for_selector("fieldset[data-judge='0']#judge-1")
    editor.get_by_role("button", name="Save as a new version").click()
    expect(editor.locator(".badge").first).to_have_text("v2")
    judges = MetricDefinition.from_json(newest_version(metric).definition).judges
    assert [one.template.split()[0] for one in judges] == ["Second", "Q:"]


def test_both_orders_are_offered_for_comparisons_only(editor: Page) -> None:
    both_orders = editor.locator("#id_judge-0-both_orders")
    expect(both_orders).to_be_hidden()
    editor.get_by_label("Comparison with the reference").check()
    expect(both_orders).to_be_visible()


def test_a_blank_row_follows_the_last_label_and_labels_survive_another_choice(editor: Page) -> None:
    rows = editor.locator(".label-row")
    editor.get_by_label("Category", exact=True).check()
    rows.nth(0).get_by_label("Label", exact=True).fill("faithful")
    rows.nth(1).get_by_label("Label", exact=True).fill("made up")
    expect(rows).to_have_count(3)
    editor.get_by_label("Pass or fail").check()
    expect(rows.first).to_be_hidden()
    editor.get_by_label("Category", exact=True).check()
    expect(rows.nth(1).get_by_label("Label", exact=True)).to_have_value("made up")


def test_a_script_s_mistake_and_then_its_result_appear_while_typing(editor: Page) -> None:
    editor.locator("summary", has_text="preprocess").click()
    typed(editor, "#id_preprocess", "def preprocess(data, resp:")
    expect(editor.locator("#preprocess-run")).to_contain_text("line 1")
    typed(editor, "#id_preprocess", "def preprocess(data, resp): return 7")
    expect(editor.locator("#preprocess-run dd").first).to_have_text("7")


def test_a_recommended_script_is_inserted_by_a_click_and_taken_back(editor: Page) -> None:
    editor.locator("summary", has_text="postprocess").click()
    typed(editor, "#id_postprocess", "x = 1")
    editor.get_by_role("button", name="Extract the comparison").click()
    expect(editor.locator("#id_postprocess")).to_have_value(RECOMMENDED["comparison"].source)
    expect(editor.locator("#postprocess-run dd").first).to_be_visible()
    editor.locator("#id_postprocess").press("Control+z")
    expect(editor.locator("#id_postprocess")).to_have_value("x = 1")


def test_a_pasted_script_is_fixed_by_a_click(editor: Page) -> None:
    editor.locator("summary", has_text="postprocess").click()
    typed(editor, "#id_postprocess", 'x = r"\\\\[\\\\d"\ndef postprocess(judge_resps):\nreturn 1\n')
    editor.locator("#postprocess-run").get_by_role("button", name="Fix").click()
    fixed = 'x = r"\\[\\d"\ndef postprocess(judge_resps):\n    return 1\n'
    expect(editor.locator("#id_postprocess")).to_have_value(fixed)


def test_lint_follows_the_typing_and_leads_to_the_line(editor: Page) -> None:
    typed(editor, "#id_judge-0-template", "one\n{{ data.topic }} {{ response.content }}")
    expect(editor.locator("#lint")).to_contain_text("“data.topic” is missing in 1 row")
    editor.click("#lint [data-goto='2']")
    assert editor.evaluate("document.activeElement.selectionStart") == len("one\n")


def test_a_pattern_is_tried_on_past_replies(editor: Page, metric: Metric, version: Version) -> None:
    first = MetricVersion.objects.get(metric=metric)
    run = run_create(
        project=metric.project,
        name="run",
        version=version,
        candidates=list(version.candidates.all()),
        metrics=[ChosenMetric(MetricDefinition.from_json(first.definition), first)],
        user=None,
    )
    judge(run, lambda _: said(None, content="8 points"))
    editor.select_option("#id_judge-0-parse", "regex")
    editor.fill("#id_judge-0-pattern", r"(\d+) points")
    editor.get_by_role("button", name="Test on past replies").click()
    expect(editor.locator(".past-replies strong").first).to_have_text("8")
