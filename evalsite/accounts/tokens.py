"""API tokens of users."""

from __future__ import annotations

from datetime import timedelta

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from evalsite.accounts.models import ApiToken, Project, User
from evalsite.audit import Action, record
from evalsite.secrets import hashed, new_secret

PREFIX = "evs_"  # recognisable by secret scanners
BEGINNING = 10
USE_NOTED_EVERY = timedelta(minutes=1)
MOST = 50


def tokens_of(user: User) -> QuerySet[ApiToken]:
    """A user's tokens that are not revoked, newest first."""
    return ApiToken.objects.filter(user=user, revoked_at=None).select_related("project").order_by("-pk")


@transaction.atomic
def token_create(
    *,
    user: User,
    name: str,
    days: int | None,
    scope: str = ApiToken.Scope.WRITE,
    project: Project | None = None,
) -> tuple[ApiToken, str]:
    """Create a token valid for `days` (None: until revoked); return it and its text, which is not stored.

    `project`: the only one that it opens (None: all of the user's).
    """
    secret = new_secret(PREFIX)
    ends = timezone.now() + timedelta(days=days) if days else None
    token = ApiToken.objects.create(
        user=user,
        name=name,
        token_hash=hashed(secret),
        prefix=secret[:BEGINNING],
        expires_at=ends,
        scope=scope,
        project=project,
    )
    until = ends.isoformat(timespec="minutes") if ends else None
    record(Action.TOKEN_CREATED, thing=token, by=user, project=project, until=until, scope=str(scope))
    return token, secret


@transaction.atomic
def token_revoke(*, token: ApiToken) -> bool:
    """Revoke a token. False if it was already revoked."""
    if not ApiToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=timezone.now()):
        return False
    record(Action.TOKEN_REVOKED, thing=token, of=token.user.username)
    return True


def token_find(secret: str) -> ApiToken | None:
    """The valid token with this text, of an active user; its use is recorded at most once a minute."""
    now = timezone.now()
    valid = ApiToken.objects.filter(Q(expires_at=None) | Q(expires_at__gt=now), revoked_at=None)
    token = (
        valid.filter(token_hash=hashed(secret), user__is_active=True)
        .select_related("user", "project")
        .first()
    )
    if token and (token.last_used_at is None or token.last_used_at < now - USE_NOTED_EVERY):
        ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)
    return token
