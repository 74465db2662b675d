"""Revealing parts of rows are found before an evaluation starts; once hidden, no response to raters contains them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from datasets.core.variables import EARLIER
from datasets.models import Response, Row, Version
from evalsite.accounts.models import Project, User
from judging.people import assignments
from judging.people.blindness import Blindness, blindness
from judging.people.item_view import answer_of
from judging.people.models import Evaluation
from tests.conftest import ClientOf
from tests.judging.people.make import answered, legacy, make_evaluation, sent
from tests.make import a_version

pytestmark = pytest.mark.django_db
SYSTEMS = ("style one", "style two")
NAMING = ("You are Alpha.", "You are Beta.")


def version_with(project: Project, *systems: str, **more: Any) -> Version:
    """A version whose rows start with these system turns, alternating; an empty text means none."""
    version = answered(a_version(project, rows=4))
    for row in Row.objects.filter(version=version):
        system = systems[row.line % len(systems)]
        turns = [{"role": "system", "content": system, "name": "named-turn"}] if system else []
        turns += [
            {"role": "user", "content": f"question {row.line}", "name": "named-turn"},
            {"role": "assistant", "content": f"earlier {row.line}"},
            {"role": "user", "content": f"further question {row.line}"},
        ]
        Row.objects.filter(pk=row.pk).update(raw=json.dumps({"messages": turns, **more}))
    return version


def found(
    version: Version, names: tuple[str, ...] = ("alpha", "beta"), hidden: tuple[str, ...] = ()
) -> Blindness:
    return blindness([version], names, hidden)


def form(client: Client, version: Version, **more: Any) -> str:
    asked = {"part": "preview", **sent(version, []), **more}
    answer = client.get("/p/physics/evaluations/new/", asked, headers={"HX-Request": "true"})
    return str(answer.content.decode())


def own_turns(version: Version, systems: tuple[str, str] = SYSTEMS) -> Version:
    """Give each candidate's answers a system turn of their own."""
    for response in Response.objects.filter(row__version=version).select_related("candidate"):
        system = systems[response.candidate.name == "beta"]
        turns = [{"role": "system", "content": system}]
        response.raw = json.dumps({**json.loads(response.raw), EARLIER: turns})
        response.save(update_fields=["raw"])
    return version


def test_system_turns_that_differ_between_rows_only_are_no_warning(project: Project) -> None:
    assert found(version_with(project, *SYSTEMS)).warnings == []


def test_few_system_turns_that_differ_between_candidates_are_a_warning(project: Project) -> None:
    (warning,) = found(own_turns(version_with(project, "x"))).warnings
    assert "System message" in warning
    assert "style one" in warning
    assert "style two" in warning


def test_the_bundled_sample_gives_no_warning(project: Project) -> None:
    version = a_version(project, rows=0)
    lines = Path(settings.BASE_DIR, "datasets/samples/sample.jsonl").read_text(encoding="utf-8").splitlines()
    Row.objects.bulk_create(
        Row(version=version, line=n, valid=True, raw=raw) for n, raw in enumerate(lines, 1)
    )
    names = {one["model_name"] for line in lines for one in json.loads(line)["model_outputs"]}
    assert names
    assert found(version, tuple(names)).warnings == []


def test_one_system_turn_for_all_rows_is_none(project: Project) -> None:
    version = version_with(project, "Be brief.")
    assert found(version).warnings == []
    assert found(version).roles == ["system", "assistant"]


def test_a_system_turn_of_all_candidates_is_no_warning_even_if_it_names_one(project: Project) -> None:
    assert found(version_with(project, "You are Beta.")).warnings == []


def test_a_turn_of_its_own_that_names_a_candidate_is_a_warning(project: Project) -> None:
    warnings = found(own_turns(version_with(project, "You are Beta."), NAMING)).warnings
    assert [name for name in ("alpha", "beta") if any(f"the name “{name}”" in one for one in warnings)] == [
        "alpha",
        "beta",
    ]


def test_the_same_turns_given_to_each_candidate_are_no_warning(project: Project) -> None:
    assert found(own_turns(version_with(project, "x"), ("You are Beta.", "You are Beta."))).warnings == []


def test_a_hidden_turn_is_no_warning_any_more(project: Project) -> None:
    assert found(own_turns(version_with(project, "x")), hidden=("system",)).warnings == []


def two_files(project: Project) -> tuple[Version, Version]:
    """Two files with the same prompts and system turns."""
    files = legacy(project, False), legacy(project, False, "newer")
    for row in Row.objects.filter(version__in=files):
        raw = json.loads(row.raw) | {"system": SYSTEMS[row.line % 2]}
        Row.objects.filter(pk=row.pk).update(raw=json.dumps(raw))
    return files


def two_conversations(project: Project, here: str, there: str) -> tuple[Version, Version]:
    """Two files with the same questions and these earlier answers."""
    files = legacy(project, False), legacy(project, False, "newer")
    for version, earlier in zip(files, (here, there), strict=True):
        for row in Row.objects.filter(version=version):
            turns = [{"prompt": "earlier", "response": earlier}, *json.loads(row.raw)["conversation"]]
            Row.objects.filter(pk=row.pk).update(raw=json.dumps({"conversation": turns}))
    return files


@pytest.mark.parametrize(("here", "there"), [("I am Orpo.", "Hello."), ("Hello.", "I am Orpo.")])
def test_of_two_files_the_earlier_turns_of_both_are_looked_at(
    project: Project, here: str, there: str
) -> None:
    warnings = blindness(two_conversations(project, here, there), ("orpo", "base"), ()).warnings
    assert any("contains the name “orpo”" in one for one in warnings)


def test_two_files_whose_own_turns_are_few_values_are_a_warning(project: Project) -> None:
    (warning,) = blindness(two_conversations(project, "brief", "long"), ("orpo", "base"), ()).warnings
    assert "only a few short values" in warning


def test_two_files_that_share_their_turns_are_no_warning(project: Project) -> None:
    files = two_conversations(project, "I am Orpo.", "I am Orpo.")
    assert blindness(files, ("orpo", "base"), ()).warnings == []


def test_the_page_warns_before_the_start_and_offers_to_hide(
    project: Project, alice: User, client_of: ClientOf
) -> None:
    version = own_turns(version_with(project, "x"))
    page = client_of(alice).get(f"/p/physics/evaluations/new/?version={version.pk}").content.decode()
    assert "Raters may recognize the model" in page
    assert 'name="hidden_roles" value="system"' in page
    assert 'name="hidden_roles" value="tool"' not in page  # the rows have no tool turns


def test_the_preview_follows_what_is_hidden(project: Project, alice: User, client_of: ClientOf) -> None:
    version, client = own_turns(version_with(project, "x")), client_of(alice)
    assert "<p>style" in form(client, version)
    hidden = form(client, version, hidden_roles=["system"])
    assert "style" not in hidden
    assert "Raters may recognize" not in hidden


def test_the_names_of_two_files_are_looked_for(project: Project, alice: User, client_of: ClientOf) -> None:
    one, other = two_conversations(project, "As Orpo, I say hello.", "Hello.")
    chosen = {"kind": "versions", "other_version": other.pk, "name_here": "orpo", "name_there": "base"}
    assert "contains the name “orpo”" in form(client_of(alice), one, **chosen)


def test_what_is_to_be_hidden_is_kept_and_is_on_the_page(
    project: Project, alice: User, client_of: ClientOf
) -> None:
    client, version = client_of(alice), version_with(project, *SYSTEMS)
    client.post("/p/physics/evaluations/new/", sent(version, [], hidden_roles=["system"]))
    evaluation = Evaluation.objects.get()
    assert evaluation.hidden_roles == ["system"]
    page = client.get(f"/p/physics/evaluations/{evaluation.run_id}/").content.decode()
    assert "Hidden from raters" in page


def test_the_users_turn_cannot_be_hidden(project: Project, alice: User, client_of: ClientOf) -> None:
    data = sent(version_with(project, *SYSTEMS), [], hidden_roles=["user"])
    assert client_of(alice).post("/p/physics/evaluations/new/", data).status_code == 422


def desk_answers(client: Client, evaluation: Evaluation, user: User) -> Iterator[str]:
    """All responses of the desk: page with items, one item, own ratings, items as JSON, and the diff."""
    base = f"/p/physics/desk/{evaluation.run_id}/"
    held = assignments.claim(evaluation=evaluation, user=user)[0]
    for address in (base, f"{base}{held.token}/", f"{base}mine/"):
        yield client.get(address).content.decode()
    for address in (f"{base}items/", f"{base}{held.token}/", f"{base}{held.token}/difference/"):
        yield json.dumps(
            client.get(address, headers={"Accept": "application/json"}).json(), ensure_ascii=False
        )


def test_hidden_turns_are_in_nothing_that_the_desk_sends(
    project: Project, rita: User, client_of: ClientOf
) -> None:
    version = version_with(project, *SYSTEMS)
    hides = ("system", "assistant")
    evaluation = make_evaluation(project, [rita], version=version, hidden_roles=hides)
    texts = list(desk_answers(client_of(rita), evaluation, rita))
    assert any("further question" in text for text in texts)
    assert not any("style" in text and any(one in text for one in SYSTEMS) for text in texts)
    assert not any("earlier 1" in text or "earlier 2" in text for text in texts)


def test_the_turns_of_both_files_are_hidden(project: Project, rita: User, client_of: ClientOf) -> None:
    files = two_files(project)
    choice = {"candidates": (), "other_version": files[1]}
    evaluation = make_evaluation(
        project, [rita], version=files[0], scheme="versions", choice=choice, hidden_roles=("system",)
    )
    texts = list(desk_answers(client_of(rita), evaluation, rita))
    assert any("newer expects" in text for text in texts)
    assert not any(one in text for one in SYSTEMS for text in texts)


def test_custom_fields_and_names_of_messages_are_never_sent(
    project: Project, rita: User, client_of: ClientOf
) -> None:
    version = version_with(project, "Be brief.", source_model="secret-field", nested={"by": "secret-field"})
    evaluation = make_evaluation(project, [rita], version=version)
    for text in desk_answers(client_of(rita), evaluation, rita):
        assert "secret-field" not in text
        assert "named-turn" not in text


def test_of_a_tool_call_raters_see_what_is_called_with_what() -> None:
    call = {
        "id": "toolu_01",
        "model": "secret",
        "function": {"name": "search", "arguments": "{}", "by": "secret"},
    }
    shown = answer_of(Response(raw=json.dumps({"content": None, "tool_calls": [call]})))
    assert json.loads(shown.tool_calls) == [{"function": {"name": "search", "arguments": "{}"}}]
