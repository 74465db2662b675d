"""Two runs compared whose metric compares candidates: each candidate's win rate, and why it differs."""

from __future__ import annotations

import re
from typing import Any

import pytest

from evalsite.accounts.models import Project, User
from judging.core.judges.scripted import Received, ScriptedJudge
from judging.core.pairs import share_of_a
from judging.records.models import Run
from judging.records.overrides import override_add
from judging.reports.comparison.services import comparison_document
from judging.reports.services import report_document
from tests.conftest import ClientOf
from tests.judging.working import work
from tests.make import a_comparison, a_run, a_version

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def version(project: Project) -> Any:
    return a_version(project, 4, tuple("abc"))


def judged(version: Any, says: Any, **metric: Any) -> Run:
    with ScriptedJudge(reply=says) as judge:
        return work(a_run(version, a_comparison(judge.url, **metric)))


def by_name(request: Received) -> str:
    first, second = re.findall(r"^[AB]: (\w)", request.prompt, re.MULTILINE)
    return "[[A>B]]" if first < second else "[[B>A]]"


def win_rates(run: Run) -> dict[str, float]:
    (entry,) = report_document(run)["side_by_side"]
    return {name: cell["win_rate"] for name, cell in entry["candidates"].items()}


def test_the_means_are_the_win_rates_of_the_report(version: Any) -> None:
    before, after = judged(version, by_name), judged(version, "[[A>B]]")
    cells = comparison_document(before, after)["quality"]
    assert (
        {name: cell["a"] for name, cell in cells.items()} == win_rates(before) == {"a": 1, "b": 0.5, "c": 0}
    )
    assert {name: cell["b"] for name, cell in cells.items()} == win_rates(after) == dict.fromkeys("abc", 0.5)


def test_the_shares_sum_to_the_difference_and_name_the_cause(version: Any) -> None:
    cell = comparison_document(judged(version, by_name), judged(version, "[[A=B]]"))["quality"]["a"]
    assert [(share["cause"], share["difference"]) for share in cell["shares"]] == [("judge", -0.5)]
    assert (cell["items"], cell["difference"]) == (4, -0.5)
    assert cell["ci_low"] < -0.4


def test_replies_are_read_as_the_later_run_reads_them(version: Any) -> None:
    with ScriptedJudge(reply=by_name) as judge:
        runs = [
            work(a_run(version, a_comparison(judge.url, postprocess=script)))
            for script in ("", "def postprocess(resp, **kwargs):\n    return 'B>A'\n")
        ]
    cells = comparison_document(*runs)["quality"]
    assert {name: cell["b"] for name, cell in cells.items()} == {"a": 0, "b": 0.5, "c": 1}
    assert [share["cause"] for share in cells["a"]["shares"]] == ["scripts"]


def test_an_override_of_one_run_is_its_own_cause(version: Any, alice: User) -> None:
    with ScriptedJudge(reply=by_name) as judge:
        before, after = (work(a_run(version, a_comparison(judge.url))) for _run in range(2))
    judgement = after.judgements.order_by("position")[0]
    override_add(judgement=judgement, value="B>A", reason="wrong", by=alice)
    cell = comparison_document(before, after)["quality"]["a"]
    shares = {share["cause"]: share["difference"] for share in cell["shares"]}
    assert shares == {"overrides": -1 / 8, "noise": 0}


def test_the_page_shows_win_rates(version: Any, client_of: ClientOf, alice: User) -> None:
    before, after = judged(version, by_name), judged(version, "[[A=B]]")
    address = f"/p/physics/runs/{after.pk}/compare/?with={before.pk}"
    page = client_of(alice).get(address).text
    assert "100.0 %" in page
    assert "Win rates:" in page
    assert page.count("−50.0") >= 2  # the difference and its share, in percentage points


@pytest.mark.parametrize(
    ("verdict", "share"), [("A>>B", 1), ("A>B", 1), ("A=B", 0.5), ("both_bad", 0.5), ("B>A", 0), (None, 0.5)]
)
def test_a_verdict_counts_so_much_for_a(verdict: str | None, share: float) -> None:
    assert share_of_a(verdict) == share
