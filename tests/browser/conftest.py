"""A real Chromium against a real server. A test fails on any error in the browser's console, the policy's included."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from playwright.sync_api import ConsoleMessage, Page, Request, expect
from pytest_django.live_server_helper import LiveServer

from evalsite.accounts.models import User
from tests.browser.waiting import PATIENCE

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
expect.set_options(timeout=PATIENCE)

# htmx calls it an error too that a newer question took an older one's place. One that failed is told as sendError.
NO_LONGER_WANTED = ("htmx:sendAbort,", "htmx:afterRequest,")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any]) -> dict[str, Any]:
    if CHROMIUM is None:
        reason = "no Chromium on this machine (apt install chromium)"
        if os.environ.get("EVALSITE_CI") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    return {**browser_type_launch_args, "executable_path": CHROMIUM, "args": QUIET, "timeout": PATIENCE}


@pytest.fixture(scope="session")
def browser_context_args(browser_context_args: dict[str, Any]) -> dict[str, Any]:
    return {**browser_context_args, "locale": "en-GB", "viewport": {"width": 1280, "height": 800}}


@pytest.fixture(autouse=True, scope="session")
def _database_beside_an_event_loop() -> None:
    """Playwright's loop runs in this thread; Django would refuse to touch the database beside it."""
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"


@pytest.fixture
def console() -> list[str]:
    """What the browser complained of so far; a test that expects an error status clears it."""
    return []


@pytest.fixture
def page(page: Page, console: list[str]) -> Iterator[Page]:
    def hear(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not message.text.startswith(NO_LONGER_WANTED):
            console.append(f"{message.text} ({message.location.get('url', '')})")

    page.context.set_default_timeout(PATIENCE)
    page.on("console", hear)
    page.on("pageerror", lambda error: console.append(str(error)))
    under_way = requests_of(page)
    yield page
    let_end(page, under_way)
    complaints = list(console)
    # What a page sends while it is closed would meet tables that are being emptied.
    page.context.set_offline(True)
    assert complaints == []


def requests_of(page: Page) -> set[Request]:
    """What any tab has asked for and not got yet, at every moment; of what outlives its page nobody hears."""
    under_way: set[Request] = set()
    page.context.on("request", lambda request: under_way.add(request))
    page.context.on("requestfinished", lambda request: under_way.discard(request))
    page.context.on("requestfailed", lambda request: under_way.discard(request))
    page.on("framenavigated", lambda _: under_way.clear())
    return under_way


def let_end(page: Page, under_way: set[Request]) -> None:
    """Let the server be done before the tables are emptied; what a test holds back for good, it need not see."""
    for _ in range(500):
        if not under_way:
            return
        page.wait_for_timeout(20)


@pytest.fixture
def enter(page: Page, live_server: LiveServer) -> Callable[..., Page]:
    """Sign a user in and open a path: enter(alice, "/p/physics/")."""

    def sign_in(user: User, path: str = "/") -> Page:
        client = Client()
        client.force_login(user)
        name = settings.SESSION_COOKIE_NAME
        page.context.add_cookies(
            [{"name": name, "value": client.cookies[name].value, "url": live_server.url}]
        )
        page.goto(live_server.url + path)
        return page

    return sign_in
