"""Export of a run as a results file: each line's contents, and that a re-import gives the same report."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from evalsite.accounts.models import Project, User
from judging.core.metric_definition import JudgeModel, MetricDefinition
from judging.core.people.criteria import Criterion
from judging.core.results import JudgeCall, JudgementResult, ScriptResult, Verdict
from judging.core.values import Outcome
from judging.people import assignments, rating_export
from judging.people.adjudication import adjudicate
from judging.people.models import Evaluation
from judging.records.models import Run
from judging.records.overrides import override_add
from judging.reports.services import report_document
from judging.transfer.export.results import results_lines
from tests.judging.importing import imported, imports, results_file, verdict
from tests.judging.judged import JUDGE_URL, a_judged_run, failed, first_of, said
from tests.judging.people.make import PREFERENCE, give, make_evaluation
from tests.make import TEMPLATE, a_metric, a_version

pytestmark = pytest.mark.django_db


def lines_of(run: Run) -> list[dict[str, Any]]:
    return [json.loads(line) for line in results_lines(run)]


def read_back(
    run: Run, folder: Path, lines: Iterable[dict[str, Any] | str] = (), name: str = "r.jsonl"
) -> Run:
    file = results_file(folder, lines or lines_of(run), name)
    result, status = imports(run.version, file, f"{run.name} again")
    assert (status, result["refused"]) == (0, [])
    return Run.objects.get(pk=result["run"])


def figures(run: Run) -> dict[str, Any]:
    document = report_document(run)
    for cells in (*document["candidates"].values(), *document["people_candidates"].values()):
        for cell in cells.values():
            cell.pop("overridden", None)
    return {name: document[name] for name in ("rows", "candidates", "people_candidates", "pairs")}


def means(run: Run) -> dict[tuple[str, str], tuple[Any, ...]]:
    """The figures that do not depend on the metric's scale, which rating files do not contain."""
    result = ("mean", "se", "items", "responses", "scored", "no_score")
    cells = figures(run)["people_candidates"]
    return {
        (name, metric): tuple(cell[one] for one in result)
        for name, found in cells.items()
        for metric, cell in found.items()
    }


def two_judges(**more: Any) -> MetricDefinition:
    judges = tuple(
        JudgeModel(name=name, template=TEMPLATE, url=JUDGE_URL, model="m") for name in ("strict", "kind")
    )
    return MetricDefinition(name="quality", judges=judges, **more)


def both_said(first: int, second: int | None) -> JudgementResult:
    """The result of two judges; None for the second is an unparsed reply."""
    asked = tuple(
        JudgeCall(judge, 0, {}, {"content": f"I say {value}."}, None, [], 0.5)
        for judge, value in enumerate((first, second))
    )
    verdicts = tuple(
        Verdict(judge, 0, value, "" if value is not None else "nothing_offered")
        for judge, value in enumerate((first, second))
    )
    mean = (first + second) / 2 if second is not None else first
    return JudgementResult(Outcome("scored", mean), asked, verdicts, seconds=1.0)


def test_a_judge_s_verdict_is_a_line(project: Project) -> None:
    line = lines_of(a_judged_run(project, lambda _: said(7, content="Good. [[7]]"), rows=1))[0]
    about = {"line": 1, "model": "alpha", "response": 1, "metric": "quality", "min_score": 1, "max_score": 10}
    assert about.items() <= line.items()
    assert {
        "judge": "judge",
        "value": 7,
        "reasoning": "Good. [[7]]",
        "prompt_tokens": 12,
    }.items() <= line.items()
    assert "state" not in line


def test_where_there_is_no_value_the_line_says_why(project: Project) -> None:
    line = lines_of(a_judged_run(project, lambda _: failed("rate_limited", "slow down"), rows=1))[0]
    assert (line["value"], line["state"], line["reason"]) == (None, "error", "rate_limited: slow down")


def test_of_several_judges_each_has_a_line_and_all_together(project: Project) -> None:
    run = a_judged_run(project, lambda _: both_said(4, 7), metric=two_judges(), rows=1, models=("alpha",))
    found = [(line["judge"], line["value"], line.get("reasoning")) for line in lines_of(run)]
    assert found == [("strict", 4, "I say 4."), ("kind", 7, "I say 7."), ("combined", 5.5, None)]


def test_a_reviewer_s_value_is_next_to_the_judge_s(project: Project, bob: User) -> None:
    run = a_judged_run(project, lambda _: said(7), rows=1, models=("alpha",))
    override_add(judgement=first_of(run), value=2, reason="wrong", by=bob)
    assert [(line["judge"], line["value"]) for line in lines_of(run)] == [("judge", 7), ("combined", 2)]


@pytest.mark.parametrize("values", [(3, 8, 8, 5), (True, False, True, True), ("a", "b", "a", "a")])
def test_a_run_reads_back_to_the_same_report(
    project: Project, tmp_path: Path, values: tuple[Any, ...]
) -> None:
    results = [*map(said, values), said(None), failed()]
    run = a_judged_run(project, lambda place: results[place % 6], rows=11, answers=2)
    assert figures(read_back(run, tmp_path)) == figures(run)


def test_several_judges_read_back_to_the_same_report(project: Project, tmp_path: Path) -> None:
    results = [both_said(4, 7), both_said(6, None), both_said(9, 9), failed()]
    run = a_judged_run(project, lambda place: results[place % 4], rows=9, metric=two_judges())
    assert figures(read_back(run, tmp_path)) == figures(run)


def test_a_script_s_word_after_judges_reads_back_to_the_same_report(project: Project, tmp_path: Path) -> None:
    metric = a_metric(JUDGE_URL, postprocess="def postprocess(**kwargs): return 1")
    result = said(7)
    scripted = JudgementResult(Outcome("scored", 1), result.calls, result.verdicts, (ScriptResult(1),))
    run = a_judged_run(project, lambda place: scripted if place % 3 else failed(), rows=5, metric=metric)
    assert figures(read_back(run, tmp_path)) == figures(run)


def test_overrides_read_back_to_the_same_report(project: Project, bob: User, tmp_path: Path) -> None:
    run = a_judged_run(project, rows=5)
    for one in run.judgements.order_by("position")[:3]:
        override_add(judgement=one, value=2, reason="wrong", by=bob)
    assert figures(read_back(run, tmp_path)) == figures(run)


def test_an_imported_run_reads_back_to_the_same_lines(project: Project, tmp_path: Path) -> None:
    version = a_version(project, rows=3)
    run = imported(
        version,
        tmp_path,
        verdict(
            reasoning="Why.", cost=0.5, seconds=2, at="2026-05-31T12:00:00+00:00", min_score=0, max_score=20
        ),
        verdict(2, value=None, state="no_score", reason="elsewhere: no idea"),
        verdict(judge="claude", repeat=2, value=9),
        verdict(rater="R1", value=8, drawn_with=0.5),
        verdict(metric="better", value="A>>B", other_model="beta", shown_first=2),
    )
    again = read_back(run, tmp_path)
    assert lines_of(again) == lines_of(run)
    assert figures(again) == figures(run)


CRITERIA = [
    PREFERENCE,
    Criterion(name="mark", scale="five"),
    Criterion(name="safe", scale="yes_no"),
    Criterion(name="kind", scale="categories", categories=("good", "好，的")),
]


def rate(evaluation: Evaluation, rater: User, *, extra: int = 0) -> None:
    for place, one in enumerate(assignments.claim(evaluation=evaluation, user=rater, count=10)):
        value = ("A>>B", "A=B", "both_bad", "B>A")[(place + extra) % 4]
        marks = (value, (place + extra) % 5 + 1, bool(place % 2), ("good", "好，的")[place % 2])
        give(one, *marks[: len(CRITERIA)], comment="I see, =1+1")


@pytest.fixture
def rated(project: Project, rita: User, alice: User, bob: User) -> Evaluation:
    """An evaluation of four items, of which one is adjudicated."""
    evaluation = make_evaluation(project, [rita], rows=4, criteria=CRITERIA)
    rate(evaluation, rita)
    item = evaluation.items.order_by("number")[0]
    adjudicate(item=item, values={0: "B>A", 1: 5, 2: True, 3: "good"}, reason="Facts.", by=bob)
    return evaluation


def test_a_rater_s_verdict_is_a_line(rated: Evaluation) -> None:
    lines = [line for line in lines_of(rated.run) if line["metric"] == "preference" and "role" not in line]
    assert {line["rater"] for line in lines} == {"R1"}
    assert {line["other_model"] for line in lines} == {"beta"}
    assert {line["shown_first"] for line in lines} <= {1, 2}


def test_a_human_evaluation_reads_back_to_the_same_report(rated: Evaluation, tmp_path: Path) -> None:
    assert figures(read_back(rated.run, tmp_path)) == figures(rated.run)


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_its_export_of_ratings_reads_back_too(rated: Evaluation, tmp_path: Path, form: str) -> None:
    make = rating_export.jsonl_lines if form == "jsonl" else rating_export.csv_lines
    text = b"".join(make(rated)).decode("utf-8-sig")
    again = read_back(rated.run, tmp_path, [text], f"ratings.{form}")
    assert means(again) == means(rated.run)


def test_a_reference_that_people_rated_reads_back(project: Project, rita: User, tmp_path: Path) -> None:
    version = a_version(project, rows=3)
    for row in version.data_rows.all():
        row.raw = json.dumps(json.loads(row.raw) | {"ref_answer": "as it should be"})
        row.save()
    evaluation = make_evaluation(project, [rita], version=version, scheme="reference")
    for one in assignments.claim(evaluation=evaluation, user=rita, count=10):
        give(one, "A>B")
    assert "@reference" in {line.get("other_model") or line["model"] for line in lines_of(evaluation.run)} | {
        line["model"] for line in lines_of(evaluation.run)
    }
    assert figures(read_back(evaluation.run, tmp_path)) == figures(evaluation.run)
    ratings = b"".join(rating_export.jsonl_lines(evaluation)).decode()
    result, _status = imports(version, results_file(tmp_path, [ratings]), "ratings")
    assert (result["refused"], result["people"]) == ([], evaluation.run.judgements.count())
