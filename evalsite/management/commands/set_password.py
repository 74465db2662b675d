"""manage.py set_password: create an administrator account or reset its password."""

from __future__ import annotations

import getpass
import sys
from typing import Any

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction

from evalsite.accounts.members import password_set
from evalsite.accounts.models import User
from evalsite.audit import Action, record
from evalsite.names import join_sentences
from evalsite.storage import data_dir


class Command(BaseCommand):
    help = "Set an account's password. Creates a site administrator if the account does not exist."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name")

    def handle(self, *, name: str, **options: Any) -> None:
        data_dir.prepare()
        user = User.objects.filter(username=name).first()
        is_new = user is None
        user = user or User(username=name, is_superuser=True, is_staff=True)
        password = ask_password()
        try:
            validate_password(password, user)
        except ValidationError as error:
            raise CommandError(join_sentences(error.messages)) from None
        user.is_active = True
        with transaction.atomic():
            user.save()
            if is_new:
                record(Action.ACCOUNT_CREATED, thing=user)
            password_set(user=user, password=password, must_change=False)
        self.stdout.write(f"{'Created administrator' if is_new else 'Password changed for'} {name}.")


def ask_password() -> str:
    """Ask twice on a terminal, else read a line of standard input. Not an argument, as others could see it."""
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\n")
    first = getpass.getpass("New password: ")
    if getpass.getpass("Repeat password: ") != first:
        raise CommandError("The passwords don't match.")
    return first
