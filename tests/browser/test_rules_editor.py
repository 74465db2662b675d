"""The rules editor in a browser: errors, scores and counts update while typing; keywords are completed."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect

from datasets.models import Version
from evalsite.accounts.models import User
from judging.core.judges.scripted import ScriptedJudge
from judging.endpoints.models import Endpoint
from tests.judging.metrics.conftest import labels, live

__all__ = ["labels", "live"]  # fixtures

Enter = Callable[..., Page]
HEADER = "# DSL\n标签:exact_match\n"
FOOT = "\n@format:JSON\n"


@pytest.fixture
def server() -> Iterator[ScriptedJudge]:
    with ScriptedJudge("Score: [[4]]") as judge:
        yield judge


@pytest.fixture
def editor(enter: Enter, alice: User, labels: Version) -> Page:
    page = enter(alice, "/p/physics/metrics/rules/new/")
    page.wait_for_selector("code-editor .prism-code-editor:visible")
    return page


def typed(page: Page, text: str, then: str = "") -> None:
    field = page.locator("#id_rules")
    field.press("Control+a")
    field.press("Delete")
    page.keyboard.insert_text(text)
    if then:
        page.keyboard.type(then)


def test_score_and_counts_follow_the_typing(editor: Page) -> None:
    typed(editor, HEADER + "主题:length:1" + FOOT)
    expect(editor.locator("#rules-score")).to_have_text("3")
    expect(editor.locator("#preview tbody tr")).to_have_count(2)
    expect(editor.locator("#preview tbody tr").nth(1)).to_contain_text("3 of 3")


def test_an_error_is_marked_at_its_line_and_led_to(editor: Page) -> None:
    typed(editor, HEADER + "主题:lenght:60" + FOOT)
    expect(editor.locator("#preview .problems li")).to_contain_text("Did you mean “length”?")
    expect(editor.locator(".problem-line")).to_contain_text("lenght")
    editor.click("#preview .problems [data-goto]")
    assert editor.evaluate("document.activeElement.selectionStart") == len(HEADER + "主题:")


def test_on_a_phone_an_error_is_reported_under_the_editor(editor: Page) -> None:
    editor.set_viewport_size({"width": 390, "height": 800})
    typed(editor, HEADER + "主题:lenght:60" + FOOT)
    expect(editor.locator("#rules-problems li")).to_be_visible()
    expect(editor.locator("#rules-problems li")).to_contain_text("Did you mean “length”?")
    typed(editor, HEADER + "主题:length:60" + FOOT)
    expect(editor.locator("#rules-problems li")).to_have_count(0)


def test_functions_are_offered_and_taken_by_a_key(editor: Page) -> None:
    typed(editor, HEADER + "主题:", "exa")
    expect(editor.locator("#completion li")).to_have_count(1)
    editor.keyboard.press("Enter")
    expect(editor.locator("#id_rules")).to_have_value(HEADER + "主题:exact_match")
    expect(editor.locator("#completion")).to_be_hidden()


def test_the_references_fields_are_offered(editor: Page) -> None:
    typed(editor, HEADER)
    editor.keyboard.press("Control+Space")
    expect(editor.locator("#completion")).to_contain_text("主题")


def test_a_block_comes_with_the_line_that_calls_it(editor: Page) -> None:
    typed(editor, "# DSL\n@format:JSON\n")
    editor.click("[data-block=code]")
    expect(editor.locator("#rules-score")).to_have_text("5")
    expect(editor.locator("#id_rules")).to_have_value(
        "# DSL\n标签:python:code1\n@format:JSON\n<code1>\n"
        "def score(ref_answer, model_answer):\n    return 5 if model_answer == ref_answer else 1\n</code1>\n"
    )


def test_all_references_are_checked_by_a_click(editor: Page) -> None:
    typed(editor, HEADER + "主题:exact_match" + FOOT)
    editor.get_by_role("button", name="Check all references").click()
    expect(editor.locator("#rules-lint")).to_contain_text("1 of 4 references do not fit")


def test_colours_show_fields_functions_and_blocks(editor: Page) -> None:
    typed(editor, HEADER + "主题:python:code1" + FOOT + "<code1>\ndef f(): pass\n</code1>\n")
    expect(editor.locator(".token.property").first).to_have_text("标签")
    expect(editor.locator(".token.function").first).to_have_text("exact_match")
    expect(editor.locator(".token.string").first).to_have_text("code1")
    expect(editor.locator(".token.keyword").last).to_have_text("pass")


def test_a_judged_line_is_tried_on_the_row(
    enter: Enter, alice: User, labels: Version, live: Endpoint
) -> None:
    page = enter(alice, "/p/physics/metrics/rules/new/")
    page.wait_for_selector("code-editor .prism-code-editor:visible")
    page.select_option("#id_endpoint", str(live.pk))
    typed(page, "# DSL\n主题:fuzzy_match" + FOOT)
    page.locator("#preview").get_by_role("button", name="Try on this row").click()
    expect(page.locator("#trial")).to_contain_text("Score: [[4]]")
    expect(page.locator("#trial .score")).to_have_text("4")
    page.locator("#trial [data-dismiss]").click()
    expect(page.locator("#trial")).to_be_empty()
