"""Reviewing through the API: what is incomplete, what people score differently, overrides and comments."""

from __future__ import annotations

import pytest

from evalsite.accounts.models import Project, User
from judging.metrics.services import metric_create
from judging.records.models import Run
from judging.trust.answers import row_keys
from judging.trust.models import PartName, Split, SplitRow
from tests.api import Api, code_of
from tests.judging.judged import JUDGE_URL, a_judged_run, failed, first_of, said
from tests.judging.people.make import about, rate_each
from tests.make import a_metric

SAID = {0: said(3), 1: said(None), 2: failed(), 3: said(5), 4: failed(), 5: said(None)}


@pytest.fixture
def run(project: Project) -> Run:
    """Two scores, two unparsed replies and two errors."""
    return a_judged_run(project, lambda place: SAID[place])


def test_incomplete_has_errors_then_unparsed_replies(alice: User, run: Run) -> None:
    api, cursor, states = Api(alice), "", []
    for _page in range(9):
        page = api.get(f"projects/physics/runs/{run.pk}/incomplete", limit=1, cursor=cursor).json()
        states += [item["state"] for item in page["items"]]
        cursor = page["next"]
        if cursor is None:
            break
    assert states == ["error", "error", "unparsed", "unparsed"]


def path_of(run: Run, action: str) -> str:
    return f"projects/physics/runs/{run.pk}/judgements/{first_of(run).pk}/{action}"


def test_an_override_counts_until_it_is_withdrawn(bob: User, run: Run) -> None:
    api, path = Api(bob), path_of(run, "override")
    entry = api.post(path, {"value": 7, "reason": "It is better."})
    assert (entry.status_code, entry.json()["value"], entry.json()["by"]) == (201, 7, "bob")
    assert first_of(run).score_in_force == 7
    assert api.post(path, {"value": None, "reason": "It is not."}).status_code == 201
    assert first_of(run).score_in_force == 3


def test_an_override_beside_the_scale_or_after_another_is_refused(bob: User, run: Run) -> None:
    api, path = Api(bob), path_of(run, "override")
    refused = api.post(path, {"value": 99, "reason": "x"})
    assert (code_of(refused), [*refused.json()["error"]["fields"]]) == ((422, "invalid"), ["value"])
    api.post(path, {"value": 7, "reason": "x", "seen": 0})
    assert code_of(api.post(path, {"value": 8, "reason": "x", "seen": 0})) == (409, "conflict")


def test_comments_are_stored_and_read(bob: User, alice: User, run: Run) -> None:
    path = path_of(run, "comments")
    assert Api(bob).post(path, {"text": "Look at this, @alice."}).status_code == 201
    (comment,) = Api(alice).get(path).json()["items"]
    assert (comment["author"], comment["text"]) == ("bob", "Look at this, @alice.")


def test_disagreements_leave_out_the_rows_of_a_sealed_test(project: Project, alice: User, rita: User) -> None:
    run = a_judged_run(project, lambda place: said(2))
    rate_each(about(run, [rita]), rita, lambda item: 9)
    api, path = Api(alice), f"projects/physics/runs/{run.pk}/disagreements"
    metric = run.metrics.get()
    assert {item["difference"] for item in api.get(path, metric=metric.name).json()["items"]} == {7}
    sealed = metric_create(project=project, definition=a_metric(JUDGE_URL), user=None)
    split = Split.objects.create(dataset=run.version.dataset, metric=sealed, seed=1, by_id=False)
    keys, _by_id = row_keys(run.version, by_id=False)
    SplitRow.objects.create(split=split, key=keys[2], part=PartName.TEST)
    assert {item["line"] for item in api.get(path).json()["items"]} == {1, 3}


def test_a_metric_that_the_run_has_not_is_refused(alice: User, run: Run) -> None:
    reply = Api(alice).get(f"projects/physics/runs/{run.pk}/disagreements", metric="nothing")
    assert code_of(reply) == (422, "invalid")
