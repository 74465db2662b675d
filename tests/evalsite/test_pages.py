"""Checks for every page: the CSP, helpful error pages, markup allowed by the CSP."""

import re
from pathlib import Path

import pytest
from django.conf import settings
from django.template.loader import render_to_string
from django.test import Client
from django.utils import translation
from pytest_django import DjangoAssertNumQueries

from evalsite.accounts.models import Project, User
from tests.conftest import ClientOf

TEMPLATES = sorted((settings.BASE_DIR / "templates").rglob("*.html"))
FORBIDDEN = {
    "a style attribute": re.compile(r"\sstyle\s*=", re.I),
    "an inline style sheet": re.compile(r"<style\b", re.I),
    "an inline script": re.compile(r"<script\b(?![^>]*\ssrc=)", re.I),
    "an event attribute": re.compile(r"\son[a-z]+\s*=\s*[\"']", re.I),
    "an hx-on attribute": re.compile(r"\s(?:data-)?hx-on", re.I),
    "a javascript: address": re.compile(r"javascript:", re.I),
    "an htmx filter, which needs eval": re.compile(r'hx-trigger="[^"]*\[', re.I),
    "js: values, which need eval": re.compile(r"hx-(?:vals|headers|vars)=[\"']js:", re.I),
}


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda p: str(p.relative_to(settings.BASE_DIR / "templates")))
def test_no_template_holds_what_the_policy_blocks(path: Path) -> None:
    text = path.read_text()
    if path.name == "file.html":  # a downloaded file, to which the site's CSP does not apply
        text = text.replace("<style>{{ styles|safe }}</style>", "")
    assert [name for name, pattern in FORBIDDEN.items() if pattern.search(text)] == []


def test_a_counted_number_is_shown_with_thousands_separators() -> None:
    """`count n=rows` picks the plural; shown itself, as {{ n }}, it would be 2450 beside other pages' 2,450."""
    counted = re.compile(r"\bcount (\w+)=\S+((?:(?!%\}).)*)%\}((?:(?!endblocktranslate).)*)", re.DOTALL)
    raw = [
        (path.name, name)
        for path in TEMPLATES
        for name, _with, text in counted.findall(path.read_text())
        if f"{{{{ {name} }}}}" in text
    ]
    assert raw == []


def test_every_head_of_a_column_has_a_name() -> None:
    nameless = re.compile(r"<th\b[^>]*></th>")
    assert [path.name for path in TEMPLATES if nameless.search(path.read_text())] == []


def test_the_way_to_a_page_begins_at_its_project() -> None:
    begun = re.compile(r"""<ol class="crumbs">\s*(.{0,24})""")
    ways = [(path.name, way) for path in TEMPLATES for way in begun.findall(path.read_text())]
    project = """<li><a href="{% url 'project'"""
    runs = '{% include "runs/_crumbs'  # begins there too
    others = [name for name, way in ways if not project.startswith(way) and not runs.startswith(way)]
    assert others == ["components.html"]  # of the site


def test_no_line_begins_with_a_middle_dot() -> None:
    """The blank before a dot doesn't break; titles and options have only one line."""
    one_line = re.compile(
        r"(?s){% block title %}.*?{% endblock|<title>.*?</title>|<option.*?</option>"
        r"|{% blocktranslate.*?{% endblocktranslate %}|{% translate .*?%}"
    )
    breaking = re.compile(r"\s·\s")
    assert [path.name for path in TEMPLATES if breaking.search(one_line.sub("", path.read_text()))] == []


def test_every_page_carries_the_strict_policy(client: Client, db: None) -> None:
    policy = client.get("/sign-in/").headers["Content-Security-Policy"]
    assert "script-src 'self'" in policy
    assert "style-src 'self'" in policy
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


def test_a_missing_page_says_so_and_leads_on(client_of: ClientOf, alice: User) -> None:
    page = client_of(alice).get("/nothing/here/")
    assert page.status_code == 404
    assert "Page not found" in page.text


def test_what_is_missing_leads_back_to_its_list(client_of: ClientOf, alice: User) -> None:
    page = client_of(alice).get("/p/physics/runs/99/")
    assert page.status_code == 404
    assert 'href="/p/physics/runs/">Back to the list' in page.text


def test_a_forbidden_page_says_who_to_ask(client_of: ClientOf, alice: User) -> None:
    page = client_of(alice).get("/p/physics/people/")
    assert page.status_code == 403
    assert "ask a project administrator" in page.text


def test_a_form_without_its_token_says_what_to_do(alice: User) -> None:
    page = Client(enforce_csrf_checks=True).post("/theme/", {"theme": "dark"})
    assert page.status_code == 403
    assert "reload the page" in page.text


def test_an_unknown_host_name_is_explained(client: Client, db: None) -> None:
    page = client.get("/sign-in/", HTTP_HOST="elsewhere.example")
    assert page.status_code == 400
    assert "ALLOWED_HOSTS" in page.text


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_the_page_of_a_failure_needs_no_database_and_no_user(language: str) -> None:
    with translation.override(language):
        assert f'<html lang="{language}">' in render_to_string("500.html")


@pytest.mark.parametrize("name", ["alice", "bob", "rita", "adam", "charlie", "olga"])
def test_everybody_has_a_first_page(name: str, cast: dict[str, User], client_of: ClientOf) -> None:
    assert client_of(cast[name]).get("/").status_code == 200


def test_the_frame_does_not_ask_the_database_more_for_more_projects(
    client_of: ClientOf, olga: User, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    Project.objects.bulk_create(Project(name=f"p{n}", slug=f"p{n}") for n in range(30))
    client = client_of(olga)
    with django_assert_max_num_queries(11):
        assert client.get("/").status_code == 200
