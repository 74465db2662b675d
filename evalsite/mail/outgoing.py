"""Mail on its way: stored in the caller's transaction, sent by a worker, tried again like webhooks."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta
from smtplib import SMTPException

from django.conf import settings
from django.core.mail import EmailMessage
from django.db import transaction
from django.utils import timezone, translation

from evalsite import secrets
from evalsite.accounts.models import User
from evalsite.mail.models import Kind, MailAddress, OutgoingMail
from evalsite.tasks import jobs
from evalsite.tasks.jobs import Hold
from evalsite.webhooks.delivery import RETRY_AFTER

log = logging.getLogger("evalsite.mail")
JOB = "send_mail"
KEPT_FOR = timedelta(days=2)

Compose = Callable[[], tuple[str, str]]
"""Returns subject and text, in the language that is active."""


def sends_mail() -> bool:
    """Whether the site sends mail."""
    return bool(settings.CONFIG.email_url)


def mail_user(kind: Kind, user: User, compose: Compose) -> bool:
    """Mail a user who confirmed an address and has this kind switched on, once the transaction is committed; in the
    user's language. False if nothing is sent."""
    if not sends_mail() or not user.is_active:
        return False
    wanted = MailAddress.objects.filter(user=user, **{kind: True}).exclude(address="").first()
    if wanted is None:
        return False
    mail_address(kind, user, wanted.address, compose)
    return True


def mail_address(kind: Kind, user: User, address: str, compose: Compose) -> None:
    """Like `mail_user`, to the address that is to be confirmed."""
    with translation.override(user.language or settings.LANGUAGE_CODE):
        subject, text = compose()
    mail = OutgoingMail.objects.create(
        user=user,
        kind=kind,
        address=address,
        subject=" ".join(subject.split())[:300],
        text_encrypted=secrets.encrypt(text),
    )
    jobs.request(JOB, mail.pk)


@jobs.job(JOB, OutgoingMail)
def send(hold: Hold, mail: OutgoingMail) -> None:
    """Send a mail, unless its reader has changed the address or switched it off meanwhile."""
    problem = _problem_of_sending(mail) if _is_wanted(mail) else ""
    with transaction.atomic():
        if problem and mail.retries < len(RETRY_AFTER):
            OutgoingMail.objects.filter(pk=mail.pk).update(retries=mail.retries + 1)
            hold.release(RETRY_AFTER[mail.retries])
            return
        hold.finish()
        mail.delete()
    if problem:
        log.error("A mail (%s) was given up: %s", mail.kind, problem)


def _is_wanted(mail: OutgoingMail) -> bool:
    rows = MailAddress.objects.filter(user=mail.user_id, user__is_active=True)
    if mail.kind == Kind.CONFIRM:
        return rows.filter(pending=mail.address).exists()
    return rows.filter(address=mail.address, **{mail.kind: True}).exists()


def _problem_of_sending(mail: OutgoingMail) -> str:
    """'' once it is sent."""
    try:
        text = secrets.decrypt_text(mail.text_encrypted)
        EmailMessage(mail.subject, text, settings.DEFAULT_FROM_EMAIL, [mail.address]).send()
    except (SMTPException, OSError, ValueError) as error:
        return type(error).__name__
    except secrets.Undecryptable:
        return "undecryptable"
    return ""


def any_encrypted() -> bool:
    """Whether a mail waits that only our key can decrypt."""
    return OutgoingMail.objects.exists()


def delete_old() -> None:
    """Delete mail that could not be sent, and links that expired long ago; called by the reconciler."""
    from evalsite.mail.models import PasswordReset

    before = timezone.now() - KEPT_FOR
    OutgoingMail.objects.filter(created_at__lt=before).delete()
    PasswordReset.objects.filter(expires_at__lt=before).delete()
