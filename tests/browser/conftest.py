"""A real Chromium against a real server. Any console error fails the test, including those of the CSP."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, Response, expect
from pytest_django.live_server_helper import LiveServer

from evalsite.accounts.models import User
from tests.browser.waiting import TIMEOUT_MS

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--process-per-site",  # all tabs share the kept tab's process; a new one costs a second of processor time
]
EMPTY = '<link rel="icon" href="data:,">'  # without it, Chromium would ask the server for an icon
expect.set_options(timeout=TIMEOUT_MS)

# htmx also logs an error when a newer request replaces an older one. A failed request is logged as sendError.
REPLACED_REQUEST = ("htmx:sendAbort,", "htmx:afterRequest,")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.startswith("tests/browser/"):
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any]) -> dict[str, Any]:
    if CHROMIUM is None:
        reason = "no Chromium on this machine (apt install chromium)"
        if os.environ.get("EVALSITE_CI") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    return {**browser_type_launch_args, "executable_path": CHROMIUM, "args": QUIET, "timeout": TIMEOUT_MS}


@pytest.fixture(scope="session")
def browser_context_args(browser_context_args: dict[str, Any]) -> dict[str, Any]:
    return {**browser_context_args, "locale": "en-GB", "viewport": {"width": 1280, "height": 800}}


@pytest.fixture(autouse=True, scope="session")
def _database_beside_an_event_loop() -> None:
    """Allow database access in this thread: Playwright's event loop runs in it, so Django would refuse."""
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"


@pytest.fixture
def console() -> list[str]:
    """Console errors and warnings so far. A test that expects one must clear the list."""
    return []


@pytest.fixture(scope="session")
def kept_tab(
    browser: Browser, browser_context_args: dict[str, Any], live_server: LiveServer
) -> Iterator[Page]:
    """A tab that stays open, so that the process of the site's tabs does not end with each test. The server is not
    asked for it: no test's database is there yet."""
    context = browser.new_context(**browser_context_args)
    context.set_default_timeout(TIMEOUT_MS)
    tab = context.new_page()
    tab.route("**", lambda route: route.fulfill(content_type="text/html", body=EMPTY))
    tab.goto(live_server.url)
    yield tab
    context.close()


@pytest.fixture
def context(kept_tab: Page) -> Iterator[BrowserContext]:
    """One browser context per process, cleared of the previous test's cookies and tabs: a new one costs half a
    second of processor time and starts with an empty cache."""
    shared = kept_tab.context
    shared.set_offline(False)
    shared.clear_cookies()
    yield shared
    for tab in shared.pages:
        if tab != kept_tab:
            tab.close()


@pytest.fixture
def page(page: Page, kept_tab: Page, live_server: LiveServer, console: list[str]) -> Iterator[Page]:
    def note(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not message.text.startswith(REPLACED_REQUEST):
            console.append(f"{message.text} ({message.location.get('url', '')})")

    clear_storage(page, live_server.url)
    page.on("console", note)
    page.on("pageerror", lambda error: console.append(str(error)))
    with pending_requests(page) as pending:
        yield page
        wait_for_end(page, pending)
        for tab in page.context.pages:
            if tab != kept_tab:
                disable_scripts(tab)
        wait_for_end(page, pending)
    assert console == []


def disable_scripts(tab: Page) -> None:
    """So that a closing page sends no requests while the tables are being emptied."""
    tab.context.new_cdp_session(tab).send("Emulation.setScriptExecutionDisabled", {"value": True})


def clear_storage(page: Page, origin: str) -> None:
    """Remove what the previous test left in local storage and IndexedDB."""
    session = page.context.new_cdp_session(page)
    session.send("Storage.clearDataForOrigin", {"origin": origin, "storageTypes": "local_storage,indexeddb"})
    session.detach()


@contextmanager
def pending_requests(page: Page) -> Iterator[set[Request]]:
    """Track unanswered requests of all tabs. Playwright reports no end of a request after navigation, nor of one whose
    answer the page does not read, so one whose answer is not streamed ends with the answer's headers."""
    pending: set[Request] = set()

    def begin(request: Request) -> None:
        pending.add(request)

    def end(request: Request) -> None:
        pending.discard(request)

    def answer(response: Response) -> None:
        if response.headers.get("content-type") != "application/x-ndjson":
            pending.discard(response.request)

    handlers = {"request": begin, "response": answer, "requestfinished": end, "requestfailed": end}
    for event, handler in handlers.items():
        page.context.on(event, handler)  # type: ignore[call-overload]
    page.on("framenavigated", lambda _: pending.clear())
    yield pending
    for event, handler in handlers.items():
        page.context.remove_listener(event, handler)


def wait_for_end(page: Page, pending: set[Request]) -> None:
    """Wait up to 10 s for pending requests before the tables are emptied. Held-back requests never end."""
    for _ in range(500):
        if not pending:
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
