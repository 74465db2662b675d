"""Members and their roles, and accounts created by an administrator."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from django.db import transaction

from evalsite.accounts.models import Membership, Project, Role, User
from evalsite.audit import Action, record

# without letters and digits that look alike when read aloud or copied by hand
_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"


class LastAdministrator(Exception):
    """The change would leave the project without an administrator."""


class NotYours(Exception):
    """Only a site administrator may reset this account."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A user with all their roles in a project, in the order of Role."""

    user: User
    roles: tuple[str, ...]


def members_of(project: Project) -> list[Member]:
    """A project's members, ordered by name."""
    roles: dict[User, set[str]] = {}
    held = Membership.objects.filter(project=project).select_related("user").order_by("user__username")
    for membership in held:
        roles.setdefault(membership.user, set()).add(membership.role)
    return [Member(user=u, roles=in_order(has)) for u, has in roles.items()]


def in_order(roles: Collection[str]) -> tuple[str, ...]:
    return tuple(role for role in Role.values if role in roles)


def one_time_password() -> str:
    """About 79 bits; shown once to the account's creator."""
    return typed_secret(4)


def typed_secret(groups: int) -> str:
    """A secret that can be copied by hand: groups of four characters, 19.8 random bits each."""
    return "-".join("".join(secrets.choice(_LETTERS) for _ in range(4)) for _ in range(groups))


@transaction.atomic
def user_create(*, username: str, name: str, project: Project, roles: Sequence[str]) -> tuple[User, str]:
    """Create an account that belongs to `project`; return it and its one-time password."""
    password = one_time_password()
    user = User.objects.create_user(
        username=username,
        password=password,
        first_name=name,
        must_change_password=True,
        created_for=project,
    )
    record(Action.ACCOUNT_CREATED, project=project, thing=user)
    roles_set(project=project, user=user, roles=roles)
    return user, password


def may_reset(*, by: User, user: User, project: Project) -> bool:
    """Whether `by`, who manages `project`, may reset the password of `user`.

    Site administrators may. Others only if the project created the account and no other project has used it: otherwise
    adding someone to a project would be enough to take over their account.
    """
    return by.is_superuser or (not user.is_superuser and user.created_for_id == project.pk)


@transaction.atomic
def password_reset(*, user: User, project: Project, by: User) -> str:
    """Set and return a one-time password; the user's sessions and tokens end.

    Raises NotYours if `may_reset` is false.
    """
    if not may_reset(by=by, user=user, project=project):
        raise NotYours
    password = one_time_password()
    password_set(user=user, password=password, must_change=True, project=project, by=by)
    return password


@transaction.atomic
def password_set(
    *, user: User, password: str, must_change: bool, project: Project | None = None, by: User | None = None
) -> None:
    """Set a password for someone else; the user's sessions and tokens end."""
    user.set_password(password)
    user.must_change_password = must_change
    user.save(update_fields=["password", "must_change_password"])
    user.tokens.all().delete()
    record(Action.PASSWORD_SET, project=project, thing=user, by=by)


@transaction.atomic
def roles_add(*, project: Project, user: User, roles: Collection[str]) -> None:
    """Give a user these roles in addition to those held."""
    held = Membership.objects.filter(project=project, user=user).values_list("role", flat=True)
    roles_set(project=project, user=user, roles={*held, *roles})


@transaction.atomic
def roles_set(*, project: Project, user: User, roles: Collection[str]) -> None:
    """Set exactly these roles; an empty collection removes the user from the project.

    Raises LastAdministrator, changing nothing, if only superusers could manage the project afterwards.
    """
    # The lock: of two administrators who remove each other, the second fails.
    Project.objects.select_for_update().get(pk=project.pk)
    held = Membership.objects.filter(project=project)
    before = set(held.filter(user=user).values_list("role", flat=True))
    others = held.filter(role=Role.ADMIN, user__is_active=True).exclude(user=user)
    if Role.ADMIN in before and Role.ADMIN not in roles and not others.exists():
        raise LastAdministrator
    held.filter(user=user).exclude(role__in=roles).delete()
    if roles:
        User.objects.filter(pk=user.pk).exclude(created_for=project).update(created_for=None)
    for role in set(roles) - before:
        Membership.objects.get_or_create(project=project, user=user, role=role)
    _record(project, user, in_order(before), in_order(roles))


def _record(project: Project, user: User, before: tuple[str, ...], after: tuple[str, ...]) -> None:
    if before == after:
        return
    if not before:
        record(Action.MEMBER_ADDED, project=project, thing=user, roles=after)
    elif not after:
        record(Action.MEMBER_REMOVED, project=project, thing=user, roles=before)
    else:
        record(Action.MEMBER_CHANGED, project=project, thing=user, before=before, after=after)
