"""The reference pages in the app."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from evalsite.accounts.models import Project, User
from judging.metrics.models import Metric
from tests.conftest import ClientOf

BASE = "/p/physics/metrics/"
TITLES = {
    ("prompts", "en"): "Prompts and scripts",
    ("prompts", "zh-hans"): "打分 Prompt 与脚本",
    ("metrics-file", "en"): "The metrics file",
    ("metrics-file", "zh-hans"): "指标文件",
    ("rules", "zh-hans"): "评分 DSL",
}


@pytest.fixture
def analyst(client_of: ClientOf, alice: User) -> Client:
    return client_of(alice)


@pytest.mark.parametrize(("name", "language"), TITLES)
def test_a_page_is_shown_in_the_readers_language(analyst: Client, name: str, language: str) -> None:
    text = analyst.get(f"{BASE}reference/{name}/", headers={"accept-language": language}).text
    assert f"<title>{TITLES[name, language]}" in text
    assert ".md" not in re.sub(r"<code>.*?</code>", "", text)


def test_its_links_stay_in_the_app(analyst: Client) -> None:
    text = analyst.get(f"{BASE}reference/prompts/").text
    for address in ("?in=zh", f"{BASE}reference/metrics-file/?in=en", f"{BASE}reference/rules/?in=en"):
        assert f'href="{address}"' in text
        assert (
            analyst.get(f"{BASE}reference/prompts/{address}" if address[0] == "?" else address).status_code
            == 200
        )


def test_there_is_no_other_page(analyst: Client) -> None:
    assert analyst.get(f"{BASE}reference/settings/").status_code == 404


def test_who_may_not_write_metrics_does_not_read_them(
    client_of: ClientOf, charlie: User, project: Project
) -> None:
    assert client_of(charlie).get(f"{BASE}reference/prompts/").status_code == 404


def test_the_editor_and_the_import_lead_there(analyst: Client, metric: Metric) -> None:
    assert f"{BASE}reference/prompts/" in analyst.get(f"{BASE}{metric.pk}/").text
    assert f"{BASE}reference/metrics-file/" in analyst.get(f"{BASE}import/").text
