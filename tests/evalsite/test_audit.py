"""The audit log."""

import pytest
from django.db import IntegrityError, transaction

from evalsite import audit
from evalsite.accounts.models import Project, User
from evalsite.audit import Action, record
from evalsite.models import AuditEntry


def test_an_entry_says_who_did_what_to_which_thing_in_which_project(adam: User, project: Project) -> None:
    record(Action.PROJECT_RENAMED, project=project, thing=project, by=adam, before="Maths")
    entry = AuditEntry.objects.get()
    assert (entry.actor_name, entry.action, entry.kind, entry.object_id) == (
        "adam",
        "project.renamed",
        "project",
        project.pk,
    )
    assert (entry.name, entry.detail) == ("Physics", {"before": "Maths"})


def test_within_a_request_its_user_is_the_doer(adam: User) -> None:
    with audit.attributed_to(lambda: (adam, "nightly")):
        entry = record(Action.RUN_STARTED)
    assert (entry.actor, entry.via) == (adam.pk, "nightly")


def test_who_is_named_goes_before_who_asks(adam: User, alice: User) -> None:
    with audit.attributed_to(lambda: (adam, "nightly")):
        entry = record(Action.RUN_STARTED, by=alice)
    assert (entry.actor_name, entry.via) == ("alice", "")


def test_outside_of_a_request_nobody_did_it(db: None) -> None:
    assert record(Action.RUN_STARTED).actor is None


def test_what_is_called_like_a_secret_is_hidden(db: None) -> None:
    entry = record(
        Action.ENDPOINT_CHANGED, api_key="sk-1", more=[{"Authorization": "Bearer x"}], url="http://j"
    )
    assert entry.detail == {"api_key": "…", "more": [{"Authorization": "…"}], "url": "http://j"}


def test_an_entry_outlives_the_person_it_names(adam: User, project: Project) -> None:
    record(Action.PROJECT_CREATED, project=project, by=adam)
    adam.delete()
    project.delete()
    assert AuditEntry.objects.get().actor_name == "adam"


def test_the_database_refuses_to_change_an_entry(db: None) -> None:
    entry = record(Action.RUN_STARTED)
    with pytest.raises(IntegrityError, match="never changed"), transaction.atomic():
        AuditEntry.objects.filter(pk=entry.pk).update(actor_name="somebody else")
