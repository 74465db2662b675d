"""Comparisons of candidates by judge models in a report: a run's own and imported ones."""

from __future__ import annotations

import re
from typing import Any

import pytest

from datasets.models import Response
from evalsite.accounts.models import Project, User
from judging.core.judges.scripted import Received, ScriptedJudge
from judging.records.models import Run
from judging.records.overrides import override_add
from judging.reports.services import report_document
from tests.judging.working import work
from tests.make import a_comparison, a_metric, a_run, a_version

pytestmark = pytest.mark.django_db(transaction=True)


def judged(project: Project, rows: int, models: str, says: Any, **metric: Any) -> Run:
    with ScriptedJudge(reply=says) as judge:
        return work(a_run(a_version(project, rows, tuple(models)), a_comparison(judge.url, **metric)))


def by_name(request: Received) -> str:
    """Prefers the model whose name comes first in the alphabet."""
    first, second = re.findall(r"^[AB]: (\w)", request.prompt, re.MULTILINE)
    return "[[A>B]]" if first < second else "[[B>A]]"


def side_by_side(run: Run) -> dict[str, Any]:
    (entry,) = report_document(run)["side_by_side"]
    return dict(entry)


def outcome(cell: dict[str, Any]) -> tuple[int, int, int, int]:
    return cell["wins"], cell["ties"], cell["losses"], cell["unsettled"]


def test_an_attentive_judge_s_wins_are_counted(project: Project) -> None:
    entry = side_by_side(judged(project, 4, "abc", by_name))
    assert {name: outcome(cell) for name, cell in entry["candidates"].items()} == {
        "a": (8, 0, 0, 0),
        "b": (4, 0, 4, 0),
        "c": (0, 0, 8, 0),
    }
    assert entry["by"] == "judge"
    assert entry["connected"]
    assert entry["first_side"]["share"] == 0.5


def test_a_judge_that_names_the_first_side_leaves_everything_unsettled(project: Project) -> None:
    run = judged(project, 4, "ab", "[[A>B]]")
    entry = side_by_side(run)
    cell = entry["candidates"]["a"]
    assert outcome(cell) == (0, 0, 0, 4)
    assert (cell["comparisons"], cell["win_rate"], cell["settled_rate"]) == (4, 0.5, None)
    assert (cell["low_bound"], cell["high_bound"]) == (0, 1)
    assert (entry["first_side"]["first"], entry["first_side"]["share"]) == (8, 1)
    assert [outcome(pair) for pair in entry["pairs"]] == [(0, 0, 0, 4)]


def test_unsettled_pairs_are_apart_from_ties_and_half_to_each(project: Project) -> None:
    def says(request: Received) -> str:
        line = int(re.search(r"question (\d)", request.prompt)[1])  # type: ignore[index]
        return "[[A=B]]" if line == 1 else "[[A>B]]" if line == 2 else by_name(request)

    cell = side_by_side(judged(project, 4, "ab", says))["candidates"]["b"]
    assert outcome(cell) == (0, 1, 2, 1)
    assert (cell["win_rate"], cell["low_bound"], cell["high_bound"]) == (0.25, 0.125, 0.375)
    assert cell["settled_rate"] == pytest.approx(1 / 6)


def test_a_cell_counts_unsettled_comparisons_as_answered(project: Project) -> None:
    document = report_document(judged(project, 4, "ab", "[[A>B]]"))
    cell = document["candidates"]["a"]["quality"]
    assert (cell["responses"], cell["scored"], cell["unsettled"], cell["coverage"]) == (4, 0, 4, 1)


def test_pairs_that_lack_an_answer_are_counted(project: Project) -> None:
    version = a_version(project, 3, tuple("abc"))
    Response.objects.filter(row__line=2, candidate__name="c").delete()
    with ScriptedJudge(reply=by_name) as judge:
        document = report_document(work(a_run(version, a_comparison(judge.url))))
    assert document["left_out"]["pairs_without_answers"] == 2
    assert document["side_by_side"][0]["candidates"]["c"]["comparisons"] == 4


def test_metrics_that_score_answers_stand_beside_those_that_compare(project: Project) -> None:
    with ScriptedJudge(
        reply=lambda request: by_name(request) if "B:" in request.prompt else "[[7]]"
    ) as judge:
        metrics = (a_metric(judge.url), a_comparison(judge.url, name="side by side"))
        run = work(a_run(a_version(project, 3), *metrics))
    document = report_document(run)
    assert document["candidates"]["alpha"]["quality"]["mean"] == 7
    assert [entry["metric"] for entry in document["side_by_side"]] == ["side by side"]


def test_order_effects_and_several_judges_are_reported(project: Project) -> None:
    with ScriptedJudge(reply="[[A>B]]") as first, ScriptedJudge(reply=by_name) as attentive:
        metric = a_comparison(first.url)
        other = a_comparison(attentive.url).judges[0]
        both = [metric.judges[0], type(other)(**{**_fields(other), "name": "attentive"})]
        run = work(a_run(a_version(project, 3, tuple("ab")), _with_judges(metric, both)))
    document = report_document(run)
    assert {entry["by"] for entry in document["side_by_side"]} == {"judge", "attentive", "combined"}
    (combined,) = [entry for entry in document["side_by_side"] if entry["by"] == "combined"]
    assert outcome(combined["candidates"]["a"]) == (3, 0, 0, 0)
    assert {entry["judge"]: entry["flips"] for entry in document["order"]} == {"judge": 3, "attentive": 0}


def _fields(judge: Any) -> dict[str, Any]:
    return {name: getattr(judge, name) for name in judge.__struct_fields__}


def _with_judges(metric: Any, judges: Any) -> Any:
    return type(metric)(**{**_fields(metric), "judges": tuple(judges)})


def test_one_order_gives_the_first_side_s_share(project: Project) -> None:
    entry = side_by_side(judged(project, 10, "ab", "[[A>B]]", both_orders=False))
    assert entry["candidates"]["a"]["wins"] == entry["candidates"]["b"]["wins"] == 5
    assert (entry["first_side"]["first"], entry["first_side"]["second"]) == (10, 0)


def test_an_override_of_an_unsettled_comparison_counts(project: Project, alice: User) -> None:
    run = judged(project, 3, "ab", "[[A>B]]")
    judgement = run.judgements.order_by("position").first()
    assert judgement
    override_add(judgement=judgement, value="A>>B", reason="read", by=alice)
    document = report_document(Run.objects.get(pk=run.pk))
    assert document["candidates"]["a"]["quality"]["unsettled"] == 2
    assert {entry["by"] for entry in document["side_by_side"]} == {"judge"}
