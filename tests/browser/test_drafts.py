"""Long forms survive a reload; Ctrl+S saves; leaving asks for confirmation only if no draft could be saved."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Dialog, Page, expect

from datasets.models import Version
from evalsite.accounts.models import Draft, User
from judging.metrics.models import Metric, MetricVersion
from tests.browser.waiting import until
from tests.judging.metrics.conftest import live, metric, server, version

__all__ = ["live", "metric", "server", "version"]  # fixtures

Enter = Callable[..., Page]


def test_what_is_typed_is_there_after_a_reload(enter: Enter, adam: User) -> None:
    page = enter(adam, "/p/physics/endpoints/new/")
    page.fill("#id_name", "Half a name")
    page.fill("#id_key", "sesame")
    expect(page.locator(".form-foot")).to_contain_text("Draft saved")
    page.fill("#id_key", "")
    page.reload()
    expect(page.locator("#id_name")).to_have_value("Half a name")
    assert "sesame" not in Draft.objects.get().data
    page.get_by_role("button", name="Discard draft").click()
    expect(page.locator("#id_name")).to_have_value("")


def test_what_was_typed_just_before_leaving_is_kept(enter: Enter, adam: User) -> None:
    page = enter(adam, "/p/physics/endpoints/new/")
    page.fill("#id_name", "Left at once")
    page.get_by_role("link", name="Cancel").click()
    until(page, lambda: Draft.objects.filter(data__contains="Left+at+once").exists())
    assert Draft.objects.count() == 1


def test_ctrl_s_saves_the_metric_and_its_draft_goes(
    enter: Enter, alice: User, metric: Metric, version: Version
) -> None:
    page = enter(alice, f"/p/physics/metrics/{metric.pk}/")
    page.wait_for_selector("code-editor .prism-code-editor:visible")
    page.fill("#id_name", "Renamed")
    expect(page.locator(".form-foot")).to_contain_text("Draft saved")
    page.locator("#id_name").press("Control+s")
    expect(page.locator(".messages")).to_contain_text("Saved as version 2")
    assert MetricVersion.objects.filter(metric=metric).count() == 2
    assert not Draft.objects.exists()


def test_leaving_asks_where_the_draft_could_not_be_kept(enter: Enter, adam: User, console: list[str]) -> None:
    page = enter(adam, "/p/physics/endpoints/new/")
    page.route("**/drafts/**", lambda route: route.abort())
    asked: list[str] = []

    def stay(dialog: Dialog) -> None:
        asked.append(dialog.type)
        dialog.accept()

    page.on("dialog", stay)
    page.fill("#id_name", "Nowhere kept")
    expect(page.locator(".toasts")).to_contain_text("could not be saved")
    page.get_by_role("link", name="Cancel").click()
    until(page, lambda: asked)
    assert asked == ["beforeunload"]
    console.clear()
