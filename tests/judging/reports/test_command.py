"""manage.py report."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from datasets.models import Row
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


# --- by fields, and requirements -----------------------------------------------------------------------------------


def left_with(*arguments: str) -> tuple[int, str, str]:
    """Exit status, and what it wrote to either side."""
    out, err = StringIO(), StringIO()
    try:
        call_command("report", *arguments, stdout=out, stderr=err)
    except SystemExit as left:
        return int(str(left.code)), out.getvalue(), err.getvalue()
    return 0, out.getvalue(), err.getvalue()


@pytest.mark.parametrize(
    ("requirement", "status", "begins"),
    [
        ("模型甲 quality >= 3", 0, "Met: "),
        ('"beta" quality >= 50', 3, "Not met: "),
        ("beta quality >= 7", 4, "Undecided: "),
        ('"beta" - "模型甲" quality >= 0', 0, "Met: "),
    ],
)
def test_a_requirement_gives_the_exit_status_and_a_sentence(
    run: Run, requirement: str, status: int, begins: str
) -> None:
    left, text, _ = left_with("first look", "--require", requirement)
    assert left == status
    assert text.splitlines()[-1].startswith(begins)


def test_the_worst_of_several_requirements_counts(run: Run) -> None:
    both = ("--require", "beta quality >= 7", "--require", "beta quality >= 50")
    assert left_with("first look", *both)[0] == 3


def test_with_json_the_sentences_go_to_standard_error(run: Run) -> None:
    status, out, err = left_with("first look", "--json", "--require", "beta quality >= 50")
    assert (status, json.loads(out)["run"]) == (3, "first look")
    assert err.startswith("Not met: beta quality >= 50")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--require", "beta quality > 7"), "can't be read"),
        (("--require", "gamma quality >= 7"), "no candidate called 'gamma'"),
        (("--by", "subject"), "No row has a field 'subject'. The fields are: turns, length."),
    ],
)
def test_what_the_run_does_not_have_is_refused_with_a_sentence(
    run: Run, arguments: tuple[str, str], says: str
) -> None:
    with pytest.raises(CommandError, match=says) as refused:
        said("first look", *arguments)
    assert refused.value.returncode == 2


def test_by_a_field_adds_the_cells_of_its_values(run: Run) -> None:
    rows = Row.objects.filter(version=run.version)
    for row in rows:
        subject = "art" if row.line < 4 else ["maths", 1]
        Row.objects.filter(pk=row.pk).update(raw=json.dumps(json.loads(row.raw) | {"subject": subject}))
    document = json.loads(said("first look", "--json", "--by", "subject", "--by", "turns"))
    found = document["breakdown"]
    assert (found["field"], list(found["values"])) == ("subject", ['["maths", 1]', "art"])
    assert found["values"]["art"]["beta"]["quality"]["items"] == 3
    assert {one["candidate"] for one in found["comparisons"]} == {"模型甲", "beta"}
    assert [one["field"] for one in document["breakdowns"]] == ["subject", "turns"]
    assert list(document["breakdowns"][1]["values"]) == ["1"]


def test_without_a_field_there_is_no_breakdown(run: Run) -> None:
    assert "breakdown" not in json.loads(said("first look", "--json"))
