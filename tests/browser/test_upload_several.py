"""Uploading several files in a browser: listed with sizes, reordered, removed, and sent in that order."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from django.conf import LazySettings
from playwright.sync_api import Page, expect

from datasets.models import Dataset, Version
from evalsite.accounts.models import User
from tests.browser.waiting import arrived
from tests.datasets.conftest import numbered

ADDRESS = "/p/physics/datasets/upload/"
Enter = Callable[..., Page]


@pytest.fixture(autouse=True)
def _own_data_dir(settings: LazySettings, tmp_path: Path) -> None:
    settings.DATA_DIR = tmp_path


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    made = [tmp_path / f"eval-part-{number}.jsonl" for number in (10, 2, 1)]
    for path in made:
        path.write_bytes(numbered(3))
    return made


def test_parts_are_listed_reordered_and_sent_in_the_order_shown(
    enter: Enter, alice: User, files: list[Path]
) -> None:
    page = enter(alice, ADDRESS)
    choice = page.get_by_role("group", name="If you upload several files")
    expect(choice).to_be_hidden()
    page.set_input_files("input[type=file]", files)
    listed = page.get_by_role("list", name="Files to upload").get_by_role("listitem")
    expect(listed).to_have_text([re.compile(rf"eval-part-{number}\.jsonl \d+ B") for number in (1, 2, 10)])
    expect(page.get_by_label("Name of the data set")).to_be_hidden()
    choice.get_by_label("Parts of one data set").check()
    expect(page.get_by_label("Name of the data set")).to_have_attribute("placeholder", "eval")
    page.get_by_role("button", name="Move eval-part-10.jsonl up").click()
    page.keyboard.press("Enter")  # the button keeps the focus
    page.get_by_role("button", name="Remove eval-part-2.jsonl").click()
    expect(page.get_by_text(re.compile(r"^2 files · ")).first).to_be_visible()
    page.get_by_role("button", name="Upload").click()
    page.wait_for_url("**/v1/")
    arrived(page)
    version = Version.objects.get()
    assert version.dataset.name == "eval"
    assert [part["name"] for part in version.parts] == ["eval-part-10.jsonl", "eval-part-1.jsonl"]


def test_each_file_becomes_a_data_set_and_the_list_says_so(
    enter: Enter, alice: User, files: list[Path]
) -> None:
    page = enter(alice, ADDRESS)
    page.set_input_files("input[type=file]", files[1:])
    page.get_by_role("button", name="Upload").click()
    expect(page.get_by_text("2 files uploaded: eval-part-1.jsonl, eval-part-2.jsonl.")).to_be_visible()
    arrived(page)
    assert Dataset.objects.count() == 2


def test_files_beyond_the_limit_together_are_refused_before_they_are_sent(
    enter: Enter, alice: User, files: list[Path], settings: LazySettings
) -> None:
    settings.CONFIG = replace(settings.CONFIG, upload_max_mb=1)
    for path in files:
        path.write_bytes(b"x" * 400 * 1024)
    page = enter(alice, ADDRESS)
    page.set_input_files("input[type=file]", files)
    expect(page.get_by_role("alert")).to_contain_text("for all files of an upload together")
    page.get_by_role("button", name="Remove eval-part-2.jsonl").click()
    expect(page.get_by_role("alert")).to_be_hidden()
