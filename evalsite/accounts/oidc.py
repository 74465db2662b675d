"""Single sign-on with OpenID Connect: accounts. oidc_views.py has the pages, oidc_flow.py talks to the provider.

Disabled unless OIDC_ISSUER is set. A user is identified by issuer and subject, never by email address or name, which
may be reassigned. On first sign-in, a user gets an account without a project.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction

from evalsite.accounts.models import Identity, User
from evalsite.audit import Action, record
from evalsite.cells import clean_text


class SignInRefused(Exception):
    """The provider's response is invalid or a refusal; the text is for the log."""


@dataclass(frozen=True, slots=True)
class PendingSignIn:
    """Session data between the redirect to the provider and the return."""

    state: str
    nonce: str
    verifier: str
    next: str


def user_of(claims: dict[str, Any]) -> User:
    """The account for the claims, created on first sign-in. Raises SignInRefused if it is deactivated."""
    identity_key = {"issuer": settings.CONFIG.oidc_issuer, "subject": claims["sub"][:255]}
    try:
        identity = Identity.objects.filter(**identity_key).select_related("user").first() or _user_create(
            claims, identity_key
        )
    except IntegrityError:  # created by a concurrent sign-in of the same user
        identity = Identity.objects.select_related("user").get(**identity_key)
    if not identity.user.is_active:
        raise SignInRefused("the account is closed")
    return identity.user


@transaction.atomic
def _user_create(claims: dict[str, Any], identity_key: dict[str, str]) -> Identity:
    wanted = str(claims.get("preferred_username") or claims.get("email") or claims["sub"])
    user = User(username=_free_name(wanted), first_name=clean_text(str(claims.get("name") or ""))[:150])
    user.email = clean_text(str(claims.get("email") or ""))[:254]
    user.set_unusable_password()
    user.save()
    record(Action.ACCOUNT_CREATED, thing=user, by=user, provider=identity_key["issuer"])
    return Identity.objects.create(user=user, **identity_key)


def _free_name(wanted: str) -> str:
    """`wanted` without characters not allowed in user names, numbered if the name is taken."""
    base = re.sub(r"[^\w.@+-]", "", wanted)[:140] or "user"
    like = User.objects.filter(username__istartswith=base).values_list("username", flat=True)
    taken = {name.lower() for name in like}
    numbered = (f"{base}-{number}" for number in range(2, len(taken) + 3))
    return next(name for name in (base, *numbered) if name.lower() not in taken)
