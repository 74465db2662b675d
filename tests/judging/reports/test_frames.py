"""A run's judgements as a data frame: its own, the verdicts behind them, imported and human ones."""

from __future__ import annotations

import json
from typing import Any

import pytest

from datasets.models import Response, Row, Version
from evalsite.accounts.models import Project, User
from judging.core.metric_definition import JudgeModel, MetricDefinition
from judging.core.results import JudgementResult, Verdict
from judging.core.values import outcome_of_value
from judging.people.models import Evaluation, EvaluationRater
from judging.records.models import IMPORTED, PEOPLE, Judgement, Run, VerdictSource
from judging.records.overrides import override_add
from judging.reports import frames
from judging.reports.frames import features_of_answers, run_frame
from judging.reports.services import report_document
from tests.judging.judged import JUDGE_URL, judge
from tests.make import a_metric, a_run, a_version

pytestmark = pytest.mark.django_db


def two_judges(**changes: Any) -> MetricDefinition:
    judges = [
        JudgeModel(name=name, url=JUDGE_URL, model=name, template="{{ response.content }}", **changes)
        for name in ("qwen", "glm")
    ]
    return MetricDefinition(name="quality", judges=tuple(judges))


def result_of(value: Any, *verdicts: Verdict, **more: Any) -> JudgementResult:
    return JudgementResult(outcome_of_value(value), verdicts=verdicts, **more)


def judged(project: Project, metric: MetricDefinition, result: JudgementResult, rows: int = 3) -> Run:
    return judge(a_run(a_version(project, rows=rows), metric), lambda _place: result)


def parts(run: Run, **where: Any) -> list[tuple[Any, ...]]:
    """(author, source, order, repeat, value, main) of each verdict on alpha's answer to the first row."""
    frame = run_frame(run)
    mine = frame[(frame["row"] == 1) & (frame["candidate"] == "alpha")]
    return list(mine[["by", "source", "order", "repeat", "value", "main"]].itertuples(index=False, name=None))


def test_one_judge_s_judgement_is_one_row_by_its_name(project: Project) -> None:
    run = judged(project, a_metric(JUDGE_URL), result_of(7, Verdict(0, 0, 7)))
    assert parts(run) == [("judge", "judge", "first", 1, 7.0, True)]


def test_several_judges_lead_to_their_verdicts(project: Project) -> None:
    run = judged(project, two_judges(), result_of(6, Verdict(0, 0, 8), Verdict(1, 0, 4)))
    assert sorted(parts(run)) == [
        ("combined", "combined", "first", 1, 6.0, True),
        ("glm", "judge", "first", 1, 4.0, False),
        ("qwen", "judge", "first", 1, 8.0, False),
    ]
    document = report_document(run)
    assert document["candidates"]["alpha"]["quality"]["mean"] == 6
    assert [(one["judge"], one["against"]) for one in document["judges"]] == [("glm", "qwen")]


def test_repeats_are_numbered_from_one(project: Project) -> None:
    run = judged(project, a_metric(JUDGE_URL, repeats=2), result_of(6, Verdict(0, 0, 8), Verdict(0, 1, 4)))
    assert [one[3:] for one in parts(run) if one[0] == "judge"] == [(1, 8.0, False), (2, 4.0, False)]
    assert [(one["judge"], one["items"]) for one in report_document(run)["repeats"]] == [("judge", 6)]


def test_both_orders_of_one_judge_are_behind_what_they_come_to(project: Project) -> None:
    metric = a_metric(JUDGE_URL, parse="comparison", both_orders=True, min_score=1, max_score=5)
    verdicts = Verdict(0, 0, 5), Verdict(0, 0, 1, order="swapped"), Verdict(0, 0, 3, order="both", flip=True)
    run = judged(project, metric, result_of(3, *verdicts))
    assert sorted(one[2:] for one in parts(run)) == [
        ("both", 1, 3.0, True), ("first", 1, 5.0, False), ("swapped", 1, 1.0, False),
    ]  # fmt: skip
    document = report_document(run)
    assert [(one["pairs"], one["flips"]) for one in document["order"]] == [(6, 6)]
    assert [one["by"] for one in document["side_by_side"]] == ["judge"]
    assert document["side_by_side"][0]["candidates"]["alpha"]["ties"] == 3


def test_a_verdict_that_could_not_be_read_is_unparsed(project: Project) -> None:
    run = judged(
        project, two_judges(), result_of(8, Verdict(0, 0, 8), Verdict(1, 0, None, "nothing_offered"))
    )
    frame = run_frame(run)
    assert set(frame.loc[frame["by"] == "glm", "state"]) == {"unparsed"}


def test_a_script_s_judgement_is_the_script_s(project: Project) -> None:
    metric = a_metric(JUDGE_URL, postprocess="def postprocess(**kwargs):\n    return 1\n")
    run = judged(project, metric, result_of(0.5, Verdict(0, 0, 5)))
    assert sorted(one[:2] + one[4:] for one in parts(run)) == [
        ("judge", "judge", 5.0, False), ("script", "script", 0.5, True),
    ]  # fmt: skip


def test_an_override_is_the_reviewer_s_and_the_judge_s_value_stays_behind_it(
    project: Project, alice: User
) -> None:
    run = judged(project, a_metric(JUDGE_URL), result_of(7, Verdict(0, 0, 7)))
    judgement = run.judgements.get(row__line=1, candidate__name="alpha")
    override_add(judgement=judgement, value=2, reason="wrong", by=alice)
    assert sorted(one[:2] + one[4:] for one in parts(run)) == [
        ("judge", "judge", 7.0, False), ("override", "override", 2.0, True),
    ]  # fmt: skip


def test_two_judges_of_one_name_have_different_names_in_figures(project: Project) -> None:
    (qwen, _) = two_judges().judges
    metric = MetricDefinition(name="quality", judges=(qwen, qwen))
    run = judged(project, metric, result_of(6, Verdict(0, 0, 8), Verdict(1, 0, 4)))
    assert {one[0] for one in parts(run)} == {"combined", "qwen", "qwen #2"}


# --- human and imported verdicts -----------------------------------------------------------------------------------


def given(run: Run, row: int, candidate: str, value: Any, **more: Any) -> Judgement:
    """Store a verdict directly in the database."""
    response = Response.objects.get(
        row__version=run.version, row__line=row, candidate__name=candidate, number=1
    )
    other = more.pop("other", None)
    if other is not None:
        more["other_response"] = Response.objects.get(row=response.row_id, candidate__name=other, number=1)
    outcome = outcome_of_value(value)
    return Judgement.objects.create(
        run=run, position=run.judgements.count(), run_metric=run.metrics.get(), row_id=response.row_id,
        candidate_id=response.candidate_id, response=response, state=outcome.state, value=outcome.value_json,
        score=outcome.score, **more,
    )  # fmt: skip


def run_of_kind(version: Version, kind: str, name: str = "quality") -> Run:
    run = a_run(version, MetricDefinition(name=name))
    Run.objects.filter(pk=run.pk).update(kind=kind, state="finished", rows=version.rows)
    return Run.objects.get(pk=run.pk)


def imported(run: Run, kind: str, name: str) -> VerdictSource:
    return VerdictSource.objects.get_or_create(run=run, kind=kind, name=name)[0]


@pytest.fixture
def version(project: Project) -> Version:
    return a_version(project, rows=4)


def test_imported_verdicts_have_their_author_and_all_that_is_known_of_them(version: Version) -> None:
    run = run_of_kind(version, IMPORTED)
    given(run, 1, "alpha", 7, source=imported(run, "judge", "gpt-4"), repeat=2, seconds=1.5)
    given(run, 1, "alpha", 5, source=imported(run, "rater", "expert_1"), drawn_with=0.5)
    given(run, 2, "alpha", "A>B", source=imported(run, "judge", "gpt-4"), other="beta", shown_first=2)
    rows = run_frame(run).set_index(["row", "by"])
    assert rows.loc[(1, "gpt-4"), ["source", "repeat", "seconds"]].tolist() == ["judge", 2, 1.5]
    assert rows.loc[(1, "expert_1"), ["source", "drawn_with"]].tolist() == ["rater", 0.5]
    assert rows.loc[(2, "gpt-4"), ["other", "other_response", "label", "shown_first"]].tolist() == [
        "beta",
        1,
        "A>B",
        2,
    ]


def test_an_imported_run_has_judges_and_people_in_one_report(version: Version) -> None:
    run = run_of_kind(version, IMPORTED)
    for row, (judge_says, people_say) in enumerate(((7, 6), (5, 5), (9, 8), (3, 4)), 1):
        given(run, row, "alpha", judge_says, source=imported(run, "judge", "gpt-4"))
        for name in ("Ann", "Bob"):
            given(run, row, "alpha", people_say, source=imported(run, "rater", name))
    document = report_document(run)
    assert document["candidates"]["alpha"]["quality"]["mean"] == 6
    assert document["people_candidates"]["alpha"]["quality"]["mean"] == 5.75
    assert [(one["judge"], one["against"], one["items"]) for one in document["judges"]] == [
        ("gpt-4", "people", 4)
    ]
    assert [(one["raters"], one["alpha"]) for one in document["raters"]] == [(2, 1.0)]
    json.dumps(document, allow_nan=False)


def rated(version: Version, rita: User, name: str = "quality") -> Run:
    """A human evaluation in which Rita rated the first two rows."""
    run = run_of_kind(version, PEOPLE, name)
    evaluation = Evaluation.objects.create(run=run)
    EvaluationRater.objects.create(evaluation=evaluation, user=rita, pseudonym="R1")
    for row in (1, 2):
        given(run, row, "alpha", row + 3, rater=rita, drawn_with=0.5, seconds=8)
    return run


def test_raters_are_called_by_their_pseudonym(version: Version, rita: User) -> None:
    run = rated(version, rita)
    assert set(run_frame(run)["by"]) == {"R1"}
    document = report_document(run)
    assert document["raters"][0]["each"] == {"R1": {"items": 2, "agreement_with_others": None, "seconds": 8}}
    assert document["candidates"]["alpha"]["quality"]["mean"] == 4.5


def test_features_are_of_the_run_s_answers(project: Project) -> None:
    run = judged(project, a_metric(JUDGE_URL), result_of(7, Verdict(0, 0, 7)))
    features = features_of_answers(run)
    assert len(features) == 6
    assert features.loc[("beta", 3, 1), "length"] == len("beta says 3.1")


def test_features_are_of_the_references_too_where_answers_are_compared_with_them(project: Project) -> None:
    metric = a_metric(JUDGE_URL, parse="comparison", min_score=1, max_score=5)
    version = a_version(project, rows=2)
    for row in Row.objects.filter(version=version):
        Row.objects.filter(pk=row.pk).update(raw=json.dumps(json.loads(row.raw) | {"ref_answer": "**yes**"}))
    run = judge(a_run(version, metric), lambda _place: result_of(4, Verdict(0, 0, 4)))
    features = features_of_answers(run)
    assert features.loc[("@reference", 2, 1)].tolist() == [7, 0, 0, 1]
    assert features.loc[("alpha", 2, 1), "length"] == len("alpha says 2.1")


def test_of_a_large_run_the_answers_of_some_rows_are_measured(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = judged(project, a_metric(JUDGE_URL), result_of(7, Verdict(0, 0, 7)), rows=9)
    monkeypatch.setattr(frames, "MOST_TEXTS", 6)
    features = features_of_answers(run)
    assert sorted({line for _, line, _ in features.index}) == [3, 6, 9]
    assert len(features) == 6


def test_of_a_large_run_the_single_verdicts_of_some_rows_are_read(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = judged(project, two_judges(), result_of(6, Verdict(0, 0, 8), Verdict(1, 0, 4)), rows=6)
    monkeypatch.setattr(frames, "MOST_OPENED", 6)
    frame = run_frame(run)
    assert set(frame.loc[~frame["main"], "row"]) == {2, 4, 6}
    assert set(frame.loc[frame["main"], "row"]) == set(range(1, 7))
