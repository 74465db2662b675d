"""Absolute addresses come from SITE_URL alone."""

from __future__ import annotations

from dataclasses import replace

import pytest
from django.conf import LazySettings
from django.test import RequestFactory
from django.urls import get_script_prefix, set_script_prefix

from evalsite.links import absolute_url, link_to_copy


@pytest.fixture
def site_url(settings: LazySettings) -> None:
    settings.CONFIG = replace(settings.CONFIG, site_url="https://tools.example/evals")


@pytest.mark.parametrize("prefix", ["/", "/evals/"])
@pytest.mark.usefixtures("site_url")
def test_an_address_is_the_same_in_a_request_and_in_a_worker(prefix: str) -> None:
    before = get_script_prefix()
    set_script_prefix(prefix)
    try:
        assert absolute_url("project", "physics") == "https://tools.example/evals/p/physics/"
    finally:
        set_script_prefix(before)


@pytest.mark.usefixtures("site_url")
def test_the_host_that_a_request_names_is_in_no_link() -> None:
    request = RequestFactory().get("/", headers={"Host": "evil.example"})
    assert link_to_copy(request, "accounts:join", "s") == "https://tools.example/evals/join/s/"


def test_without_the_setting_there_is_no_address() -> None:
    assert absolute_url("project", "physics") == ""
