"""Rule lines on the judgement page, in the list's filter and in the report."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from django.urls import reverse

from evalsite.accounts.models import Membership, Project, Role, User
from judging.core.judges.scripted import ScriptedJudge
from judging.filters.conditions import matching
from judging.filters.judgement_filter import Filters
from judging.records.models import Run
from judging.reports.figures import current_figures
from tests.conftest import ClientOf
from tests.judging.runs.rule_runs import FUZZY, GOOD, MECHANICAL, by_rules

pytestmark = pytest.mark.django_db(transaction=True)

WRONG_LABEL = '{"标签": "化学", "主题": "光的折射"}'
TOO_LONG = '{"标签": "物理", "主题": "光的折射与反射"}'


@pytest.fixture
def run(db: None) -> Run:
    return by_rules(MECHANICAL, GOOD, WRONG_LABEL, TOO_LONG, "不是 JSON")


@pytest.fixture
def reader(run: Run, client_of: ClientOf) -> Client:
    user = User.objects.create_user(username="bob")
    Membership.objects.create(user=user, project=run.project, role=Role.REVIEWER)
    return client_of(user)


def page(reader: Client, run: Run, name: str, *more: int, query: str = "") -> str:
    address = reverse(f"runs:{name}", args=(run.project.slug, run.pk, *more))
    return re.sub(r"\s+", " ", reader.get(address + query).content.decode())


def rows_of(run: Run, **filters: str) -> list[int]:
    found = matching(run, Filters(**filters))  # type: ignore[arg-type]
    return sorted(found.values_list("row__line", flat=True))


def test_the_page_shows_each_line_with_its_score_and_why(reader: Client, run: Run) -> None:
    text = page(reader, run, "judgement", run.judgements.get(row__line=2).pk)
    assert "Not equal to the reference." in text
    assert "Length 4; 0 to 4 characters are allowed." in text
    assert "“化学”" in text or "&quot;化学&quot;" in text


def test_the_page_says_why_the_format_fails(reader: Client, run: Run) -> None:
    text = page(reader, run, "judgement", run.judgements.get(row__line=4).pk)
    assert "doesn't match the program's format" in text
    assert "Not JSON: line 1, column 1." in text


@pytest.mark.parametrize(
    ("rule", "score", "rows"),
    [("2", "1", [2]), ("2", "5", [1, 3]), ("3", "lower", [3]), ("2", "", [1, 2, 3]), ("9", "", [])],
)
def test_judgements_are_filtered_by_a_line_s_score(run: Run, rule: str, score: str, rows: list[int]) -> None:
    assert rows_of(run, rule=rule, rule_score=score) == rows


def test_the_filter_names_the_program_s_lines(reader: Client, run: Run) -> None:
    text = page(reader, run, "judgements", query="?rule=2&rule_score=1")
    assert "2 · 标签:精确匹配" in text
    assert "化学" in text
    assert "光的折射与反射" not in text


def test_an_odd_line_in_an_address_does_no_harm(reader: Client, run: Run) -> None:
    assert page(reader, run, "judgements", query="?rule=x'%25&rule_score=7")


def test_figures_of_each_line_count_only_what_was_scored(run: Run) -> None:
    figures = current_figures(run).figures.rule_lines["字段"]
    label = figures.lines[2, "标签", "精确匹配"]["甲"]
    assert (label.scored, label.lowest, label.mean) == (3, 1, 11 / 3)
    assert (figures.judged, figures.without_format) == ({"甲": 4}, {"甲": 1})


def test_figures_of_a_line_tell_who_lacks_its_field_and_who_was_not_scored(db: None) -> None:
    run = by_rules(MECHANICAL, GOOD, '{"标签": "物理"}', reference={"主题": "光的折射"})
    lines = current_figures(run).figures.rule_lines["字段"].lines
    label, topic = (lines[key]["甲"] for key in ((2, "标签", "精确匹配"), (3, "主题", "字数限制")))
    assert (label.scored, label.failed, label.mean) == (0, 2, None)
    assert (topic.scored, topic.lowest, topic.lacking, topic.failed) == (2, 1, 1, 0)


def test_the_report_has_a_row_for_each_line(reader: Client, run: Run) -> None:
    text = page(reader, run, "report")
    assert "2 · 标签 · 精确匹配" in text
    assert "rule=2&amp;rule_score=1" in text
    assert "Invalid answer format" in text


def test_a_question_to_the_judge_tells_its_field(client_of: ClientOf) -> None:
    with ScriptedJudge(reply="只差一字。\n评分:[[4]]") as judge:
        run = by_rules(FUZZY, GOOD, url=judge.url)
    user = User.objects.create_user(username="rob")
    Membership.objects.create(user=user, project=Project.objects.get(), role=Role.REVIEWER)
    text = page(client_of(user), run, "judgement", run.judgements.get().pk)
    assert "裁判 · 主题" in text
    assert "只差一字。" in text
