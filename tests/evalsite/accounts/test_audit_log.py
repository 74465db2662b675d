"""The audit log's page and download."""

import ast
from pathlib import Path

import pytest
from pytest_django import DjangoAssertNumQueries

from evalsite.accounts.audit_log import CODE_LABELS, DETAILS, PER_PAGE, entries_of, page
from evalsite.accounts.models import Project, User
from evalsite.audit import Action, record
from tests.conftest import ClientOf

LOG = "/p/physics/log/"
ROOT = Path(__file__).parents[3]
OWN_PARAMETERS = {"project", "thing", "name", "by"}  # of `record`


@pytest.mark.parametrize(
    ("name", "status"), [("adam", 200), ("olga", 200), ("alice", 403), ("bob", 403), ("charlie", 404)]
)
@pytest.mark.parametrize("path", [LOG, LOG + "export.csv"])
def test_only_administrators_read_it(
    name: str, status: int, path: str, cast: dict[str, User], client_of: ClientOf
) -> None:
    assert client_of(cast[name]).get(path).status_code == status


@pytest.mark.parametrize("name", ["adam", "alice", "charlie"])
@pytest.mark.parametrize("path", ["/log/", "/log/export.csv"])
def test_only_superusers_read_that_of_the_site(
    name: str, path: str, cast: dict[str, User], client_of: ClientOf
) -> None:
    assert client_of(cast[name]).get(path).status_code == 403
    assert client_of(cast["olga"]).get(path).status_code == 200


def test_a_projects_log_shows_nothing_of_others(client_of: ClientOf, adam: User, charlie: User) -> None:
    record(Action.MEMBER_ADDED, project=Project.objects.get(slug="elsewhere"), name="a secret guest")
    assert "a secret guest" not in client_of(adam).get(LOG).text


def test_it_is_narrowed_by_person_action_and_object(
    client_of: ClientOf, adam: User, rita: User, alice: User, project: Project
) -> None:
    record(Action.MEMBER_ADDED, project=project, thing=rita, by=adam)
    record(Action.MEMBER_REMOVED, project=project, thing=alice, by=adam)
    record(Action.MEMBER_REMOVED, project=project, thing=rita, by=alice)
    query = {"who": adam.pk, "action": "member.removed", "object": f"user:{alice.pk}"}
    shown = client_of(adam).get(LOG, query).context["page"].lines
    assert [(line.words, line.entry.name) for line in shown] == [("Member removed", "alice")]


@pytest.mark.parametrize(
    "query", ["who=x", "action=x", "object=:", "object=run:99999999999999999999", "before=-1"]
)
def test_an_address_that_makes_no_sense_shows_all(
    client_of: ClientOf, adam: User, project: Project, query: str
) -> None:
    record(Action.PROJECT_CREATED, project=project)
    assert len(client_of(adam).get(f"{LOG}?{query}").context["page"].lines) == 1


def test_every_entry_is_on_one_page_both_ways(project: Project) -> None:
    made = [record(Action.RUN_STARTED, project=project, name=str(n)).pk for n in range(2 * PER_PAGE + 7)]
    first = page(entries_of(project))
    second = page(entries_of(project), before=first.older)
    third = page(entries_of(project), before=second.older)
    seen = [line.entry.pk for each in (first, second, third) for line in each.lines]
    assert seen == made[::-1]
    assert third.older is None
    assert page(entries_of(project), after=third.newer) == second


def test_the_file_holds_what_the_filter_leaves_and_starts_no_formula(
    client_of: ClientOf, adam: User, project: Project
) -> None:
    record(Action.RUN_STARTED, project=project, by=adam, name="=cmd()")
    record(Action.PROJECT_RENAMED, project=project)
    answer = client_of(adam).get(LOG + "export.csv?action=run.started")
    text = b"".join(answer.streaming_content).decode()  # type: ignore[attr-defined]
    assert text.count("\n") == 2
    assert ",'=cmd()," in text


def test_more_entries_cost_no_more_questions(
    client_of: ClientOf, adam: User, project: Project, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for n in range(PER_PAGE):
        record(Action.RUN_STARTED, project=project, name=str(n), by=adam)
    client = client_of(adam)
    with django_assert_max_num_queries(11):
        assert client.get(LOG).status_code == 200


def test_someone_called_like_a_role_keeps_the_name(client_of: ClientOf, adam: User, project: Project) -> None:
    record(Action.RATER_ADDED, project=project, by=adam, rater="admin")
    record(Action.MEMBER_ADDED, project=project, by=adam, roles=["admin", "rater"])
    roles, rater = client_of(adam).get(LOG).context["page"].lines
    assert rater.details == [("rater", "admin")]
    assert roles.details == [("Roles", "administrator, rater")]


def test_a_time_is_shown_like_every_other(client_of: ClientOf, adam: User, olga: User) -> None:
    record(Action.TOKEN_CREATED, by=adam, until="2026-11-22T09:30+00:00")
    record(Action.TOKEN_CREATED, by=adam, until=None)
    endless, ending = client_of(olga).get("/log/").context["page"].lines
    assert endless.details == [("expires", "–")]
    assert "2026-11-22 09:30 UTC</time>" in ending.details[0][1]


def test_every_name_of_a_detail_has_a_label() -> None:
    paths = [path for app in ("evalsite", "datasets", "judging") for path in (ROOT / app).rglob("*.py")]
    sources = [source for path in paths if "audit" in (source := path.read_text())]
    calls = [
        node
        for source in sources
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("record", "audit", "audit.record")
    ]
    names = {keyword.arg for call in calls for keyword in call.keywords if keyword.arg} - OWN_PARAMETERS
    assert names - DETAILS.keys() == set()


def test_codes_are_shown_by_their_labels(client_of: ClientOf, adam: User, project: Project) -> None:
    """Elsewhere the same word is somebody's text."""
    record(Action.LOOK_GROUPED, project=project, by=adam, act="moved", group="moved")
    record(Action.RUN_RETRIED, project=project, by=adam, states=["no_score", "error"])
    record(Action.RUN_PAUSED, project=project, by=adam, why="budget_calls")
    record(Action.WEBHOOK_CHANGED, project=project, by=adam, changed=["preset", "url"])
    record(Action.DATASET_READ_AS, project=project, by=adam, format="judge_only")
    read_as, changed, paused, retried, grouped = client_of(adam).get(LOG).context["page"].lines
    assert grouped.details == [("act", "notes moved"), ("group", "moved")]
    assert retried.details == [("states", "no score, error")]
    assert paused.details == [("why", "The run reached its request budget.")]
    assert changed.details == [("changed", "Body, Address")]
    assert read_as.details == [("format", "Judge only (JSONL)")]


def test_a_yes_and_parts_of_a_detail_are_shown_in_words(
    client_of: ClientOf, adam: User, project: Project
) -> None:
    record(Action.EVIDENCE_RULES, project=project, by=adam, before={"hashes_only": False}, after={})
    record(Action.QUESTION_ANSWERED, project=project, by=adam, to_all=True)
    answered, rules = client_of(adam).get(LOG).context["page"].lines
    assert answered.details == [("to all", "yes")]
    assert rules.details == [("before", "hashes only: no"), ("after", "–")]


def test_every_code_with_labels_belongs_to_an_action_and_a_named_detail() -> None:
    keys = [key for labels in CODE_LABELS for key in labels]
    assert {action for action, _detail in keys} - set(Action.values) == set()
    assert {detail for _action, detail in keys} - DETAILS.keys() == set()
