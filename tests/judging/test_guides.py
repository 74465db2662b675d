"""The user guide in the app."""

from __future__ import annotations

import re

import pytest
from django.contrib.staticfiles import finders
from django.test import Client

from evalsite.accounts.models import User
from judging.guides import GUIDES
from tests.conftest import ClientOf


@pytest.fixture
def rater(client_of: ClientOf, rita: User) -> Client:
    return client_of(rita)


def test_help_opens_with_the_first_steps_for_every_role(rater: Client) -> None:
    assert "<title>Getting started" in rater.get("/help/").text


def test_a_picture_of_a_guide_is_shown_from_our_own_files(rater: Client) -> None:
    found = re.findall(r'<img class="in-(\w+)" src="/static/(guide/[^"]+)"', rater.get("/help/start/").text)
    assert found == [("light", "guide/report.png"), ("dark", "guide/report.dark.png")]
    assert all(finders.find(name) for _theme, name in found)


def test_a_guide_is_shown_in_the_readers_language(rater: Client) -> None:
    assert "<title>术语表" in rater.get("/help/glossary/", headers={"accept-language": "zh-hans"}).text


@pytest.mark.parametrize("page", GUIDES)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_no_guide_links_to_a_file(rater: Client, page: str, language: str) -> None:
    text = rater.get(f"/help/{page}/?in={language}").text
    assert 'aria-current="page"' in text
    assert not re.search(r'href="[^"]+\.md"', text)


def test_the_wrapped_lines_of_a_guide_are_one_paragraph(rater: Client) -> None:
    assert "shows a sample\nproject" in rater.get("/help/start/?in=en").text
    assert "最新报告”，可以先" in rater.get("/help/start/?in=zh").text


def test_there_is_no_other_guide(rater: Client) -> None:
    assert rater.get("/help/settings/").status_code == 404


def test_the_footer_leads_to_the_guides(rater: Client) -> None:
    assert 'href="/help/"' in rater.get("/").text
