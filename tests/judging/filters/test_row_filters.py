"""Filters by text in questions and judge replies, by custom fields, and by the spread between judges."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from datasets.models import Row
from evalsite.accounts.models import Project
from evalsite.tasks import jobs
from judging.core.results import JudgementResult, Verdict
from judging.filters.conditions import matching
from judging.filters.judgement_filter import Filters
from judging.filters.page_limits import Limits
from judging.filters.row_filters import RowFilter, indexed_lines
from judging.records.models import Run
from tests.judging.judged import a_judged_run, said
from tests.judging.review.pages import pages
from tests.make import a_project

pytestmark = pytest.mark.django_db

ROWS: list[dict[str, Any]] = [
    {"messages": [{"role": "user", "content": "Add 2 and 3"}], "category": "math", "level": 1},
    {"messages": [{"role": "user", "content": "北京的首都地位从何时开始?"}], "category": "历史", "level": 12},
    {"messages": [{"role": "user", "content": 'Say "hi"\tto ADA'}], "category": "chat", "tags": ["x", "y"]},
    {"messages": [{"role": "user", "content": "Half of 7"}], "category": "math word", "level": 3.5},
]


def by_judges(place: int) -> JudgementResult:
    """The verdicts of two judges that differ by `place`."""
    verdicts = (Verdict(0, 0, 8), Verdict(1, 0, 8 - place))
    return replace(said(8, content=f"Reply {place}: 推理正确"), verdicts=verdicts)


@pytest.fixture(scope="module")
def project(module_db: None) -> Project:
    return a_project()


@pytest.fixture(scope="module")
def run_pk(project: Project) -> int:
    """Two judgements per row, positions 0 to 7; questions stored with and without JSON escapes."""
    run = a_judged_run(project, by_judges, rows=len(ROWS))
    for line, row in enumerate(ROWS, 1):
        raw = json.dumps(row, ensure_ascii=bool(line % 2))
        Row.objects.filter(version=run.version, line=line).update(raw=raw)
    return run.pk


@pytest.fixture(params=[False, True], ids=["looked through", "indexed"])
def run(run_pk: int, request: pytest.FixtureRequest) -> Run:
    run = Run.objects.get(pk=run_pk)
    if request.param:
        jobs.request("index_version", run.version_id)
        assert jobs.run("index_version", run.version_id)
    return run


@pytest.mark.parametrize(
    ("asked", "lines"),
    [
        ({"question": "首都"}, {2}),
        ({"question": "ada"}, {3}),
        ({"question": '"hi"'}, {3}),
        ({"question": "math"}, set()),
        ({"field": "category", "field_is": "math"}, {1}),
        ({"field": "category", "field_is": "历史"}, {2}),
        ({"field": "category", "field_has": "MATH"}, {1, 4}),
        ({"field": "level", "field_from": 2.0}, {2, 4}),
        ({"field": "level", "field_from": 1.0, "field_to": 3.5}, {1, 4}),
        ({"field": "level", "field_is": "12"}, {2}),
        ({"field": "tags", "field_is": "y"}, {3}),
        ({"field": "category", "field_is": "math", "question": "Half"}, set()),
        ({"question": "a", "q": "beta says 3"}, {3}),
    ],
)
def test_a_filter_of_rows_means_the_judgements_of_these_lines(
    run: Run, asked: dict[str, Any], lines: set[int]
) -> None:
    filters = Filters(**asked)
    meant = set(matching(run, filters).values_list("position", flat=True))
    assert {position // 2 + 1 for position in meant} == lines
    assert {position for page in pages(run, filters) for position in page} == meant


@pytest.mark.parametrize("sort", ["position", "-score", "seconds"])
@pytest.mark.parametrize("indexed", [True, False])
def test_what_many_rows_hold_is_listed_in_the_lists_order(run: Run, sort: str, indexed: bool) -> None:
    limits = Limits(few=-1, window=2, judgements=4, scattered=4, lines=200 if indexed else 0)
    shown = pages(run, Filters(question="a", sort=sort), limits=limits)
    found = [position for page in shown for position in page]
    assert sorted(found) == [0, 1, 4, 5, 6, 7]


@pytest.mark.parametrize("run", [True], indirect=True)
def test_the_index_names_the_few_rows_of_a_rare_text(run: Run) -> None:
    assert indexed_lines(run, RowFilter(question="首都地位")) == [2]
    assert indexed_lines(run, RowFilter(answer="beta says 3")) == [3]


def test_a_judges_reply_is_searched(run: Run) -> None:
    found = Filters(reply="reply 5: 推理")
    assert [position for page in pages(run, found) for position in page] == [5]
    assert set(matching(run, found).values_list("position", flat=True)) == {5}


def test_judges_that_are_far_apart_are_found(run: Run) -> None:
    assert pages(run, Filters(spread=6.0)) == [[6, 7]]


@pytest.mark.parametrize(
    ("text", "meant"), [("3", False), ("4", True), ("4.5", True), ("many", False), ("nan", False)]
)
def test_only_numbers_lie_in_a_range(text: str, meant: bool) -> None:
    asked = RowFilter(field="level", low=4.0)
    assert asked.passes(json.dumps({"messages": [], "level": text}), "judge_only") is meant
