"""A simulated browser: one session, forms with their hidden fields, and the time of every request."""

from __future__ import annotations

import re
import threading
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

import httpx

TIMEOUT = 300.0  # seconds: slow requests on a busy machine are not errors, since times are reported


class Unexpected(Exception):
    """A response that a user would see as an error."""


@dataclass
class Requests:
    """Seconds per request by kind, and all errors; shared by all users."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    errors: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, kind: str, seconds: float) -> None:
        with self.lock:
            self.seconds[kind].append(seconds)

    def count(self) -> int:
        with self.lock:
            return sum(map(len, self.seconds.values()))

    def fail(self, error: str) -> None:
        with self.lock:
            self.errors.append(f"{time.strftime('%H:%M:%S')} {error}")


@dataclass
class Form:
    """The data a browser would submit: `fields` with their initial values, `choices` of radio buttons."""

    action: str
    fields: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    choices: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))


class _Reader(HTMLParser):
    """Collects a page's forms by id, or by action if they have no id."""

    def __init__(self) -> None:
        super().__init__()
        self.forms: dict[str, Form] = {}
        self.form: Form | None = None
        self.name = self.text = ""
        self.form_id = ""
        self.chosen: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form" and given.get("method") != "dialog":
            self.form_id = given.get("id", "")
            self.form = Form(given.get("action", ""))
            self.forms[self.form_id or self.form.action] = self.form
        if self.form is None or given.get("form", self.form_id) != self.form_id:
            return
        if tag == "input":
            self._input(self.form, given)
        elif tag == "textarea":
            self.name, self.text = given.get("name", ""), ""
        elif tag == "select":
            self.name, self.chosen = given.get("name", ""), None
        elif tag == "option" and (self.chosen is None or "selected" in given):
            self.chosen = given.get("value", "")

    @staticmethod
    def _input(form: Form, given: dict[str, str]) -> None:
        name, kind = given.get("name", ""), given.get("type", "text")
        if not name or kind in ("submit", "button", "file", "search"):
            return
        if kind == "radio":
            form.choices[name].append(given.get("value", "on"))
        if kind not in ("radio", "checkbox") or "checked" in given:
            form.fields[name].append(given.get("value", "on" if kind == "checkbox" else ""))

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_endtag(self, tag: str) -> None:
        if self.form is not None and self.name:
            if tag == "textarea":
                self.form.fields[self.name].append(self.text.removeprefix("\n"))
            if tag == "select" and self.chosen is not None:
                self.form.fields[self.name].append(self.chosen)
        if tag in ("textarea", "select"):
            self.name = ""
        if tag == "form":
            self.form = None


def form_in(html: str, name: str) -> Form:
    """Return the form with this id or action; raise Unexpected if there is none."""
    reader = _Reader()
    reader.feed(html)
    if name not in reader.forms:
        raise Unexpected(f"there is no form {name!r}, only {', '.join(reader.forms)}")
    return reader.forms[name]


class Browser:
    """One user's session."""

    def __init__(self, site: str, requests: Requests) -> None:
        self.client = httpx.Client(
            base_url=site, timeout=TIMEOUT, follow_redirects=True, headers={"Accept-Language": "en"}
        )
        self.requests = requests

    def sign_in(self, name: str, password: str) -> None:
        form = form_in(self.get("sign-in", "/sign-in/").text, "")
        self.send("sign-in", "/sign-in/", form, username=name, password=password)

    def get(self, kind: str, path: str, **parameters: Any) -> httpx.Response:
        return self._ask(kind, "GET", path, params=parameters or None)

    def send(self, kind: str, path: str, form: Form, **changes: Any) -> httpx.Response:
        """Submit a form with some fields changed."""
        return self._ask(kind, "POST", path, data={**form.fields, **changes})

    def send_json(self, kind: str, path: str, fields: Mapping[str, Any], files: Any = None) -> dict[str, Any]:
        """Send a POST as the page's script does, and return the JSON response."""
        headers = {"Accept": "application/json"}
        answer = self._ask(kind, "POST", path, data=fields, files=files, headers=headers)
        found: dict[str, Any] = answer.json()
        return found

    def _ask(self, kind: str, method: str, path: str, **more: Any) -> httpx.Response:
        began = time.perf_counter()
        answer = self.client.request(method, path, **more)
        self.requests.add(kind, time.perf_counter() - began)
        if answer.status_code != 200:
            title = re.search("<title>(.*?)</title>|$", answer.text)
            said = title[1] if title and title[1] else answer.text[:200]
            raise Unexpected(f"{method} {path} ({kind}): {answer.status_code} {said}")
        return answer
