"""No page, fragment, JSON or address that a rater gets tells which answer is the item's `response`."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.test import Client

from datasets.models import Response
from evalsite.accounts.models import Project, Role
from judging.core.people.criteria import Criterion
from judging.people.models import Assignment, Evaluation, EvaluationRater
from tests.conftest import member
from tests.judging.people.make import make_evaluation

pytestmark = pytest.mark.django_db
JSON = {"Accept": "application/json"}
ITEMS, RATERS = 200, 20
UUIDS = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
ARTICLE = re.compile(r"<article class=\"desk-item\".*?</article>", re.DOTALL)


@dataclass(frozen=True)
class Shown:
    """An item on a rater's page: its side, its token, its place, and its HTML without what differs anyhow."""

    side: int
    token: UUID
    place: int
    form: str


@pytest.fixture(scope="module")
def evaluation(module_db: None) -> Evaluation:
    """200 items and raters enough to hold them all at once; the answers' texts tell nothing but themselves."""
    project = Project.objects.create(name="Physics", slug="physics")
    raters = [member(f"rater{number}", project, Role.RATER) for number in range(RATERS)]
    evaluation = make_evaluation(project, raters, rows=ITEMS)
    answers = list(Response.objects.all())
    for answer in answers:
        content = {"content": f"text {answer.pk:06}", "reasoning_content": f"thought {answer.pk:06}"}
        answer.raw = json.dumps(content)
    Response.objects.bulk_update(answers, ["raw"])
    return evaluation


@pytest.fixture(scope="module")
def shown(evaluation: Evaluation) -> list[Shown]:
    """Every item as its rater's page or prefetching gets it."""
    return [one for rater in raters_of(evaluation) for one in held_on_page(evaluation, rater)]


def test_nothing_beside_the_texts_differs_with_the_side(shown: list[Shown]) -> None:
    forms = {side: {one.form for one in shown if one.side == side} for side in (1, 2)}
    assert forms[1] == forms[2]
    assert len(forms[1]) == 2  # of the first item and of those that wait


def test_no_bit_of_a_token_and_no_place_goes_with_the_side(shown: list[Shown]) -> None:
    sides = [one.side == 1 for one in shown]
    bits = [[bool(one.token.int >> bit & 1) for bit in range(128)] + [bool(one.place % 2)] for one in shown]
    assert len(sides) == ITEMS
    assert [at for at, column in enumerate(zip(*bits, strict=True)) if deviation(sides, column) > 6] == []


def test_nothing_beside_the_texts_differs_with_the_order_of_ranked_answers(evaluation: Evaluation) -> None:
    project = evaluation.run.project
    rater = member("ranker", project, Role.RATER)
    rank = Criterion(name="Preference", scale="rank")
    models = ("alpha", "beta", "gamma", "delta")
    ranking = make_evaluation(project, [rater], rows=12, models=models, scheme="rank", criteria=[rank])
    for answer in Response.objects.filter(row__version=ranking.run.version):
        Response.objects.filter(pk=answer.pk).update(raw=json.dumps({"content": f"text {answer.pk:06}"}))
    shown = list(held_on_page(ranking, raters_of(ranking)[0]))
    assert len({held.shown_order for held in Assignment.objects.filter(evaluation=ranking)}) > 5
    assert len({one.form for one in shown}) == 2  # of the first item and of those that wait


def test_what_the_desk_sends_and_gets_back_is_alike_for_both_sides(
    evaluation: Evaluation, shown: list[Shown]
) -> None:
    answers: dict[int, set[tuple[str, ...]]] = {1: set(), 2: set()}
    for held in Assignment.objects.filter(evaluation=evaluation, place=1)[:5]:
        answers[held.shown_first or 0].add(tuple(exchanged(evaluation, held)))
    assert answers[1] == answers[2]
    assert len(answers[1]) == 1


def address(evaluation: Evaluation, *parts: object) -> str:
    return f"/p/physics/desk/{evaluation.run_id}/" + "".join(f"{part}/" for part in parts)


def raters_of(evaluation: Evaluation) -> list[EvaluationRater]:
    return list(evaluation.raters.select_related("user").order_by("pk"))


def signed_in(rater: EvaluationRater) -> Client:
    client = Client()
    client.force_login(rater.user)
    return client


def held_on_page(evaluation: Evaluation, rater: EvaluationRater) -> Iterator[Shown]:
    client = signed_in(rater)
    articles = ARTICLE.findall(client.get(address(evaluation)).text)
    have = ",".join(UUIDS.findall("".join(articles)))
    said = client.get(address(evaluation, "items"), {"have": have}, headers=JSON).json()
    assert list(said) == [
        "items",
        "more",
        "held",
        "until",
        "progress",
        "left",
        "answers",
        "open",
        "state",
        "guideline",
        "token",
    ]
    assert {one["id"] for one in said["items"]} < set(said["held"])
    own = {one.token: one for one in Assignment.objects.filter(rater=rater)}
    for article in (*articles, *(one["html"].strip() for one in said["items"])):
        held = own[UUID(UUIDS.search(article)[0])]  # type: ignore[index]
        yield Shown(held.shown_first or 0, held.token, held.place, plain(article))


def exchanged(evaluation: Evaluation, held: Assignment) -> Iterator[str]:
    """The plain forms of all answers about an item: differences, draft, question, verdict, undo, skip, earlier items,
    and of the other addresses of the desk."""
    client = signed_in(held.rater)
    own = address(evaluation, held.token)
    sent: dict[str, Any] = {"v0": "1", "comment": "", "attempt": "0", "seconds": "3"}
    yield plain(client.get(f"{own}difference/", headers=JSON).text)
    yield plain(client.post(f"{own}draft/", sent, headers=JSON).text)
    asked = {"text": "Which one?", "key": uuid4()}
    yield plain(client.post(f"{own}question/", asked, headers=JSON).text)
    yield plain(client.get(address(evaluation, "guideline"), headers=JSON).text)
    yield plain(client.post(address(evaluation, "guideline", "understood"), {"version": "1"}).text)
    yield plain(client.get(address(evaluation, "more")).text)
    yield plain(client.post(f"{own}verdict/", {**sent, "key": uuid4()}, headers=JSON).text)
    yield plain(client.get(own, headers=JSON).text)
    yield plain(client.get(address(evaluation, "mine")).text)
    yield plain(client.post(address(evaluation, "undo"), {"key": uuid4()}, headers=JSON).text)
    yield plain(client.get(own).text)
    yield plain(client.post(f"{own}skip/", {"reason": "unclear", "key": uuid4()}, headers=JSON).text)


def plain(text: str) -> str:
    """Without what is drawn or counted: the texts' numbers, names of items, keys, tokens against forgery, progress."""
    text = re.sub(r"\b\w{64}\b", "", text)
    text = re.sub(r'"progress": ".*?[^\\]", "left": \d+', "", text)
    text = re.sub(r"<div class=\\?\"text\\?\">.*?</div>", "", text)  # with the differences marked
    text = re.sub(r'data-until="[^"]+"', "", text)
    text = re.sub(r'id="progress">.*?</div>', "", text, flags=re.DOTALL)
    text = re.sub(
        r'(text|thought|question|Item|class="num">|data-store="desk-\d+-|data-rater="|\brater)\s?\d+',
        r"\1",
        text,
    )
    return UUIDS.sub("", text)


def deviation(sides: list[bool], column: tuple[bool, ...]) -> float:
    """How far the agreement of two columns is from chance, in standard deviations."""
    if len(set(column)) == 1:
        return 0.0
    agree = sum(one == other for one, other in zip(sides, column, strict=True))
    return abs(agree - len(sides) / 2) / math.sqrt(len(sides) / 4)
