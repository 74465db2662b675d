"""Checklists leave as results files, a line for each criterion, and come in again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from evalsite.accounts.models import Project
from judging.core.checklists import checklist_from
from judging.core.judges.scripted import ScriptedJudge
from judging.core.metric_definition import JudgeModel
from judging.filters.conditions import matching
from judging.filters.judgement_filter import Filters
from judging.records.models import Run
from judging.reports.figures import current_figures
from judging.transfer.export.results import results_lines
from tests.judging.checklists.helpers import RUBRIC, TEMPLATE, a_checklist, with_rubrics
from tests.judging.checklists.test_runs import attentive
from tests.judging.importing import imported, imports, results_file
from tests.judging.working import work
from tests.make import a_run

pytestmark = pytest.mark.django_db(transaction=True)


def exported(run: Run) -> list[dict[str, object]]:
    return [json.loads(line) for line in results_lines(run)]


def test_a_line_names_its_criterion_and_comes_in_again(project: Project, tmp_path: Path) -> None:
    with ScriptedJudge(attentive) as judge:
        run = work(a_run(with_rubrics(project, [RUBRIC] * 3), a_checklist(judge.url)))
    lines = exported(run)
    assert [(line["criterion"], line["value"]) for line in lines[:3]] == [
        ("1", True),
        ("2", True),
        ("3", False),
    ]
    assert (len(lines), [line["state"] for line in lines if line["value"] is None]) == (18, ["unparsed"])
    again = imported(run.version, tmp_path, *lines)
    assert (again.total, again.scored, again.unparsed) == (6, 5, 1)
    cells, before = (current_figures(each).figures.report["candidates"] for each in (again, run))
    for name in ("mean", "ci_low", "ci_high", "criteria", "tags"):
        assert cells["beta"]["quality"][name] == before["beta"]["quality"][name]
    assert exported(again)[0]["reasoning"] == "I looked.\nVerdict: met"


def test_what_no_rubric_has_or_contradicts_is_refused(project: Project, tmp_path: Path) -> None:
    version = with_rubrics(project, [RUBRIC], models=["alpha"])
    line = {"line": 1, "model": "alpha", "metric": "c", "rater": "ada", "value": True}
    lines = [line | {"criterion": "1"}, line | {"criterion": "9"}, line | {"criterion": "1", "value": False}]
    lines += [line | {"criterion": "2"}, line | {"criterion": "2", "rater": "ben"}]
    document, _status = imports(version, results_file(tmp_path, lines))
    assert [entry["code"] for entry in document["refused"]] == ["unknown_criterion", "contradicts"]
    run = Run.objects.get(pk=document["run"])
    assert (document["judgements"], document["people"], run.total) == (3, 3, 2)
    checklist = checklist_from(run.judgements.order_by("position")[0].checklist)
    assert checklist is not None
    assert [criterion.met for criterion in checklist.criteria] == [True, True, None]


def test_people_who_disagree_are_named_in_the_criterion_health(project: Project, tmp_path: Path) -> None:
    version = with_rubrics(project, [RUBRIC], models=["alpha"])
    line = {"line": 1, "model": "alpha", "metric": "c", "criterion": "1"}
    said = [line | {"rater": "ada", "value": True}, line | {"rater": "ben", "value": False}]
    run = imported(version, tmp_path, *said)
    (checklists,) = current_figures(run).figures.report["checklists"]
    assert [(entry["criterion"], entry["people_disagree"]) for entry in checklists["health"]] == [
        ("names a dose", 1)
    ]


def test_each_judge_s_own_verdicts_leave_beside_the_combined_ones(project: Project, tmp_path: Path) -> None:
    with ScriptedJudge("Verdict: met") as kind, ScriptedJudge("Verdict: not met") as strict:
        two = [JudgeModel(name=name, url=judge.url, model="m", template=TEMPLATE) for name, judge in
               (("kind", kind), ("strict", strict))]  # fmt: skip
        definition = replace(a_checklist(kind.url), judges=tuple(two))
        run = work(a_run(with_rubrics(project, [RUBRIC], models=["alpha"]), definition))
    lines = exported(run)
    assert [
        (line["judge"], line["criterion"], line["value"]) for line in lines if line["criterion"] == "1"
    ] == [
        ("kind", "1", True),
        ("strict", "1", False),
        ("combined", "1", None),
    ]
    assert len(lines) == 9
    again = imported(run.version, tmp_path, *lines)
    cells = [current_figures(each).figures.report["candidates"]["alpha"]["quality"] for each in (again, run)]
    assert cells[0]["criteria"] == cells[1]["criteria"]
    assert [cell["scored"] for cell in cells] == [0, 0]


def test_judges_asked_at_once_leave_with_a_line_for_each_criterion(project: Project) -> None:
    reply = (
        '{"criteria": [{"id": "1", "reasoning": "a", "verdict": "met"}, {"id": "2", "verdict": "not met"}]}'
    )
    with ScriptedJudge(reply) as judge:
        metric = a_checklist(judge.url, at_once=True)
        template = "{% for each in criteria %}{{ each.id }} {{ each.text }} {% endfor %}"
        judge_model = replace(metric.judges[0], repeats=2, template=template)
        metric = replace(metric, judges=(judge_model,))
        run = work(a_run(with_rubrics(project, [RUBRIC], models=["alpha"]), metric))
    lines = [(line["judge"] == "combined", line["criterion"], line["value"]) for line in exported(run)]
    assert lines == [(False, "1", True), (False, "2", False), (False, "3", None)] * 2 + [
        (True, "1", True),
        (True, "2", False),
        (True, "3", None),
    ]


def test_disputed_criteria_lead_to_what_the_report_counts(project: Project, tmp_path: Path) -> None:
    version = with_rubrics(project, [RUBRIC] * 2, models=["alpha"])
    line = {"line": 1, "model": "alpha", "metric": "c", "criterion": "1"}
    said = [line | {"rater": "ada", "value": True}, line | {"rater": "ben", "value": False}]
    said += [line | {"rater": rater, "value": True, "line": 2} for rater in ("ada", "ben")]
    said += [line | {"judge": "j", "value": False, "line": number} for number in (1, 2)]
    run = imported(version, tmp_path, *said)

    def rows(dispute: str) -> list[int]:
        matches = matching(run, Filters(further={"disputed": f"{dispute}:names a dose"}))
        return sorted(set(matches.values_list("row__line", flat=True)))

    assert (rows("people"), rows("judge"), rows("nobody")) == ([1], [2], [])


def test_a_number_that_is_no_id_is_not_taken_for_one(project: Project, tmp_path: Path) -> None:
    named = [{"criterion": "first", "id": "1"}, {"criterion": "second", "id": "2"}]
    version = with_rubrics(project, [named, ["other"]], models=["alpha"])
    line = {"model": "alpha", "metric": "c", "criterion": "1", "judge": "j", "value": True}
    run = imported(version, tmp_path, line | {"line": 1}, line | {"line": 2})
    matches = matching(run, Filters(further={"criterion": "met:1"}))
    assert [judgement.row.line for judgement in matches] == [1]
