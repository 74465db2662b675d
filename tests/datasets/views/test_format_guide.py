"""The format guide and its sample files."""

from __future__ import annotations

import pytest
from django.test import Client
from django.utils import translation

from datasets import uploads
from datasets.core.findings import CODES
from datasets.core.reader import read
from datasets.views import format_guide
from evalsite.accounts.models import User
from tests.conftest import ClientOf

pytestmark = pytest.mark.django_db


@pytest.fixture
def as_alice(client_of: ClientOf, alice: User) -> Client:
    return client_of(alice)


def test_every_format_has_a_sample_that_is_of_it_and_without_any_finding() -> None:
    for name, path in uploads.sample_files().items():
        summary = read(path).summary
        assert (summary.format, summary.errors) == (name, False)


def test_the_guide_shows_each_format_with_its_keys_and_its_sample(as_alice: Client) -> None:
    page = as_alice.get("/p/physics/datasets/formats/").content.decode()
    for format in format_guide.formats():
        assert f'<h2 id="{format.code}">' in page
        assert f"samples/{format.sample.name}" in page
    assert "conversation" in page
    assert "model_outputs" in page


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_every_kind_of_finding_is_reported_in_the_guide(language: str) -> None:
    with translation.override(language):
        kinds = format_guide.kinds()
    assert [kind.code for kind in kinds] == list(CODES)
    assert all(kind.sentence and "%(" not in kind.sentence for kind in kinds)


def test_repairs_stand_after_each_other_in_the_chinese_guide_without_a_blank() -> None:
    with translation.override("zh-hans"):
        repairs = [kind.repair for kind in format_guide.kinds()]
    assert not [text for text in repairs if "。 " in text]


def test_the_guide_is_next_to_the_drop_zone(as_alice: Client) -> None:
    assert b'href="/p/physics/datasets/formats/"' in as_alice.get("/p/physics/datasets/upload/").content


def test_who_may_not_see_data_sets_sees_no_guide(client_of: ClientOf, charlie: User) -> None:
    assert client_of(charlie).get("/p/physics/datasets/formats/").status_code == 404


@pytest.mark.parametrize(("language", "title"), [("en", "From another tool"), ("zh-hans", "从其他工具导入")])
def test_the_guide_to_other_tools_is_linked_and_shown(
    client_of: ClientOf, alice: User, language: str, title: str
) -> None:
    client = client_of(alice)
    headers = {"Accept-Language": language}
    address = "/p/physics/metrics/reference/imports/"
    assert address in client.get("/p/physics/datasets/formats/", headers=headers).content.decode()
    assert f">{title}</h1>" in client.get(address, headers=headers).content.decode()
