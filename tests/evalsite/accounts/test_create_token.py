"""`manage.py create_token` prints a token for a program."""

from __future__ import annotations

import io

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from evalsite.accounts.models import ApiToken, Project, User
from evalsite.accounts.tokens import token_find
from evalsite.models import AuditEntry


def created(*arguments: str) -> str:
    out = io.StringIO()
    call_command("create_token", *arguments, stdout=out)
    return out.getvalue().strip()


def test_the_token_is_printed_and_works(alice: User, project: Project) -> None:
    token = token_find(created("alice"))
    assert token is not None
    assert (token.user, token.scope, token.project, token.expires_at is None) == (alice, "write", None, False)
    assert AuditEntry.objects.filter(action="token.created").count() == 1


def test_it_can_be_limited(alice: User, project: Project) -> None:
    created("alice", "--project", "physics", "--read-only", "--days", "1")
    token = ApiToken.objects.get()
    assert (token.scope, token.project) == ("read", project)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["nobody"], "no active account"),
        (["alice", "--project", "x"], "no project"),
        (["alice", "--days", "0"], "--days"),
    ],
)
def test_what_is_impossible_is_refused(alice: User, arguments: list[str], why: str) -> None:
    with pytest.raises(CommandError, match=why):
        created(*arguments)
