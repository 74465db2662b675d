"""Messages about what a file is waiting for: the data worker processes one task at a time."""

from __future__ import annotations

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from datasets.importing.worker import JOB, SMALL
from datasets.models import Version
from evalsite import health
from evalsite.accounts.models import Project
from evalsite.models import Job
from evalsite.tasks import jobs
from evalsite.templatetags.show import percent


def for_version(version: Version) -> str:
    """What this version waits for; '' if it will be picked up immediately."""
    if health.is_disk_full():
        return _disk_full()
    first = _being_read().exclude(pk=version.pk).first()
    if first is None or (version.size < SMALL <= first.size):
        return ""  # matching and comparing yield to uploads, and a large upload to a small one
    return _behind(first, version.dataset.project)


def for_further_work(project: Project) -> str:
    """The same for answers to match and versions to compare, which wait for all uploads."""
    if health.is_disk_full():
        return _disk_full()
    if reading := _being_read().first():
        return _behind(reading, project)
    if jobs.ids("match_answers", Job.State.WORKING).exists():
        return _("Queued: other answers are being matched.")
    if jobs.ids("compare_versions", Job.State.WORKING).exists():
        return _("Queued: two other versions are being compared.")
    return ""


def _being_read() -> QuerySet[Version]:
    reading = Version.objects.filter(pk__in=jobs.ids(JOB, Job.State.WORKING))
    return reading.select_related("dataset").order_by("pk")


def _disk_full() -> str:
    return _(
        "The server’s disk is full. This continues when there is space again; tell the administrator of the site."
    )


def _behind(version: Version, project: Project) -> str:
    """Names of data in other projects are not shown."""
    share = percent(version.bytes_read / version.size if version.size else 0, 0)
    if version.dataset.project_id != project.pk:
        return _("Queued behind a file of another project (%(share)s read).") % {"share": share}
    name = f"{version.dataset.name} v{version.number}"
    return _("Queued behind “%(name)s” (%(share)s read).") % {"name": name, "share": share}
