"""The description in the repository, and the page made from it."""

from __future__ import annotations

import json

from django.test import Client

from evalsite.api.site import description_text
from evalsite.management.commands.describe_api import FILE


def test_the_description_in_the_repository_is_up_to_date() -> None:
    assert FILE.read_text(encoding="utf-8") == description_text()  # manage.py describe_api


def test_every_operation_says_what_it_does() -> None:
    paths = json.loads(FILE.read_text(encoding="utf-8"))["paths"].values()
    operations = [operation for methods in paths for operation in methods.values()]
    silent = [
        each["operationId"] for each in operations if not (each.get("summary") and each.get("description"))
    ]
    assert silent == []


def test_the_page_and_the_description_need_no_token(db: None) -> None:
    page = Client().get("/api/v1/docs")
    assert page.status_code == 200
    assert "/api/v1/projects/{slug}/runs" in page.text
    assert "script-src 'self'" in page.headers["Content-Security-Policy"]
    assert Client().get("/api/v1/openapi.json").json()["openapi"].startswith("3.")
