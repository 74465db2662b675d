"""Uploading in a browser: by file chooser or drag and drop, with progress that ends on the version's page."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from django.conf import LazySettings
from playwright.sync_api import Page, expect

from datasets.importing.worker import import_version
from datasets.models import Version
from evalsite.accounts.models import User
from tests.browser.waiting import arrived
from tests.datasets.conftest import numbered
from tests.datasets.core.helpers import PRINTED

ADDRESS = "/p/physics/datasets/upload/"
Enter = Callable[..., Page]


@pytest.fixture(autouse=True)
def _own_data_dir(settings: LazySettings, tmp_path: Path) -> None:
    settings.DATA_DIR = tmp_path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "首都.jsonl"
    path.write_bytes(numbered(120) + b"{bad\n")
    return path


def test_a_file_is_uploaded_read_and_browsed(enter: Enter, alice: User, file: Path) -> None:
    page = enter(alice, ADDRESS)
    page.set_input_files("input[type=file]", file)
    expect(page.get_by_label("Name of the data set")).to_have_attribute("placeholder", "首都")
    page.get_by_role("button", name="Upload").click()
    expect(page.get_by_text("No worker is running")).to_be_visible()
    import_version(Version.objects.get().pk)
    expect(page.get_by_text("1 row of 121 has errors")).to_be_visible()
    arrived(page)
    page.get_by_role("button", name="Exclude 1 invalid row").click()
    page.get_by_role("dialog").get_by_role("button", name="Exclude 1 invalid row").click()
    expect(page.get_by_text("1 invalid row of 121 is excluded from every run.")).to_be_visible()
    arrived(page)
    page.keyboard.press("b")
    expect(page.get_by_role("heading", name="Rows")).to_be_visible()
    arrived(page)
    page.get_by_role("searchbox").fill("answer 77")
    page.keyboard.press("Enter")
    page.get_by_role("link", name="77", exact=True).click()
    expect(page.get_by_role("heading", name="Line 77")).to_be_visible()


def test_a_file_beyond_the_limit_is_refused_before_it_is_sent(
    enter: Enter, alice: User, file: Path, settings: LazySettings
) -> None:
    settings.CONFIG = replace(settings.CONFIG, upload_max_mb=1)
    file.write_bytes(b"x" * 1024 * 1024 + b"y")
    page = enter(alice, ADDRESS)
    page.set_input_files("input[type=file]", file)
    expect(page.get_by_role("alert")).to_contain_text("larger than 1 MB")
    page.get_by_role("button", name="Upload").click()
    expect(page).to_have_url(re.compile(ADDRESS))
    assert not Version.objects.exists()


def test_a_filter_is_chosen_without_a_new_page_and_is_in_the_address(
    enter: Enter, alice: User, file: Path
) -> None:
    page = enter(alice, ADDRESS)
    page.set_input_files("input[type=file]", file)
    page.get_by_role("button", name="Upload").click()
    page.wait_for_url("**/v1/")
    import_version(Version.objects.get().pk)
    expect(page.get_by_text("1 row of 121 has errors")).to_be_visible()  # the page reloads itself
    arrived(page)
    page.goto(page.url + "rows/")
    page.get_by_label("Findings").select_option("json.invalid")
    expect(page.locator("#rows tbody tr")).to_have_count(1)
    expect(page).to_have_url(re.compile("finding=json.invalid"))


def test_the_example_of_the_documentation_is_pasted_and_fixed_by_one_click(enter: Enter, alice: User) -> None:
    page = enter(alice, ADDRESS)
    page.get_by_text("Or paste its text").click()
    page.locator("textarea").fill(PRINTED)
    page.get_by_role("button", name="Upload").click()
    page.wait_for_url("**/v1/")
    import_version(Version.objects.get().pk)
    page.get_by_role("button", name="Repair into a new version").click()
    page.wait_for_url("**/v2/")
    import_version(Version.objects.get(number=2).pk)
    expect(page.get_by_role("link", name="Browse rows")).to_be_visible()
    made = Version.objects.get(number=2)
    assert (made.format, made.rows, made.valid_rows, made.counts) == ("judge_only", 1, 1, {})
