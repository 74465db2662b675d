"""Rubrics drafted by a model: one counted request, nothing of a test, and each line decided by a person."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from datasets.importing.worker import import_version
from datasets.models import Version
from datasets.versions.row_edits import open_edits, row_delete, version_edit
from evalsite.accounts.models import Project, User
from judging.core.judges.scripted import Received, ScriptedJudge, refusal
from judging.look.models import SetAside
from judging.metrics.model_drafts import CannotDraft
from judging.metrics.models import Metric
from judging.rubrics.drafts import (
    ACCEPTED,
    DISCARDED,
    DecisionRefused,
    row_rubric,
    rubric_decide,
    rubric_draft,
)
from judging.rubrics.models import RubricDraft
from judging.trust.answers import row_keys
from judging.trust.models import Split, SplitRow
from tests.conftest import ClientOf
from tests.datasets.conftest import answers, jsonl, question, upload
from tests.judging.rubrics.test_reply import REPLY
from tests.judging.working import an_endpoint

__all__ = ["upload"]
pytestmark = pytest.mark.django_db


@pytest.fixture
def version(upload: Callable[..., Version], alice: User) -> Version:
    rows = [
        question("Burnt finger?", ref_answer="Cool it.", model_outputs=answers(alpha="Butter!")),
        question("Old rubric", rubric=["Is short."], model_outputs=answers(alpha="Yes.")),
    ]
    return upload(jsonl(*rows), read=True, user=alice)


def drafted(
    version: Version, user: User, line: int = 1, reply: Any = REPLY
) -> tuple[RubricDraft, list[Received]]:
    with ScriptedJudge(reply) as judge:
        endpoint = an_endpoint(
            version.dataset.project, judge.url, input_price=2, output_price=4, currency="USD"
        )
        draft = rubric_draft(rubric=row_rubric(version, line), endpoint=endpoint, user=user)
    return draft, judge.requests


def refused(version: Version, user: User) -> tuple[str, list[Received]]:
    """Why the first row is not drafted, and what was sent."""
    rubric = row_rubric(version, 1)
    with ScriptedJudge(REPLY) as judge:
        endpoint = an_endpoint(version.dataset.project, judge.url)
        with pytest.raises(CannotDraft) as refusal_of_draft:
            rubric_draft(rubric=rubric, endpoint=endpoint, user=user)
    return refusal_of_draft.value.code, judge.requests


def test_a_draft_is_counted_and_changes_no_row(version: Version, alice: User) -> None:
    draft, _requests = drafted(version, alice)
    assert (draft.state, draft.calls, len(draft.lines)) == ("draft", 1, 2)
    assert draft.cost
    assert not open_edits(version).exists()


def test_question_and_reference_are_sent_and_no_answer(version: Version, alice: User) -> None:
    _draft, (request,) = drafted(version, alice)
    assert "Burnt finger?" in request.prompt
    assert "Cool it." in request.prompt
    assert "Butter!" not in request.prompt


def test_a_failed_call_is_kept_with_its_reason(version: Version, alice: User) -> None:
    draft, _requests = drafted(version, alice, reply=refusal(401, "no such key"))
    assert (draft.state, draft.calls) == ("failed", 1)
    assert draft.problem


def test_a_row_set_aside_is_never_sent(version: Version, alice: User) -> None:
    SetAside.objects.create(version=version, seed=1, rows=[version.data_rows.get(line=1).pk])
    assert refused(version, alice) == ("set_aside", [])


def test_a_row_of_a_sealed_test_is_never_sent(version: Version, alice: User) -> None:
    metric = Metric.objects.create(project=version.dataset.project, name="quality")
    split = Split.objects.create(dataset=version.dataset, metric=metric, criterion="c", seed=1, by_id=False)
    SplitRow.objects.create(split=split, key=row_keys(version, by_id=False)[0][1], part="test")
    assert refused(version, alice) == ("sealed", [])


def rubric_in_next(version: Version, line: int) -> list[object]:
    """The rubric of a row in the version that the edits make."""
    new = version_edit(version=version, user=None)
    assert new
    import_version(new.pk)
    rubric: list[object] = json.loads(new.data_rows.get(line=line).raw)["rubric"]
    return rubric


def test_accepted_lines_join_the_rubric_with_their_origin(version: Version, alice: User) -> None:
    draft, _requests = drafted(version, alice, line=2)
    assert rubric_decide(draft=draft, decisions={0: ACCEPTED, 1: DISCARDED}, user=alice) == 1
    draft.refresh_from_db()
    assert draft.state == "done"
    assert rubric_in_next(version, 2) == [
        "Is short.",
        {"criterion": "Says to cool it.", "points": 3, "drafted_by": draft.model},
    ]


def test_a_row_without_a_rubric_gets_one(version: Version, alice: User) -> None:
    draft, _requests = drafted(version, alice)
    rubric_decide(draft=draft, decisions={0: ACCEPTED}, user=alice)
    draft.refresh_from_db()
    assert draft.state == "draft"  # the other line is not decided yet
    assert len(rubric_in_next(version, 1)) == 1


def test_discarded_lines_change_no_row(version: Version, alice: User) -> None:
    draft, _requests = drafted(version, alice)
    assert rubric_decide(draft=draft, decisions={0: DISCARDED, 1: DISCARDED}, user=alice) == 0
    assert not open_edits(version).exists()


def test_a_line_is_decided_once(version: Version, alice: User) -> None:
    draft, _requests = drafted(version, alice)
    rubric_decide(draft=draft, decisions={0: ACCEPTED}, user=alice)
    with pytest.raises(DecisionRefused, match="decided"):
        rubric_decide(draft=draft, decisions={0: DISCARDED}, user=alice)


def test_a_row_that_the_next_version_leaves_out_gets_nothing(version: Version, alice: User) -> None:
    draft, _requests = drafted(version, alice)
    row_delete(row=row_rubric(version, 1).file, state="", user=alice)
    with pytest.raises(DecisionRefused, match="row_deleted"):
        rubric_decide(draft=draft, decisions={0: ACCEPTED}, user=alice)


def test_a_draft_is_made_and_decided_on_the_page(
    version: Version, project: Project, alice: User, client_of: ClientOf
) -> None:
    client: Client = client_of(alice)
    address = f"/p/physics/rubrics/{version.dataset_id}/v1/1/"
    with ScriptedJudge(REPLY) as judge:
        endpoint = an_endpoint(project, judge.url)
        shown = client.post(f"{address}draft/", {"endpoint": endpoint.pk}, follow=True).content.decode()
    assert "Recommends butter." in shown
    draft = RubricDraft.objects.get()
    shown = client.post(
        f"{address}drafts/{draft.pk}/", {"line-0": "accepted", "line-1": "discarded"}, follow=True
    ).content.decode()
    assert "1 criterion was added" in shown
    assert "Recommends butter." not in shown
