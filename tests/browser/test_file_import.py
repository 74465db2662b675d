"""Importing a spreadsheet in a browser: drop the file, assign its columns, see the rows at once, import."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from django.conf import LazySettings
from playwright.sync_api import Page, expect

from datasets.models import Version
from evalsite.accounts.models import User
from tests.browser.waiting import arrived
from tests.datasets.core.imports.tabular import xlsx

ADDRESS = "/p/physics/datasets/upload/"
Enter = Callable[..., Page]


@pytest.fixture(autouse=True)
def _own_data_dir(settings: LazySettings, tmp_path: Path) -> None:
    settings.DATA_DIR = tmp_path


def test_a_spreadsheets_columns_are_chosen_with_the_rows_in_view(
    enter: Enter, alice: User, tmp_path: Path
) -> None:
    book = tmp_path / "survey.xlsx"
    rows = [["question", "robin", "wren", "lang"], ["Why?", "Because.", "No idea.", "en"]]
    book.write_bytes(xlsx([["Read me"]], rows))
    page = enter(alice, ADDRESS)
    page.set_input_files("input[type=file]", book)
    page.get_by_role("button", name="Upload").click()
    page.wait_for_url("**/import/*/")
    preview = page.get_by_role("table", name="First rows")
    expect(page.get_by_label("Sheet2")).to_be_checked()
    expect(preview.get_by_role("row").nth(1)).to_contain_text("robin Because.")
    page.get_by_label("Import “robin” as").select_option("Answer")
    expect(preview.locator("strong")).to_have_text(["robin"])
    page.get_by_label("Import “wren” as").select_option("Answer")
    page.get_by_label("Model for “wren”").fill("Jenny Wren")
    page.keyboard.press("Tab")
    expect(preview.locator("strong")).to_have_text(["robin", "Jenny Wren"])
    page.get_by_role("button", name="Import").click()
    page.wait_for_url("**/v1/")
    arrived(page)
    made = Version.objects.get(origin="import")
    assert made.source_import.columns == "question=question,answer:robin=robin,answer:Jenny Wren=wren"
