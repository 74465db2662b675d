"""The description in the repository, and the page made from it."""

from __future__ import annotations

import json
import re
from collections import Counter

from django.test import Client
from django.urls import resolve
from ninja import Schema

from evalsite.api import takes_files
from evalsite.api.site import description_text
from evalsite.management.commands.describe_api import FILE
from tests.routes import routes


def test_the_description_in_the_repository_is_up_to_date() -> None:
    assert FILE.read_text(encoding="utf-8") == description_text()  # manage.py describe_api


def test_no_two_schemas_share_a_name() -> None:
    """The description holds only one of each name."""

    def below(kind: type) -> set[type]:
        return {kind}.union(*map(below, kind.__subclasses__()))

    names = Counter(kind.__name__ for kind in below(Schema) if "api" in kind.__module__)
    assert [name for name, count in names.items() if count > 1] == []


def test_every_operation_says_what_it_does() -> None:
    paths = json.loads(FILE.read_text(encoding="utf-8"))["paths"].values()
    operations = [operation for methods in paths for operation in methods.values()]
    silent = [
        each["operationId"] for each in operations if not (each.get("summary") and each.get("description"))
    ]
    assert silent == []


def test_every_list_comes_in_pages() -> None:
    for path, methods in json.loads(FILE.read_text(encoding="utf-8"))["paths"].items():
        operation = methods.get("get", {"responses": {}})
        reply = operation["responses"].get("200", {}).get("content", {}).get("application/json", {})
        schema = reply.get("schema", {})
        assert schema.get("type") != "array", path
        if "Page" in schema.get("$ref", ""):
            assert {"limit", "cursor"} <= {parameter["name"] for parameter in operation["parameters"]}, path


def test_the_page_and_the_description_need_no_token(db: None) -> None:
    page = Client().get("/api/v1/docs")
    assert page.status_code == 200
    assert "/api/v1/projects/{slug}/runs" in page.text
    assert "script-src 'self'" in page.headers["Content-Security-Policy"]
    assert Client().get("/api/v1/openapi.json").json()["openapi"].startswith("3.")


def test_addresses_that_take_files_resolve_to_the_names_by_which_they_are_known() -> None:
    """Otherwise the limit of forms would hold for them."""
    paths = {name: "/" + re.sub(r"<int:\w+>", "1", route) for name, route in routes().items()}
    assert {name: resolve(re.sub(r"<\w+>", "x", paths[name])).view_name for name in takes_files} == {
        name: name for name in takes_files
    }
