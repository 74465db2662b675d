"""A study walked whole over HTTP by five people in two languages, from the pasted list to the payment sheet."""

from __future__ import annotations

import re
from dataclasses import dataclass
from io import BytesIO
from typing import Any
from uuid import uuid4

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from openpyxl import load_workbook

from evalsite.accounts.models import Project, User
from judging.people.models import Evaluation, Rating
from judging.people.questions.models import Question
from tests.conftest import ClientOf
from tests.judging.people.make import answered, lines_of, sent
from tests.make import a_version

pytestmark = pytest.mark.django_db
JSON = {"Accept": "application/json"}
BEST, MIDDLE = 4, 2  # places on the form's scale of 1 to 5
PASSWORD = "a quite good password"
GOLD = '{"row": %s, "a": "alpha", "values": {"Preference": 5}, "reason": "It is complete."}'


@dataclass(frozen=True)
class Desk:
    """A rater's desk, as its script uses it."""

    client: Client
    path: str

    def load(self) -> dict[str, Any]:
        loaded: dict[str, Any] = self.client.get(f"{self.path}items/", headers=JSON).json()
        return loaded

    def tokens(self) -> list[str]:
        return [item["id"] for item in self.load()["items"]]

    def send(self, page: str, **form: object) -> str:
        answer = self.client.post(f"{self.path}{page}", {"key": str(uuid4()), **form}, headers=JSON)
        assert answer.status_code in (200, 204), answer.text
        return str(answer.json()) if answer.content else ""

    def rate_all(self, value: int, most: int = 100) -> str:
        """Rate what there is; return all that was said."""
        said = []
        while tokens := self.tokens()[: most - len(said)]:
            said += [self.send(f"{token}/verdict/", v0=value, seconds=20) for token in tokens]
        return " ".join(said)


def study_made(client: Client, project: Project) -> str:
    """A draft of single answers by two raters each, with gold, as its form makes it; its address."""
    version = answered(a_version(project, rows=16, models=["alpha"]))
    form = sent(version, [], kind="single", overlap=2, gold_share=20, draft="on")
    address: str = client.post("/p/physics/evaluations/new/", form | {"criteria-0-scale": "five"})["Location"]
    gold = SimpleUploadedFile("gold.jsonl", "\n".join(GOLD % row for row in range(1, 7)).encode())
    assert client.post(f"{address}gold/", {"file": gold}).status_code == 302
    return address


def links_made(client: Client, address: str) -> list[str]:
    """Paste a list of two members and somebody new; the links of the sheet."""
    text = "Rita\nRavi\nDora Lind <dora@x.example>"
    page = client.post(f"{address}inviting/list/", {"text": text, "days": 14}).text
    (seen,) = re.findall(r'name="seen" value="(\w+)"', page)
    form = {"text": text, "days": 14, "seen": seen, "make": "1"}
    sheet = client.post(f"{address}inviting/list/", form).text
    return list(dict.fromkeys(re.findall(r"/join/[\w-]+/", sheet)))


def payment(client: Client, address: str) -> list[dict[str, Any]]:
    answer = client.get(f"{address}payment.xlsx", {"names": "1"})
    head, *rows = load_workbook(BytesIO(answer.getvalue())).active.values  # type: ignore[union-attr]
    return [dict(zip(head, row, strict=True)) for row in rows]


def test_a_study_from_the_pasted_list_to_the_payment_sheet(
    project: Project,
    adam: User,
    alice: User,
    bob: User,
    rita: User,
    ravi: User,
    client_of: ClientOf,
) -> None:
    User.objects.filter(pk__in=[alice.pk, ravi.pk]).update(language="zh-hans")
    manager, organiser = client_of(adam), client_of(User.objects.get(pk=alice.pk))
    address = study_made(organiser, project)
    (link,) = links_made(manager, address)
    desk_path = address.replace("evaluations", "desk")
    dora = Client()
    joining = {"username": "dora", "first_name": "Dora", "password1": PASSWORD, "password2": PASSWORD}
    assert dora.post(link, joining).status_code == 302
    assert dora.get(desk_path).status_code == 404  # a draft
    training = Evaluation.objects.get().items.exclude(gold="").order_by("number")[0]
    form = {"items": 2, "mark": 100, "training": [training.pk]}
    assert organiser.post(f"{address}qualification/", form).status_code == 302
    assert organiser.post(f"{address}inviting/quota/", {"quota-quota": 12}).status_code == 302
    organiser.post(f"{address}open/")
    desks = [
        Desk(client, desk_path) for client in (client_of(rita), client_of(User.objects.get(pk=ravi.pk)), dora)
    ]
    assert [desk.client.get(desk_path).status_code for desk in desks] == [200] * 3
    english, chinese, late = desks

    said = english.rate_all(BEST, 3)
    assert "It is complete." in said
    assert "Expected: " in said
    assert "标准答案" in chinese.rate_all(BEST, 3)
    late.rate_all(MIDDLE, 3)
    assert late.load()["state"] == "not_passed"
    who = Evaluation.objects.get().raters.get(user__username="dora")
    assert f"/raters/{who.pk}/let-in/" in organiser.get(f"{address}qualification/").text
    organiser.post(f"{address}raters/{who.pk}/let-in/")

    token, *_rest = english.tokens()
    english.send(f"{token}/question/", text="Does style count?")
    english.send(f"{token}/skip/", reason="unclear", seconds=5)
    english.rate_all(BEST, 4)
    assert "1 个提问" in organiser.get("/p/physics/evaluations/").text
    question = Question.objects.get()
    organiser.post(f"{address}questions/{question.pk}/answer/", {"answer": "Only the facts.", "to_all": "1"})
    assert "Only the facts." in chinese.client.get(desk_path).text
    new_text = {"seen": 1, "guideline": "Only the facts count.", "confirmed": "1"}
    assert organiser.post(f"{address}guideline/", new_text).status_code == 302
    assert "Only the facts count." in late.client.get(desk_path).text
    for desk in desks:
        desk.send("guideline/understood/", version=2)
    chinese.rate_all(BEST)
    late.rate_all(MIDDLE)
    english.rate_all(BEST)

    assert client_of(bob).get(f"{address}differences/").context["waiting"]
    organiser.post(f"{address}raters/{who.pk}/set-aside/", {"reason": "They did not read."})
    assert not client_of(bob).get(f"{address}differences/").context["waiting"]
    organiser.post(f"{address}close/")
    for client in (organiser, manager):
        for page in ("", "payment/", f"raters/{who.pk}/", "items/"):
            assert client.get(f"{address}{page}").status_code == 200
        assert client.get(address.replace("evaluations", "runs") + "report/").status_code == 200
    rows = {row["rater"]: row for row in payment(organiser, address)}
    assert rows.keys() == {"rita", "ravi", "dora"}
    assert [rows[name]["training"] for name in ("rita", "ravi", "dora")] == [3, 3, 3]
    assert rows["dora"]["set_aside"]
    assert not rows["dora"]["items"]
    assert rows["rita"]["skips"] == 1
    assert sum(row["rated"] for row in rows.values()) == Rating.objects.filter(kind="verdict").count()
    assert lines_of(Evaluation.objects.get())
