"""Password resets by mail. A worker looks the address up, so that the page takes as long for unknown ones."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from evalsite.accounts.models import User
from evalsite.audit import Action, record
from evalsite.links import absolute_url
from evalsite.mail.models import Kind, MailAddress, PasswordReset
from evalsite.mail.outgoing import mail_user, sends_mail
from evalsite.secrets import hashed, new_secret
from evalsite.tasks import jobs
from evalsite.tasks.jobs import Hold

JOB = "mail_password_reset"
VALID_FOR = timedelta(minutes=30)


def resets_by_mail() -> bool:
    """Whether passwords can be reset by mail: links need the site's address."""
    return sends_mail() and bool(settings.CONFIG.site_url)


@transaction.atomic
def reset_request(*, address: str) -> None:
    """Have links mailed to the accounts that confirmed this address, if there are any."""
    request = PasswordReset.objects.create(address=address, expires_at=timezone.now() + VALID_FOR)
    jobs.request(JOB, request.pk)


@jobs.job(JOB, PasswordReset)
def mail_links(hold: Hold, request: PasswordReset) -> None:
    """Store a link for each account with the address and mail it."""
    rows = MailAddress.objects.filter(address__iexact=request.address, user__is_active=True, resets=True)
    with transaction.atomic():
        hold.finish()
        for row in rows.exclude(address="").select_related("user"):
            _mail_link(row.user, request)
        request.delete()


def _mail_link(user: User, request: PasswordReset) -> None:
    secret = new_secret()
    PasswordReset.objects.create(user=user, token_hash=hashed(secret), expires_at=request.expires_at)

    def compose() -> tuple[str, str]:
        text = _(
            "With this link you set a new password for %(name)s. It works once, for 30 minutes:\n\n%(link)s\n\n"
            "If you did not ask for it, do nothing."
        )
        values = {"name": user.username, "link": absolute_url("mail:reset", secret)}
        return _("Reset your password"), text % values

    mail_user(Kind.RESETS, user, compose)


def reset_find(secret: str) -> PasswordReset | None:
    """The link with this secret, if it can still be used."""
    rows = PasswordReset.objects.filter(token_hash=hashed(secret), used_at=None, user__is_active=True)
    return rows.filter(expires_at__gt=timezone.now()).select_related("user").first()


@transaction.atomic
def reset_use(*, secret: str, password: str) -> bool:
    """Set a password by a link; the user's sessions and tokens end, and so do other links. False if the link was used
    or has expired."""
    link = reset_find(secret)
    if link is None or link.user is None:
        return False
    now = timezone.now()
    if not PasswordReset.objects.filter(pk=link.pk, used_at=None).update(used_at=now):
        return False
    user = User.objects.select_for_update().get(pk=link.user.pk)
    PasswordReset.objects.filter(user=user, used_at=None).update(used_at=now)
    user.set_password(password)
    user.must_change_password = False
    user.save(update_fields=["password", "must_change_password"])
    user.tokens.all().delete()
    record(Action.PASSWORD_RESET, thing=user, by=user)
    return True
