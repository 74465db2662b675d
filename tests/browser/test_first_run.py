"""The first run of a new project, its metric chosen in the gallery: at most eight clicks once an endpoint is tested."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from judging.core.judges.scripted import ScriptedJudge
from tests.browser.serving import served
from tests.migrated import migrated

pytestmark = pytest.mark.processes
ROWS = 5
MOST_CLICKS = 8


class Clicks:
    """Clicks, and counts them."""

    def __init__(self) -> None:
        self.count = 0

    def on(self, place: Locator) -> None:
        self.count += 1
        place.click()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[str]:
    """The URL of a new, complete site."""
    migrated(tmp_path / "data" / "evalsite.sqlite3")
    with served(tmp_path) as address:
        yield address


def rag_file(folder: Path) -> Path:
    """Rows whose context has a name of its own."""
    rows = [
        {
            "messages": [{"role": "user", "content": f"When does library {number} open?"}],
            "retrieved_passages": [f"Library {number} opens at 9."],
            "model_outputs": [{"model_name": "alpha", "responses": [{"content": "At 9."}]}],
        }
        for number in range(ROWS)
    ]
    path = folder / "rag.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def a_project_with_a_tested_endpoint(page: Page, site: str, judge: str) -> str:
    page.goto(f"{site}/projects/new/")
    page.get_by_label("Name").fill("Libraries")
    page.get_by_role("button", name="Create").click()
    page.wait_for_url("**/p/*/")
    project = page.url
    page.goto(f"{project}endpoints/new/")
    page.get_by_label("Address", exact=True).fill(judge)
    page.get_by_label("Model ID", exact=True).fill("judge")
    page.get_by_role("button", name="Save and test connection").click()
    expect(page.get_by_text("connected").first).to_be_visible()
    return project


def test_from_an_upload_to_the_first_run(site: str, page: Page, tmp_path: Path) -> None:
    with ScriptedJudge("Both times are in the context.\n\nVerdict: [[PASS]]") as judge:
        project = a_project_with_a_tested_endpoint(page, site, judge.url)
        page.goto(f"{project}datasets/upload/")
        clicks = Clicks()
        with page.expect_file_chooser() as chooser:
            clicks.on(page.locator("input[type=file]"))
        chooser.value.set_files(rag_file(tmp_path))
        clicks.on(page.get_by_role("button", name="Upload"))
        clicks.on(page.get_by_role("link", name="Use in a run"))
        clicks.on(page.locator("main").get_by_role("link", name="Choose a metric"))
        clicks.on(page.get_by_role("link", name="Faithful to the context"))
        expect(page.get_by_label("Retrieved context")).to_have_value("retrieved_passages")
        expect(page.locator("#card")).to_contain_text("Library 0 opens at 9.")
        clicks.on(page.get_by_role("button", name="Use it in a new run"))
        clicks.on(page.get_by_role("button", name="Start run"))
        expect(page.locator("[data-run-state=finished]")).to_be_visible()
        assert clicks.count <= MOST_CLICKS
        assert len(judge.requests) >= ROWS
