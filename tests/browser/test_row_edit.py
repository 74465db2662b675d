"""Editing a row in a browser: findings update while typing."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from datasets.versions import row_edits
from evalsite.accounts.models import User
from tests.datasets.conftest import Upload, jsonl, question, upload

__all__ = ["upload"]
pytestmark = pytest.mark.django_db(transaction=True)
Enter = Callable[..., Page]


def test_findings_follow_what_is_typed_and_saving_collects_the_edit(
    enter: Enter, alice: User, upload: Upload
) -> None:
    version = upload(b'{"messages": [}\n' + jsonl(question("Why?", id=1)), read=True)
    where = f"/p/physics/datasets/{version.dataset_id}/v1/"
    page = enter(alice, where)
    page.get_by_role("link", name="Edit line 1").click()
    check = page.locator("#row-check")
    expect(check).to_contain_text("json.invalid")
    page.locator("#text").fill('{"messages": [{"role": "user", "content": "What\\nnow?"}]}')
    expect(check).to_contain_text("nothing found in this row")
    page.get_by_role("button", name="Edit as a form").click()
    expect(page.get_by_label("messages[0].content")).to_have_value("What\nnow?")
    page.get_by_label("messages[0].content").fill("What\nthen?")
    expect(check.locator("ins").first).to_be_visible()
    page.get_by_role("button", name="Save to the draft").click()
    expect(page.get_by_role("status").or_(page.locator("#toasts, .messages")).first).to_contain_text(
        "was saved"
    )
    assert row_edits.open_edits(version).get().text.endswith('"content": "What\\nthen?"}]}')
