"""Links to a report for readers without an account: figures only, until a date or until revoked."""

from __future__ import annotations

from datetime import timedelta

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from evalsite.accounts.models import User
from evalsite.audit import Action, record
from evalsite.secrets import hashed, new_secret
from judging.reports.models import ReportLink
from judging.runs.models import Run

DAYS = (7, 30, 90, 365)


class NoReportLink(Exception):
    """The link is unknown, expired or revoked, or its report can't be shared now; the response does not say which."""


def may_be_shared(run: Run) -> bool:
    """False for an open human evaluation: its raters must not learn whose answers they rate."""
    return run.ended or not run.by_people


@transaction.atomic
def report_link_create(*, run: Run, note: str, days: int, by: User) -> tuple[ReportLink, str]:
    """Create a link. Returns it with its secret, which is not stored."""
    secret = new_secret()
    made = ReportLink.objects.create(
        run=run,
        note=note,
        token_hash=hashed(secret),
        created_by=by,
        expires_at=timezone.now() + timedelta(days=days),
    )
    until = made.expires_at.isoformat(timespec="minutes")
    record(
        Action.REPORT_SHARED, project=run.project, thing=made, name=run.name, by=by, note=note, until=until
    )
    return made, secret


@transaction.atomic
def report_link_revoke(*, link: ReportLink) -> bool:
    """Revoke a link. False if it was revoked before."""
    if not ReportLink.objects.filter(pk=link.pk, revoked_at=None).update(revoked_at=timezone.now()):
        return False
    run = link.run
    record(Action.REPORT_UNSHARED, project=run.project, thing=link, name=run.name, note=link.note)
    return True


def report_links(run: Run) -> QuerySet[ReportLink]:
    """All links to a run's report, newest first."""
    return ReportLink.objects.filter(run=run).select_related("created_by").order_by("-pk")


def shared_run(*, secret: str) -> Run:
    """The run of a valid link. Raises NoReportLink."""
    found = (
        ReportLink.objects.filter(token_hash=hashed(secret), revoked_at=None, expires_at__gt=timezone.now())
        .filter(run__archived_at=None, run__project__archived_at=None)
        .select_related("run__project", "run__version__dataset")
        .first()
    )
    if found is None or not may_be_shared(found.run):
        raise NoReportLink
    return found.run
