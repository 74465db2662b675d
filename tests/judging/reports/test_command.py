"""manage.py report."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from evalsite.accounts.models import Project
from judging.reports.labels import decimal, interval
from judging.reports.plain import columns
from judging.reports.services import report_document
from judging.runs.models import Run
from tests.judging.reports.cast import a_judged_run
from tests.make import a_version

pytestmark = pytest.mark.django_db


@pytest.fixture
def run(project: Project) -> Run:
    version = a_version(project, rows=5, models=("模型甲", "beta"))
    return a_judged_run(version, lambda one: one.row.line + len(one.candidate.name), name="first look")


def said(*arguments: str) -> str:
    out = StringIO()
    call_command("report", *arguments, stdout=out)
    return out.getvalue()


@pytest.mark.parametrize("by", ["name", "pk"])
def test_json_is_the_document_of_the_run_by_name_or_number(run: Run, by: str) -> None:
    assert json.loads(said(str(getattr(run, by)), "--json")) == json.loads(json.dumps(report_document(run)))


def test_the_text_holds_the_same_figures(run: Run) -> None:
    text = said("first look")
    for metrics in report_document(run)["candidates"].values():
        cell = metrics["quality"]
        assert f"{decimal(cell['mean'])}  {interval(cell['ci_low'], cell['ci_high'])}" in text


def test_columns_stand_below_each_other_whatever_the_script() -> None:
    assert columns([["模型甲", "1"], ["beta", "22"]]) == "  模型甲   1\n  beta    22"


def test_an_unknown_run_is_refused_with_a_sentence() -> None:
    with pytest.raises(CommandError, match="There is no run called nothing") as refused:
        said("nothing")
    assert refused.value.returncode == 2


def test_a_report_changes_nothing(run: Run) -> None:
    before = Run.objects.values().get(pk=run.pk)
    said("first look")
    assert Run.objects.values().get(pk=run.pk) == before
