"""The main use case as a new user: `serve`, a browser, and the published MT-bench verdicts give the published means."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from judging.core.judges.scripted import ScriptedJudge
from tests import mtbench
from tests.browser.serving import served
from tests.migrated import migrated

pytestmark = pytest.mark.processes


@pytest.fixture
def site(tmp_path: Path) -> Iterator[str]:
    """The URL of a new, complete site."""
    migrated(tmp_path / "data" / "evalsite.sqlite3")
    with served(tmp_path) as address:
        yield address


def test_from_an_upload_to_the_report(site: str, page: Page, tmp_path: Path) -> None:
    published = mtbench.verdicts()
    rows = mtbench.rows_that_name_their_model(tmp_path / "mtbench.jsonl")
    with ScriptedJudge(reply=mtbench.judge(published)) as judge:
        upload(page, site, rows)
        add_endpoint(page, site, judge.url)
        write_metric(page, site)
        run = start_run(page, site)
        expect(page.locator("[data-run-state=finished]")).to_be_visible()
    page.goto(f"{run}report/")
    shown = means(page)
    assert shown == {name: f"{mean:.2f}" for name, mean in mtbench.published_means(published).items()}


def upload(page: Page, site: str, rows: Path) -> None:
    page.goto(f"{site}/p/sample/datasets/upload/")
    page.locator("input[type=file]").set_input_files(rows)
    page.get_by_role("button", name="Upload").click()
    expect(page.get_by_text("finetune_llama2_chat_7b_FFNet").first).to_be_visible()


def add_endpoint(page: Page, site: str, url: str) -> None:
    page.goto(f"{site}/p/sample/endpoints/new/")
    page.get_by_label("Name optional", exact=True).fill("Published verdicts")
    page.get_by_label("Address", exact=True).fill(url)
    page.get_by_label("Model ID", exact=True).fill("gpt-4")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Published verdicts").first).to_be_visible()


def write_metric(page: Page, site: str) -> None:
    page.goto(f"{site}/p/sample/metrics/new/?start=")
    page.get_by_label("Name", exact=True).fill("MT-bench")
    page.get_by_label("Score", exact=True).check()
    page.get_by_label("Judge model", exact=True).select_option(label="Published verdicts · gpt-4")
    page.get_by_label("Preview on").select_option(label="mtbench v1")
    page.locator("code-editor[language=jinja] textarea").first.fill(mtbench.TEMPLATE)
    expect(page.locator("#preview mark").first).to_have_text("mtbench-81")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("heading", name="MT-bench")).to_be_visible()


def start_run(page: Page, site: str) -> str:
    page.goto(f"{site}/p/sample/runs/new/")
    page.get_by_label("Data set").select_option(label="mtbench, version 1 (80 rows)")
    expect(page.get_by_label("finetune_llama2_chat_7b_FFNet")).to_be_checked()
    page.get_by_label("MT-bench").check()
    expect(page.locator(".sums div").filter(has_text="Judgements")).to_contain_text("400")
    page.get_by_role("button", name="Start run").click()
    page.wait_for_url(re.compile(r"/runs/\d+/$"))
    return page.url


def means(page: Page) -> dict[str, str]:
    rows = page.locator("table.board tbody tr").all()
    return {
        row.locator("th.name").inner_text().strip(): row.locator("td.board-mean").inner_text().strip()
        for row in rows
    }
