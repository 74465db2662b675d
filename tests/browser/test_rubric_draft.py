"""A model drafts a row's rubric; a person accepts one line and discards another."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from datasets.models import Version
from evalsite.accounts.models import User
from judging.core.judges.scripted import ScriptedJudge
from tests.datasets.conftest import answers, jsonl, question, upload
from tests.judging.rubrics.test_reply import REPLY
from tests.judging.working import an_endpoint

__all__ = ["upload"]
pytestmark = pytest.mark.django_db(transaction=True)


def test_a_drafted_line_counts_once_it_was_accepted(
    enter: Callable[..., Page], upload: Callable[..., Version], alice: User
) -> None:
    row = question("Burnt finger?", ref_answer="Cool it.", model_outputs=answers(alpha="Butter!"))
    version = upload(jsonl(row), read=True, user=alice)
    page = enter(alice, f"/p/physics/datasets/{version.dataset_id}/v1/rows/1/")
    with ScriptedJudge(REPLY) as judge:
        an_endpoint(version.dataset.project, judge.url, input_price=2, output_price=4, currency="USD")
        page.get_by_role("link", name="Rubric").click()
        page.get_by_role("button", name="Draft criteria").click()
        page.get_by_role("group", name="Says to cool it.").get_by_label("Accept").check()
    page.get_by_role("group", name="Recommends butter.").get_by_label("Discard").check()
    page.get_by_role("button", name="Save decisions").click()
    expect(page.get_by_role("cell", name="Says to cool it.")).to_be_visible()
    expect(page.get_by_text("Recommends butter.")).to_have_count(0)
    expect(page.get_by_role("link", name="1 edited row")).to_be_visible()
