"""One mail a day about ratings that wait, in the morning of the reader's zone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _

from evalsite.accounts.models import User
from evalsite.hooks import Hook
from evalsite.mail.models import Kind, MailAddress
from evalsite.mail.outgoing import mail_user, sends_mail

HOUR = 8
waiting_ratings: Hook[Callable[[User], Sequence[str]]] = Hook("evalsite.mail.digests.waiting_ratings")
"""Return a line for each evaluation in which a user's ratings wait."""


def send_due(now: datetime | None = None) -> None:
    """Mail everybody whose morning has come and whose ratings wait; called by the reconciler."""
    if not sends_mail():
        return
    now = now or timezone.now()
    rows = MailAddress.objects.filter(ratings=True, user__is_active=True).exclude(address="")
    for row in rows.select_related("user"):
        local = now.astimezone(_zone(row.time_zone))
        if local.hour >= HOUR and row.digest_on != local.date():
            _send(row, local)


def _zone(name: str) -> ZoneInfo:
    """A person's time zone; the site's where none is stored, or one that this machine does not know any more."""
    try:
        return ZoneInfo(name or settings.TIME_ZONE)
    except (KeyError, ValueError, OSError):
        return ZoneInfo(settings.TIME_ZONE)


@transaction.atomic
def _send(row: MailAddress, local: datetime) -> None:
    unsent = Q(digest_on=None) | ~Q(digest_on=local.date())
    if not MailAddress.objects.filter(unsent, pk=row.pk).update(digest_on=local.date()):
        return
    lines = [line for find in waiting_ratings for line in find(row.user)]
    if lines:
        mail_user(
            Kind.RATINGS,
            row.user,
            lambda: (_("Ratings wait for you"), "\n\n".join([_("Ratings wait for you:"), *lines])),
        )
