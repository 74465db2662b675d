"""Invitations: a link that one person can use once, until it expires or is revoked."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from evalsite.accounts.members import roles_add
from evalsite.accounts.models import Invitation, Project, User
from evalsite.audit import Action, record
from evalsite.secrets import hashed, new_secret


class NoInvitation(Exception):
    """The link is unknown, used, revoked or expired; only project administrators see which."""


@transaction.atomic
def invitation_create(
    *, project: Project, roles: Sequence[str], note: str, days: int, by: User
) -> tuple[Invitation, str]:
    """Create an invitation; return it and the secret of its link, which is not stored."""
    secret = new_secret()
    invitation = Invitation.objects.create(
        project=project,
        roles=list(roles),
        note=note,
        token_hash=hashed(secret),
        created_by=by,
        expires_at=timezone.now() + timedelta(days=days),
    )
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


def open_invitations(project: Project | None = None) -> QuerySet[Invitation]:
    """Invitations that can still be accepted, newest first; without `project`, of all projects."""
    invitations = Invitation.objects.filter(
        used_at=None, revoked_at=None, expires_at__gt=timezone.now(), project__archived_at=None
    ).select_related("project", "created_by")
    return (invitations if project is None else invitations.filter(project=project)).order_by("-pk")


def invitation_find(*, secret: str, user: User | None = None) -> Invitation:
    """The invitation of an open link, or of one that `user` has already accepted. Raises NoInvitation."""
    with_secret = Invitation.objects.filter(token_hash=hashed(secret)).select_related("project", "created_by")
    mine = with_secret.filter(used_by=user).first() if user else None
    invitation = mine or open_invitations().filter(token_hash=hashed(secret)).first()
    if invitation is None:
        raise NoInvitation
    return invitation


@transaction.atomic
def invitation_revoke(*, invitation: Invitation) -> bool:
    """Revoke the link. False if it was already used or revoked."""
    waiting = Invitation.objects.filter(pk=invitation.pk, used_at=None, revoked_at=None)
    if not waiting.update(revoked_at=timezone.now()):
        return False
    record(Action.INVITATION_REVOKED, project=invitation.project, thing=invitation, name=invitation.note)
    return True


@transaction.atomic
def invitation_accept(*, secret: str, user: User) -> Project:
    """Make `user` a member with the invitation's roles, keeping existing roles. Repeating it changes nothing.

    If two people use the same link, the first one succeeds. Raises NoInvitation for the other.
    """
    invitation = invitation_find(secret=secret, user=user)
    if invitation.used_by_id == user.pk:
        return invitation.project
    waiting = open_invitations().filter(pk=invitation.pk)
    if not Invitation.objects.filter(pk__in=waiting.values("pk"), used_at=None).update(
        used_at=timezone.now(), used_by=user
    ):
        raise NoInvitation
    roles_add(project=invitation.project, user=user, roles=invitation.roles)
    record(
        Action.INVITATION_USED,
        project=invitation.project,
        thing=invitation,
        name=invitation.note,
        by=user,
        roles=invitation.roles,
    )
    return invitation.project


@transaction.atomic
def account_join(*, secret: str, username: str, name: str, password: str) -> tuple[User, Project]:
    """Create an account and its membership for the holder of the link. Raises NoInvitation, creating nothing."""
    user = User.objects.create_user(username=username, password=password, first_name=name)
    record(Action.ACCOUNT_CREATED, project=invitation_find(secret=secret).project, thing=user, by=user)
    return user, invitation_accept(secret=secret, user=user)
