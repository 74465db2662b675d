"""manage.py create_token: create an access token for a program."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from evalsite.access import projects_of
from evalsite.accounts.models import ApiToken, Project, User
from evalsite.accounts.tokens import MOST, token_create, tokens_of
from evalsite.storage import data_dir

WRONG_USAGE = 2


class Command(BaseCommand):
    help = "Create an access token for a user and print it. It is not stored and not shown again."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", help="username")
        parser.add_argument("--project", metavar="SLUG", help="the only project that it opens; default: all")
        parser.add_argument(
            "--days", type=int, default=90, metavar="N", help="valid for (default: %(default)s)"
        )
        parser.add_argument(
            "--read-only", action="store_true", help="without the permission to change anything"
        )
        parser.add_argument("--name", default="create_token", help="its purpose, shown on the account page")

    def handle(self, *, user: str, project: str | None, days: int, read_only: bool, **options: Any) -> None:
        data_dir.prepare()
        owner = User.objects.filter(username=user, is_active=True).first()
        if owner is None:
            raise CommandError(f"There is no active account called {user}.", returncode=WRONG_USAGE)
        if not 1 <= days <= 3650:
            raise CommandError("--days takes a number from 1 to 3650.", returncode=WRONG_USAGE)
        if tokens_of(owner).count() >= MOST:
            raise CommandError(f"{user} already has {MOST} tokens. Revoke one on the account page first.")
        _token, secret = token_create(
            user=owner,
            name=options["name"][:100],
            days=days,
            scope=ApiToken.Scope.READ if read_only else ApiToken.Scope.WRITE,
            project=_project(owner, project) if project else None,
        )
        self.stdout.write(secret)


def _project(owner: User, slug: str) -> Project:
    """The project, which the user must be able to see."""
    project = projects_of(owner).filter(slug=slug).first()
    if project is None:
        raise CommandError(f"{owner.username} is in no project called {slug}.", returncode=WRONG_USAGE)
    return project
