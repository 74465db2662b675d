"""Invitations: a link that one person can use once, or that many can share, until it expires or is revoked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Case, F, QuerySet, Value, When
from django.utils import timezone

from evalsite.accounts.members import roles_add, typed_secret
from evalsite.accounts.models import Invitation, InvitationUse, Project, Role, User
from evalsite.audit import Action, record, record_all
from evalsite.hooks import HookTable
from evalsite.secrets import hashed, new_secret

ACCOUNTS_AN_HOUR = 20
"""Accounts that shared links may make from one network address."""
_TYPED_GROUPS = 5  # 99 bits
_HOUR = timedelta(hours=1)


class NoInvitation(Exception):
    """The link is unknown, used, revoked or expired, or what it joins takes nobody any more; only project
    administrators see which."""


class TooManyAccounts(Exception):
    """Shared links made enough accounts from this network address; `until`: when the next one can be made."""

    def __init__(self, until: datetime) -> None:
        super().__init__(until)
        self.until = until


@dataclass(frozen=True, slots=True)
class Purpose:
    """What a link joins beside the project: its name, facts as (label, text), the page to which it leads, and the act
    of joining, which raises NoInvitation if nobody can join any more. `waits`: it is shown only later."""

    name: str
    facts: Sequence[tuple[str, str]]
    address: str
    join: Callable[[User], None]
    waits: bool = False


purposes: HookTable[Callable[[Invitation], Purpose | None]] = HookTable(
    "evalsite.accounts.invitations.purposes"
)
"""{Invitation.joins: returns the purpose of a link; None if it no longer exists}."""


def purpose_of(invitation: Invitation) -> Purpose | None:
    """What the link joins beside the project; None for a link to the project alone. Raises NoInvitation if it is
    gone."""
    if not invitation.joins:
        return None
    purpose = purposes[invitation.joins](invitation)
    if purpose is None:
        raise NoInvitation
    return purpose


@transaction.atomic
def invitation_create(
    *, project: Project, roles: Sequence[str], note: str, days: int, by: User
) -> tuple[Invitation, str]:
    """Create an invitation; return it and the secret of its link, which is not stored."""
    invitation, secret = _new(project, roles, note, days, by), new_secret()
    invitation.token_hash = hashed(secret)
    invitation.save()
    record(
        Action.INVITATION_CREATED,
        project=project,
        thing=invitation,
        name=note,
        by=by,
        roles=list(roles),
        until=invitation.expires_at.isoformat(timespec="minutes"),
    )
    return invitation, secret


@transaction.atomic
def rater_links_create(
    *, project: Project, notes: Sequence[str], joins: str, name: str, days: int, by: User
) -> list[tuple[Invitation, str]]:
    """A link for each person (`notes`), with the role rater; their secrets can be typed from paper. `name`: of what
    they join."""
    links = []
    for note in notes:
        invitation, secret = _new(project, [Role.RATER], note, days, by), typed_secret(_TYPED_GROUPS)
        invitation.token_hash, invitation.joins = hashed(secret), joins
        links.append((invitation, secret))
    Invitation.objects.bulk_create([invitation for invitation, _secret in links])
    details = [
        {
            "evaluation": name,
            "note": invitation.note,
            "until": invitation.expires_at.isoformat(timespec="minutes"),
        }
        for invitation, _secret in links
    ]
    record_all(Action.INVITATION_CREATED, details, project=project, by=by)
    return links


@transaction.atomic
def shared_link_create(
    *, project: Project, joins: str, name: str, most_uses: int, days: int, by: User
) -> tuple[Invitation, str]:
    """A link that `most_uses` people can use, with the role rater; return it and its secret."""
    invitation, secret = _new(project, [Role.RATER], "", days, by), new_secret()
    invitation.token_hash, invitation.joins, invitation.most_uses = hashed(secret), joins, most_uses
    invitation.save()
    until = invitation.expires_at.isoformat(timespec="minutes")
    record(
        Action.INVITATION_CREATED,
        project=project,
        thing=invitation,
        name=name,
        by=by,
        roles=[Role.RATER],
        most=most_uses,
        until=until,
    )
    return invitation, secret


def _new(project: Project, roles: Sequence[str], note: str, days: int, by: User) -> Invitation:
    expires_at = timezone.now() + timedelta(days=days)
    return Invitation(project=project, roles=list(roles), note=note, created_by=by, expires_at=expires_at)


def open_invitations(project: Project | None = None) -> QuerySet[Invitation]:
    """Invitations that can still be accepted, newest first; without `project`, of all projects."""
    invitations = Invitation.objects.filter(
        used_at=None, revoked_at=None, expires_at__gt=timezone.now(), project__archived_at=None
    ).select_related("project", "created_by")
    return (invitations if project is None else invitations.filter(project=project)).order_by("-pk")


def invitation_find(*, secret: str, user: User | None = None) -> Invitation:
    """The invitation of an open link, or of one that `user` has already accepted. Raises NoInvitation."""
    with_secret = Invitation.objects.filter(token_hash=hashed(secret)).select_related("project", "created_by")
    mine = next((row for row in with_secret if user and has_accepted(row, user)), None)
    invitation = mine or open_invitations().filter(token_hash=hashed(secret)).first()
    if invitation is None:
        raise NoInvitation
    return invitation


def has_accepted(invitation: Invitation, user: User) -> bool:
    """Whether the user has used this link."""
    if invitation.is_shared:
        return invitation.accepted.filter(user=user).exists()
    return invitation.used_by_id == user.pk


@transaction.atomic
def invitation_revoke(*, invitation: Invitation) -> bool:
    """Revoke the link. False if it was already used or revoked."""
    waiting = Invitation.objects.filter(pk=invitation.pk, used_at=None, revoked_at=None)
    if not waiting.update(revoked_at=timezone.now()):
        return False
    counted: dict[str, Any] = (
        {"uses": invitation.uses, "most": invitation.most_uses} if invitation.is_shared else {}
    )
    record(
        Action.INVITATION_REVOKED,
        project=invitation.project,
        thing=invitation,
        name=invitation.note,
        **counted,
    )
    return True


@transaction.atomic
def invitation_accept(*, secret: str, user: User, address: str = "") -> tuple[Project, Purpose | None]:
    """Make `user` a member with the invitation's roles, keeping existing roles, and let them join what it is for.
    Repeating it changes nothing.

    If more people use a link than may, the first ones succeed. `address`: the network address from which the account
    was made with the link. Raises NoInvitation for the others, TooManyAccounts.
    """
    invitation = invitation_find(secret=secret, user=user)
    purpose = purpose_of(invitation)
    if has_accepted(invitation, user):
        return invitation.project, purpose
    _take_use(invitation, user, address)
    roles_add(
        project=invitation.project, user=user, roles=[Role.RATER] if invitation.joins else invitation.roles
    )
    if purpose is not None:
        purpose.join(user)
    _record_use(invitation, user, purpose)
    return invitation.project, purpose


def _take_use(invitation: Invitation, user: User, address: str) -> None:
    """Count the use. The update locks the link's row, so that no two people get its last use."""
    now = timezone.now()
    waiting = Invitation.objects.filter(
        pk__in=open_invitations().filter(pk=invitation.pk).values("pk"), used_at=None
    )
    if not invitation.is_shared:
        if not waiting.update(used_at=now, used_by=user):
            raise NoInvitation
        return
    last = When(uses__gte=F("most_uses") - 1, then=Value(now))
    if not waiting.filter(uses__lt=F("most_uses")).update(uses=F("uses") + 1, used_at=Case(last)):
        raise NoInvitation
    if address:
        refuse_many_accounts(address)
    InvitationUse.objects.create(invitation=invitation, user=user, address=address)


def refuse_many_accounts(address: str) -> None:
    """Raises TooManyAccounts if shared links made as many accounts from this address as they may within an hour."""
    recent = InvitationUse.objects.filter(address=address, at__gt=timezone.now() - _HOUR).order_by("-at")
    oldest = recent.values_list("at", flat=True)[ACCOUNTS_AN_HOUR - 1 : ACCOUNTS_AN_HOUR].first()
    if oldest is not None:
        raise TooManyAccounts(oldest + _HOUR)


def _record_use(invitation: Invitation, user: User, purpose: Purpose | None) -> None:
    detail: dict[str, Any] = {"roles": [Role.RATER] if invitation.joins else invitation.roles}
    if purpose is not None:
        detail["evaluation"] = purpose.name
    if invitation.is_shared:
        invitation.refresh_from_db(fields=["uses"])
        detail |= {"uses": invitation.uses, "most": invitation.most_uses}
    record(
        Action.INVITATION_USED,
        project=invitation.project,
        thing=invitation,
        name=invitation.note,
        by=user,
        **detail,
    )


@transaction.atomic
def account_join(
    *, secret: str, username: str, name: str, password: str, address: str
) -> tuple[User, Project, Purpose | None]:
    """Create an account and its membership for the holder of the link. Raises NoInvitation or TooManyAccounts, creating
    nothing."""
    invitation = invitation_find(secret=secret)
    if invitation.is_shared:
        refuse_many_accounts(address)  # before the password is hashed
    user = User.objects.create_user(username=username, password=password, first_name=name)
    record(Action.ACCOUNT_CREATED, project=invitation.project, thing=user, by=user)
    return user, *invitation_accept(secret=secret, user=user, address=address)
