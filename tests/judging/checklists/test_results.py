"""Checklists leave as results files, a line for each criterion, and come in again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalsite.accounts.models import Project
from judging.core.checklists import checklist_from
from judging.core.judges.scripted import ScriptedJudge
from judging.records.models import Run
from judging.reports.figures import current_figures
from judging.transfer.export.results import results_lines
from tests.judging.checklists.helpers import RUBRIC, a_checklist, with_rubrics
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
