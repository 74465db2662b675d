"""The `report` management command."""

from __future__ import annotations

import json
import re
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from datasets.models import Row
from evalsite.accounts.models import Project
from judging.records.models import Run
from judging.reports.labels import decimal, interval
from judging.reports.services import report_document
from judging.reports.text_report import columns, plain_report
from tests.judging import judged
from tests.judging.reports.cast import a_judged_run
from tests.make import a_version

pytestmark = pytest.mark.django_db


COUNTS = (
    *("items", "responses", "scored", "no_score", "unparsed", "unsettled", "errors", "not_run"),
    "overridden",
)
EMPTY_CELL = {
    **dict.fromkeys(COUNTS, 0),
    **dict.fromkeys(("mean", "ci_low", "ci_high", "low_bound", "high_bound", "kind")),
    "notes": [],
}
EMPTY = {
    **{
        "run": "r",
        "run_id": 1,
        "state": "done",
        "dataset": "d",
        "version": 1,
        "rows": 4,
        "provisional": False,
    },
    "left_out": {
        **dict.fromkeys(("bad_rows", "not_read_to_its_end", "rows_not_drawn", "rows_without_answers")),
        "pairs_without_answers": 0,
        "excluded_by": [],
    },
    "pairs": [],
    "cost": dict.fromkeys(("requests", "retries", "failed_requests", "prompt_tokens", "completion_tokens"), 0)
    | {"wall_seconds": None},
}


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


def test_judges_and_slices_are_in_the_text(project: Project) -> None:
    run = judged.a_judged_run(project, lambda place: judged.said(10 if place % 2 else 4))
    text = said(str(run.pk), "--by", "turns")
    assert "\n\nJudge health\n" in text
    heading = "By turns (* differs from the rest: permutation test, Benjamini–Hochberg, 0.05)"
    assert f"\n\n{heading}\n  turns    beta  alpha  items\n" in text
    assert "Side by side" not in text
    assert "Raters" not in text


def test_every_section_has_its_text_and_names_are_as_they_are() -> None:
    both = {"candidate": "a<b> & c", "metric": "m", "judge": "gpt"}
    bounds = dict.fromkeys(("ci_low", "ci_high", "kappa_low", "kappa_high", "bias_low", "bias_high"))
    people = {"items": 4, "agreement_with_others": 0.5, "seconds": 3.0}
    raters = {
        "alpha": 0.7,
        "percent": 0.6,
        "ac1": 0.5,
        "ac2": None,
        "labels": 2,
        "labels_offered": True,
        "fleiss": None,
        "level": "ordinal",
        "pairs": [],
    }
    agreement = dict.fromkeys(("kappa", "alpha", "kendall", "pearson", "mean_absolute_difference")) | {
        "exact": 0.6,
        "kappa_weighted": 0.71,
        "spearman": 0.7,
        "bias": 0.3,
        "human": None,
        "items": 4,
    }
    corrected = {"people_mean": 3.0, "labelled": 4, "judge_mean": 4.0, "judged": 9, "value": 3.2, "halve": 5}
    text = plain_report(
        EMPTY
        | {
            "candidates": {"a<b> & c": {"m": EMPTY_CELL}},
            "judges": [both | bounds | agreement | {"against": "people", "labels": [], "confusion": []}],
            "planted": [both | {"answers": 2, "mean": 9.0, "others_mean": 4.5}],
            "corrected": [both | bounds | corrected | {"refused": None}],
            "raters": [both | bounds | raters | {"each": {"Ann": people}, "items": 4}],
        }
    )
    flat = re.sub(" +", " ", text)
    assert "\n gpt people 4 0.600 0.71 " in flat
    assert "\n a<b> & c 2 9.000 4.500\n" in flat
    assert "Corrected by people (PPI++)\n" in text
    carried = [both | bounds | corrected | {"refused": None, "source": "licence"}]
    assert "Corrected by people (the judge's errors on the test of its licence)\n" in plain_report(
        EMPTY | {"candidates": {"a": {"m": EMPTY_CELL}}, "corrected": carried}
    )
    assert "α (ordinal) 0.70; Same verdict 60 % on 4 items that several rated; AC1 0.50 " in flat
    assert "&lt;" not in text


def test_columns_are_below_each_other_whatever_the_script() -> None:
    assert columns([["模型甲", "1"], ["beta", "22"]]) == "  模型甲   1\n  beta    22"


def test_an_unknown_run_is_refused_in_a_sentence() -> None:
    with pytest.raises(CommandError, match="There is no run called nothing") as refused:
        said("nothing")
    assert refused.value.returncode == 2


def test_a_report_changes_nothing(run: Run) -> None:
    before = Run.objects.values().get(pk=run.pk)
    said("first look")
    assert Run.objects.values().get(pk=run.pk) == before


# --- by fields, and requirements -----------------------------------------------------------------------------------


def left_with(*arguments: str) -> tuple[int, str, str]:
    """Run `report`; return exit status, stdout and stderr."""
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
        ('"beta" - "模型甲" quality >= -8', 0, "Met: "),
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
        (
            ("--by", "subject"),
            "No row has a field 'subject'. The fields are: turns, length, language, format.",
        ),
    ],
)
def test_what_the_run_does_not_have_is_refused_in_a_sentence(
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
