"""Crawl the site by its links and forms, with one URL per name in the URL conf."""

from __future__ import annotations

import re
from collections import deque
from html import unescape
from urllib.parse import urljoin, urlsplit

from django.urls import Resolver404, resolve
from playwright.sync_api import APIRequestContext

ADDRESS = re.compile(r"""\s(?:href|action|hx-get|hx-post|src)=["']([^"'#]+)["']""")


def walk(visitor: APIRequestContext, site: str, starts: list[str]) -> tuple[dict[str, str], set[str]]:
    """Return ({name: path} of all pages, names of URLs that are not pages: forms, fragments, files)."""
    pages: dict[str, str] = {}
    others: set[str] = set()
    waiting = deque(starts)
    while waiting:
        address = waiting.popleft()
        name = named(address)
        if not name or name in pages or name in others:
            continue
        answer = visitor.get(site + address, max_redirects=0)
        page = answer.headers.get("content-type", "").startswith("text/html")
        if answer.status != 200 or not page or "content-disposition" in answer.headers:
            if answer.status == 405 or answer.ok:
                others.add(name)
            continue
        text = answer.text()
        if "<html" not in text:  # a fragment, checked as part of its page
            others.add(name)
            continue
        pages[name] = address
        waiting.extend(linked(text, address))
    return pages, others


def linked(text: str, address: str) -> list[str]:
    """Paths on this site that a page links to or submits to."""
    found = (urljoin(address, unescape(each)) for each in ADDRESS.findall(text))
    return [each for each in found if each.startswith("/")]


def named(address: str) -> str:
    try:
        return resolve(urlsplit(address).path).view_name
    except Resolver404:
        return ""


def refuses_get(visitor: APIRequestContext, address: str) -> bool:
    """Return whether a route rejects GET with 405. Its parameters are made up."""
    made_up = re.sub(r"<(\w+):\w+>", lambda found: {"slug": "sample"}.get(found[1], "1"), address)
    return visitor.get(made_up, max_redirects=0).status == 405
