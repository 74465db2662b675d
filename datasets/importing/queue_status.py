"""Messages about what a file is waiting for: the data worker processes one task at a time."""

from __future__ import annotations

from django.utils.translation import gettext as _

from datasets.importing.worker import SMALL
from datasets.models import Attachment, Difference, DifferenceState, Version, VersionState
from evalsite.accounts.models import Project
from evalsite.templatetags.show import percent


def for_version(version: Version) -> str:
    """What is processed before this version; '' if it will be picked up immediately."""
    reading = Version.objects.filter(state=VersionState.READING).exclude(pk=version.pk)
    first = reading.select_related("dataset").order_by("pk").first()
    if first is None or (version.size < SMALL <= first.size):
        return ""  # matching and comparing yield to uploads, and a large upload to a small one
    return _being_read(first, version.dataset.project)


def for_further_work(project: Project) -> str:
    """The same for answers to match and versions to compare, which wait for all uploads."""
    reading = (
        Version.objects.filter(state=VersionState.READING).select_related("dataset").order_by("pk").first()
    )
    if reading:
        return _being_read(reading, project)
    if Attachment.objects.filter(state=Attachment.State.MATCHING).exists():
        return _("Queued: other answers are being matched.")
    if Difference.objects.filter(state=DifferenceState.COMPARING).exists():
        return _("Queued: two other versions are being compared.")
    return ""


def _being_read(version: Version, project: Project) -> str:
    """Names of data in other projects are not shown."""
    share = percent(version.bytes_read / version.size if version.size else 0, 0)
    if version.dataset.project_id != project.pk:
        return _("Queued behind a file of another project (%(share)s read).") % {"share": share}
    name = f"{version.dataset.name} v{version.number}"
    return _("Queued behind “%(name)s” (%(share)s read).") % {"name": name, "share": share}
