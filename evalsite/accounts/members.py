"""Who belongs to a project, as what; and accounts made for people by an administrator."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from django.db import transaction

from evalsite.accounts.models import Membership, Project, Role, User

# without letters and digits that look alike when read aloud or copied by hand
_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"


class LastAdministrator(Exception):
    """The change would leave the project without anybody who may manage it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A user with all roles held in a project, in the order of Role."""

    user: User
    roles: tuple[str, ...]


def members_of(project: Project) -> list[Member]:
    """A project's members by name."""
    roles: dict[User, set[str]] = {}
    held = Membership.objects.filter(project=project).select_related("user").order_by("user__username")
    for membership in held:
        roles.setdefault(membership.user, set()).add(membership.role)
    return [Member(user=u, roles=tuple(r for r in Role.values if r in has)) for u, has in roles.items()]


def one_time_password() -> str:
    """Four groups of four, about 79 bits; shown once to whoever made the account."""
    return "-".join("".join(secrets.choice(_LETTERS) for _ in range(4)) for _ in range(4))


@transaction.atomic
def user_create(*, username: str, name: str, project: Project, roles: Sequence[str]) -> tuple[User, str]:
    """A new account that belongs to `project`, and its password in the clear."""
    password = one_time_password()
    user = User.objects.create_user(username=username, password=password, first_name=name)
    roles_set(project=project, user=user, roles=roles)
    return user, password


@transaction.atomic
def roles_set(*, project: Project, user: User, roles: Collection[str]) -> None:
    """Give a user exactly these roles; none removes them from the project.

    Raises LastAdministrator, and changes nothing, where nobody but a superuser could manage it afterwards.
    """
    held = Membership.objects.filter(project=project)
    others = held.filter(role=Role.ADMIN).exclude(user=user)
    was_administrator = held.filter(role=Role.ADMIN, user=user).exists()
    if was_administrator and Role.ADMIN not in roles and not others.exists():
        raise LastAdministrator
    held.filter(user=user).exclude(role__in=roles).delete()
    for role in roles:
        Membership.objects.get_or_create(project=project, user=user, role=role)
