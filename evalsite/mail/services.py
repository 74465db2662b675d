"""A user's address and switches, and the texts of mail."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from evalsite.accounts.models import Invitation, User
from evalsite.audit import Action, record
from evalsite.links import absolute_url
from evalsite.mail.models import Kind, MailAddress
from evalsite.mail.outgoing import mail_address, mail_user
from evalsite.secrets import hashed, new_secret

CONFIRM_WITHIN = timedelta(hours=24)


def mail_of(user: User) -> MailAddress:
    """The user's address and switches; not stored yet if nothing was set."""
    return MailAddress.objects.filter(user=user).first() or MailAddress(user=user)


@transaction.atomic
def switches_set(*, user: User, time_zone: str, **switches: bool) -> None:
    """Set the zone ('': the site's) and which kinds of mail are sent."""
    MailAddress.objects.update_or_create(user=user, defaults={"time_zone": time_zone, **switches})


@transaction.atomic
def address_request(*, user: User, address: str) -> None:
    """Mail a link by which the owner of the address confirms it. Until then the earlier one stays."""
    secret = new_secret()
    changes: dict[str, Any] = {
        "pending": address,
        "token_hash": hashed(secret),
        "token_until": timezone.now() + CONFIRM_WITHIN,
    }
    MailAddress.objects.update_or_create(user=user, defaults=changes)

    def compose() -> tuple[str, str]:
        text = _(
            "Confirm that %(name)s of evalsite may send mail to this address. The link works for a day:\n\n%(link)s\n\n"
            "If this is not your account, do nothing."
        )
        values = {"name": user.username, "link": absolute_url("mail:confirm", secret)}
        return _("Confirm your address"), text % values

    mail_address(Kind.CONFIRM, user, address, compose)


@transaction.atomic
def address_remove(*, user: User) -> None:
    """Forget the address."""
    empty = {"address": "", "pending": "", "token_hash": "", "token_until": None}
    if MailAddress.objects.filter(user=user).exclude(address="", pending="").update(**empty):
        record(Action.MAIL_ADDRESS_CHANGED, thing=user, by=user)


@transaction.atomic
def address_confirm(*, user: User, secret: str) -> bool:
    """Confirm the address that a link was sent to. False if the link is another user's, old or unknown."""
    row = to_confirm(user, secret)
    if row is None:
        return False
    row.address, row.pending, row.token_hash, row.token_until = row.pending, "", "", None
    row.save()
    record(Action.MAIL_ADDRESS_CHANGED, thing=user, by=user)
    return True


def to_confirm(user: User, secret: str) -> MailAddress | None:
    """The user's address that a link confirms."""
    rows = MailAddress.objects.filter(user=user, token_hash=hashed(secret), token_until__gt=timezone.now())
    return rows.exclude(pending="").first()


def mail_invitation(invitation: Invitation, secret: str, address: str = "") -> None:
    """Mail an invitation to the accounts that confirmed the address, else the one in its note."""
    address = (address or invitation.note).strip()
    link = absolute_url("accounts:join", secret)
    if not link or not address:
        return

    def compose() -> tuple[str, str]:
        values = {"project": invitation.project.name, "link": link}
        text = _("You are invited to the project %(project)s of evalsite:\n\n%(link)s")
        return _("Invitation to %(project)s") % values, text % values

    for row in MailAddress.objects.filter(address__iexact=address).select_related("user"):
        mail_user(Kind.INVITATIONS, row.user, compose)


def with_link(text: str, link: str) -> str:
    """A mail's text, and a link if the site's address is known."""
    return f"{text}\n\n{link}" if link else text
