"""The page on which a pasted reply is read."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from evalsite.accounts.models import Project, User
from tests.conftest import ClientOf

pytestmark = pytest.mark.django_db


@pytest.fixture
def client(client_of: ClientOf, alice: User) -> Client:
    return client_of(alice)


def read(client: Client, project: Project, reply: str, **fields: object) -> str:
    data = {"reply": reply, "gives": "score", "min_score": 1, "max_score": 10, **fields}
    return client.post(reverse("metrics:reading", args=(project.slug,)), data).content.decode()


def test_the_value_the_form_and_the_marks_are_shown(client: Client, project: Project) -> None:
    text = read(client, project, "Fine. Score: 8")
    assert '<strong class="score">8</strong> (name and value)' in text
    assert "<mark>Score: 8</mark>" in text


def test_an_unread_reply_says_why_and_marks_what_stood_there(client: Client, project: Project) -> None:
    text = read(client, project, "[[7]] or [[8]]")
    assert "<mark>[[7]]</mark> or <mark>[[8]]</mark>" in text
    assert "<code>ambiguous</code>" in text


@pytest.mark.parametrize(
    ("gives", "reply", "value"),
    [
        ("pass_fail", "[[PASS]]", "Pass"),
        ("category", "Label: made up", "made up"),
        ("comparison", "[[A>B]]", "A&gt;B"),
    ],
)
def test_every_kind_can_be_tried(
    client: Client, project: Project, gives: str, reply: str, value: str
) -> None:
    text = read(client, project, reply, gives=gives, labels="faithful\nmade up")
    assert f'<strong class="score">{value}</strong>' in text


def test_the_forms_are_listed_before_anything_is_pasted(client: Client, project: Project) -> None:
    text = client.get(reverse("metrics:reading", args=(project.slug,))).content.decode()
    assert "double brackets" in text
    assert "status" not in text.split("<main")[1].split("Try a reply")[0]


def test_false_is_a_value_too(client: Client, project: Project) -> None:
    assert '<strong class="score">Fail</strong>' in read(client, project, "[[FAIL]]", gives="pass_fail")


def test_others_cannot_see_it(client_of: ClientOf, charlie: User, project: Project) -> None:
    assert client_of(charlie).get(reverse("metrics:reading", args=(project.slug,))).status_code == 404
