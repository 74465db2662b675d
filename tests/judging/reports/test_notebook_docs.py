"""The code in docs/notebook.md runs and gives the report's figures."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalsite.accounts.models import Project, User
from judging.core.people.criteria import Criterion
from judging.records.models import Run
from judging.reports import figures
from tests.judging.judged import a_judged_run, failed, said
from tests.judging.people.make import make_evaluation, rate_all

DOCS = Path(__file__).parents[3] / "docs"
ENGLISH, CHINESE = (
    re.findall(r"```python\n(.*?)```", (DOCS / name).read_text(encoding="utf-8"), re.DOTALL)
    for name in ("notebook.md", "notebook.zh.md")
)

CLIENT_CELLS = 3  # the cells before, which tests/processes/test_client.py runs


@pytest.fixture
def run(project: Project) -> Run:
    return a_judged_run(project, lambda place: said(place % 7 + 1) if place else failed(), rows=6)


@pytest.fixture
def run_cells(monkeypatch: pytest.MonkeyPatch) -> Callable[[], dict[str, Any]]:
    """Runs all cells over the newest run, and returns their variables."""
    monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "")  # restored after the test

    def variables_after() -> dict[str, Any]:
        variables: dict[str, Any] = {}
        for cell in ENGLISH[CLIENT_CELLS:]:
            exec(cell, variables)
        return variables

    return variables_after


@pytest.fixture
def notebook(run: Run, run_cells: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    return run_cells()


def test_the_notebook_has_the_report_of_the_pages(run: Run, notebook: dict[str, Any]) -> None:
    shown = figures.current_figures(run).figures.report
    for cells in shown["candidates"].values():
        for cell in cells.values():
            del cell["overridden"]
    del shown["planted"], shown["licences"]  # from the database, like overrides
    del shown["ranking"]  # computed from the rest
    assert notebook["document"] == shown


@pytest.mark.django_db
def test_agreement_in_the_notebook_counts_the_labels_to_choose_from(
    project: Project, rita: User, ravi: User, run_cells: Callable[[], dict[str, Any]]
) -> None:
    kind = Criterion(name="kind", scale="categories", categories=("fact", "opinion", "neither"))
    criteria = [Criterion(name="quality", scale="five"), kind]
    evaluation = make_evaluation(
        project, [rita, ravi], rows=3, overlap=2, side_by_side=False, criteria=criteria
    )
    for user, label in ((rita, "fact"), (ravi, "opinion")):
        rate_all(evaluation, user, 4, label)
    _quality, labels = run_cells()["document"]["raters"]
    assert (labels["labels"], labels["labels_offered"]) == (3, True)


def test_estimates_of_the_notebook_are_those_of_the_report(notebook: dict[str, Any]) -> None:
    cells = notebook["document"]["candidates"]
    for name, estimate in notebook["estimates"].items():
        cell = cells[name][notebook["metric"]]
        assert (estimate.mean, estimate.se, estimate.low) == (cell["mean"], cell["se"], cell["ci_low"])


def test_the_difference_of_the_notebook_is_that_of_the_report(notebook: dict[str, Any]) -> None:
    (pair,) = notebook["document"]["pairs"]
    difference = notebook["difference"]
    assert (difference.estimate.mean, difference.estimate.low, difference.p, difference.wins) == (
        pair["difference"], pair["ci_low"], pair["p"], pair["wins"],
    )  # fmt: skip


def test_every_column_of_the_table_is_explained(notebook: dict[str, Any]) -> None:
    page = (DOCS / "notebook.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `(\w+)` \| (\w+) \|", page, re.MULTILINE) == [
        (name, str(dtype)) for name, dtype in notebook["frame"].dtypes.items()
    ]


def test_both_languages_have_the_same_code() -> None:
    assert ENGLISH == CHINESE
