"""The report in a browser: tooltips of chart marks, keyboard navigation in charts, columns, and the export menu."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from evalsite.accounts.models import Project, User
from judging.records.models import Run
from tests.judging.reports.cast import a_judged_run
from tests.make import a_version

Enter = Callable[..., Page]


@pytest.fixture
def run(project: Project) -> Run:
    version = a_version(project, rows=40, models=("alpha", "beta", "gamma"))
    return a_judged_run(version, lambda one: one.row.line % 3 + len(one.candidate.name), "quality", "style")


def address(run: Run, more: str = "") -> str:
    return f"/p/{run.project.slug}/runs/{run.pk}/report/{more}"


def test_a_cell_of_the_matrix_says_its_figures_when_pointed_at(enter: Enter, alice: User, run: Run) -> None:
    page = enter(alice, address(run))
    page.locator(".matrix td a").first.hover()
    expect(page.locator(".tip")).to_contain_text("p (Holm)")


def test_the_arrow_keys_go_along_a_distribution_and_enter_opens_its_items(
    enter: Enter, alice: User, run: Run
) -> None:
    page = enter(alice, address(run))
    bars = page.locator("[data-along]").first.locator("a")
    bars.first.focus()
    expect(page.locator(".tip")).to_contain_text("Score")
    page.keyboard.press("ArrowRight")
    expect(bars.nth(1)).to_be_focused()
    wanted = bars.nth(1).get_attribute("href")
    assert wanted
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{wanted}")


def test_chosen_columns_are_in_the_address(enter: Enter, alice: User, run: Run) -> None:
    page = enter(alice, address(run, "?metric=2"))
    page.get_by_text("Columns", exact=True).click()
    page.get_by_label("Top-score rate").check()
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_role("columnheader", name="Top-score rate")).to_be_visible()
    assert "metric=2" in page.url


def test_a_chart_is_saved_as_a_picture(enter: Enter, alice: User, run: Run) -> None:
    page = enter(alice, address(run))
    page.get_by_text("Export", exact=True).click()
    with page.expect_download() as saved:
        page.get_by_role("link", name="Means (PNG)").click()
    assert saved.value.suggested_filename == "means-1.png"
    picture = saved.value.path().read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert int.from_bytes(picture[16:20]) == 960  # pixels, twice the chart's width


def test_a_report_fits_a_phone(enter: Enter, alice: User, run: Run) -> None:
    page = enter(alice)
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(page.url.rstrip("/") + address(run))
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
