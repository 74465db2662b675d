"""Words without a blank in several cells of a row make no page wider than a desktop's window."""

from __future__ import annotations

import pytest
from django.conf import settings
from playwright.sync_api import Browser

pytestmark = pytest.mark.processes
WIDTH = 1280
WORD = "W" * 3000
SHEETS = ("tokens", "site", "reading", "charts")


def width_of(browser: Browser, content: str) -> int:
    """The width that a page needs for this content."""
    styles = "".join((settings.BASE_DIR / "static" / "css" / f"{name}.css").read_text() for name in SHEETS)
    page = browser.new_page(viewport={"width": WIDTH, "height": 800})
    page.set_content(f"<style>{styles}</style><body class=site><main class=page>{content}</main>")
    width: int = page.evaluate("document.documentElement.scrollWidth")
    page.close()
    return width


def table(head: str, row: str) -> str:
    return f"<div class='table-wrap'><table class='table'><thead>{head}</thead><tbody>{row}</tbody></table></div>"


@pytest.mark.parametrize("columns", [*range(2, 11), 20])
def test_long_words_in_every_cell_and_in_the_head_of_a_table(browser: Browser, columns: int) -> None:
    head = f"<th>{WORD}</th>" * columns
    row = f"<th>{WORD}</th>" + f"<td>{WORD}</td>" * (columns - 1)
    assert width_of(browser, table(f"<tr>{head}</tr>", f"<tr>{row}</tr>")) == WIDTH


def test_a_long_word_as_a_result(browser: Browser) -> None:
    outcome = f"<span class='outcome'><b>{WORD}</b><small>of 3</small></span>"
    assert width_of(browser, table("", f"<tr><td>a</td><td>{outcome}</td></tr>")) == WIDTH


def test_a_long_name_in_a_column_as_narrow_as_its_text(browser: Browser) -> None:
    row = f"<tr><th scope='row' class='fit'><code>{WORD}</code></th><td class='fit'>a text</td><td>{WORD}</td></tr>"
    assert width_of(browser, table("", row)) == WIDTH
