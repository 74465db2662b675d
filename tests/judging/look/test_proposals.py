"""Groups proposed by a model: one counted request, a draft that people take, and nothing of the rows set aside."""

from __future__ import annotations

import pytest

from evalsite.accounts.models import Project, User
from judging.core.judges.scripted import Received, ScriptedJudge, refusal
from judging.endpoints.models import Endpoint
from judging.look.groups import GroupRefused
from judging.look.models import Look, NoteGroup, SetAside
from judging.look.proposals import (
    ProposedGroup,
    notes_sent,
    prices,
    proposal_discard,
    proposal_take,
    propose,
    read_groups,
)
from judging.look.results import LookResult
from judging.metrics.model_drafts import CannotDraft, spent_on
from tests.judging.look.make import a_look, noted
from tests.judging.working import an_endpoint

REPLY = "GROUP: Wrong date\nDEFINITION: The date is wrong.\nNOTES: 1, 2\n\n**GROUP:** Rude\nNOTES: 3, 99"


def test_a_reply_is_read_line_by_line() -> None:
    assert read_groups(REPLY, {1, 2, 3}) == [
        ProposedGroup("Wrong date", "The date is wrong.", (1, 2)),
        ProposedGroup("Rude", "", (3,)),
    ]


@pytest.mark.parametrize(
    "reply", ["", "Sorry.", "GROUP: a\nNOTES: none", "NOTES: 1", "GROUP: a\nDEFINITION: cut off"]
)
def test_a_reply_without_a_whole_group_gives_none(reply: str) -> None:
    assert read_groups(reply, {1}) == []


def test_what_a_model_thinks_names_no_group() -> None:
    assert read_groups(f"<think>{REPLY}</think>GROUP: Late\nNOTES: 2", {1, 2, 3}) == [
        ProposedGroup("Late", "", (2,))
    ]


@pytest.fixture
def look(project: Project, alice: User) -> Look:
    look = a_look(project, alice)
    noted(look, alice, 1, "the date is wrong")
    noted(look, alice, 2, "all is well", passed=True)
    return look


def with_groups(received: Received) -> str:
    """A group of the first note in the prompt."""
    (line,) = [line for line in received.prompt.splitlines() if "the date is wrong" in line]
    return f"GROUP: Wrong date\nDEFINITION: The date is wrong.\nNOTES: {line.partition(':')[0]}"


def test_a_proposal_is_a_draft_and_its_call_is_counted(look: Look, project: Project, alice: User) -> None:
    with ScriptedJudge(with_groups) as judge:
        endpoint = an_endpoint(project, judge.url, input_price=2, output_price=4, currency="USD")
        proposal = propose(look=look, endpoint=endpoint, user=alice)
    assert (proposal.state, proposal.calls) == ("draft", 1)
    assert not NoteGroup.objects.exists()
    spent = spent_on([proposal])
    assert spent.calls == 1
    assert spent.tokens > 0
    assert spent.costs["USD"] > 0


def test_only_notes_on_failing_answers_are_sent(look: Look, project: Project, alice: User) -> None:
    with ScriptedJudge(with_groups) as judge:
        propose(look=look, endpoint=an_endpoint(project, judge.url), user=alice)
    assert "all is well" not in judge.requests[0].prompt


def test_rows_set_aside_later_are_not_sent(look: Look, project: Project, alice: User) -> None:
    SetAside.objects.update(rows=[look.answers.get(place=1).row_id])
    with ScriptedJudge(with_groups) as judge, pytest.raises(CannotDraft, match="no_notes"):
        propose(look=look, endpoint=an_endpoint(project, judge.url), user=alice)
    assert judge.requests == []


def test_taken_groups_hold_their_notes_and_the_rest_stays_a_draft(
    look: Look, project: Project, alice: User
) -> None:
    with ScriptedJudge(with_groups) as judge:
        proposal = propose(look=look, endpoint=an_endpoint(project, judge.url), user=alice)
    assert proposal_take(proposal=proposal, places=[0], user=alice) == ["Wrong date"]
    group = NoteGroup.objects.get()
    assert (group.definition, group.notes.get().text) == ("The date is wrong.", "the date is wrong")
    with pytest.raises(GroupRefused, match="nothing_chosen"):
        proposal_take(proposal=proposal, places=[0], user=alice)


def test_a_closed_draft_stays_listed(look: Look, project: Project, alice: User) -> None:
    with ScriptedJudge(with_groups) as judge:
        proposal = propose(look=look, endpoint=an_endpoint(project, judge.url), user=alice)
    proposal_discard(proposal=proposal)
    assert [row.state for row in look.proposals.all()] == ["done"]


def test_a_failed_call_is_listed_with_its_reason(look: Look, project: Project, alice: User) -> None:
    with ScriptedJudge(refusal(401, "no such key")) as judge:
        proposal = propose(look=look, endpoint=an_endpoint(project, judge.url), user=alice)
    assert (proposal.state, proposal.calls) == ("failed", 1)
    assert proposal.problem


def test_the_price_is_known_before(look: Look, project: Project) -> None:
    assert prices(LookResult(look), project) == []
    an_endpoint(project, "http://127.0.0.1:9/v1", input_price=2, output_price=4, currency="USD")
    (price,) = prices(LookResult(look), project)
    assert notes_sent(LookResult(look)) == 1
    assert price.cost
    assert Endpoint.objects.count() == 1
