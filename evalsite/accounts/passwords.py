"""A password validator in addition to Django's."""

from __future__ import annotations

import re

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from evalsite.accounts.models import User

FEWEST_OTHER_LETTERS = 3  # letters that a password must have in addition to the user's names
_NO_LETTER = re.compile(r"[\W\d_]+")


class NameAndDigitsValidator:
    """Rejects a password that is the user's name, possibly repeated, plus digits or punctuation."""

    def validate(self, password: str, user: object = None) -> None:
        if not isinstance(user, User):
            return
        rest = _NO_LETTER.sub("", password.casefold())
        names = {_NO_LETTER.sub("", name.casefold()) for name in _names(user)} - {""}
        left = rest
        for name in sorted(names, key=len, reverse=True):
            left = left.replace(name, "")
        if left != rest and len(left) < FEWEST_OTHER_LETTERS:
            raise ValidationError(self.get_help_text(), code="password_is_name")

    def get_help_text(self) -> str:
        return _("The password can’t be your username with digits or punctuation added.")


def _names(user: User) -> list[str]:
    return [
        user.username,
        user.email.partition("@")[0],
        *(f"{user.first_name} {user.last_name}".split()),
        user.get_full_name(),
    ]
