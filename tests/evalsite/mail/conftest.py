from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from django.conf import LazySettings
from django.core import mail
from django.core.mail import EmailMessage

from evalsite.accounts.models import User
from evalsite.mail.models import MailAddress
from evalsite.models import Job
from evalsite.tasks import jobs

Sent = Callable[[], list[EmailMessage]]


@pytest.fixture
def mail_site(settings: LazySettings) -> None:
    """A site that sends mail, behind a name that clients may forge."""
    settings.LOCAL_MODE = False
    settings.ALLOWED_HOSTS = ["*"]
    settings.CONFIG = replace(
        settings.CONFIG, site_url="https://evals.example", email_url="memorymail://", email_from="a@b.example"
    )


@pytest.fixture
def sent() -> Sent:
    """Do all jobs of mail, and return what was sent since the last call."""

    def work() -> list[EmailMessage]:
        for _ in range(3):
            for job in Job.objects.filter(kind__in=("mail_password_reset", "send_mail")).order_by("pk"):
                jobs.run(job.kind, job.object_id)
        messages = list(mail.outbox)
        mail.outbox.clear()
        return messages

    return work


def confirmed(user: User, address: str = "", **more: object) -> MailAddress:
    """The user's confirmed address."""
    return MailAddress.objects.create(user=user, address=address or f"{user.username}@mail.example", **more)
