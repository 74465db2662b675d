"""Applies repairs by creating a version, whose file a worker makes from its parent's before it is read.

The file is made in a folder of the attempt and moved into place in the transaction that stores its SHA-256; without
one, the next worker starts over. The parent and its file are only read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext as _

from datasets import uploads
from datasets.core.findings import printable
from datasets.core.formats import model_key
from datasets.core.repair.apply import Repair, repair_file
from datasets.core.repair.kinds import ORDER
from datasets.importing import tables
from datasets.importing.worker import Progress
from datasets.models import Dataset, Version, VersionState
from datasets.services import OPEN_STATES, version_add, version_from
from datasets.versions import repair_offers, temp_files
from evalsite.accounts.models import User
from evalsite.audit import Action
from evalsite.storage import files
from evalsite.tasks.jobs import Hold

LONGEST_NAME = 1000


def version_repair(*, version: Version, repairs: Sequence[Repair], user: User | None) -> tuple[Version, bool]:
    """Create a version with these repairs, applied in the background; return it with False if it already exists.

    Raises ValidationError with a message if there is nothing to repair.
    """
    steps = _checked(version, repairs)
    names = [step.name for step in steps]
    stored = [{key: value for key, value in asdict(step).items() if value} for step in steps]
    with transaction.atomic():
        Dataset.objects.select_for_update().get(pk=version.dataset_id)  # serialises concurrent calls
        if same := _made_before(version, stored):
            return same, False
        new_version = version_from(
            version,
            "repair",
            file_name=file_name(version.file_name, names),
            stored_as=uploads.new_name(),
            size=version.size,
            chosen_format=version.chosen_format,
            repairs=stored,
        )
        return version_add(new_version, Action.DATASET_REPAIRED, user, repairs=names), True


def _checked(version: Version, repairs: Sequence[Repair]) -> list[Repair]:
    """The distinct repairs in order, with merging added after renaming."""
    if version.state != VersionState.READY or not version.file_is_kept:
        raise ValidationError(_("Only a version whose file was read and stored can be repaired."))
    names = repair_offers.names_offered(version)
    if not repairs or any(repair.name not in names for repair in repairs):
        raise ValidationError(_("This repair does not apply to this version."))
    for repair in repairs:
        if repair.name == "unify_model_names":
            _check_name(version, repair)
    chosen = set(repairs)
    if any(repair.name == "unify_model_names" for repair in chosen):
        chosen.add(Repair("merge_models"))
    return sorted(chosen, key=lambda repair: (ORDER.index(repair.name), repair.replaces, repair.value))


def _check_name(version: Version, repair: Repair) -> None:
    name = repair.value
    if not name.strip() or len(name) > LONGEST_NAME or printable(name) != name:
        raise ValidationError(_("Choose or enter a name for the models to merge."))
    groups = {group.key for group in repair_offers.alike_groups(version)}
    if model_key(repair.replaces or name) not in groups:
        text = _("No other names in this version are similar to “%(name)s”.")
        raise ValidationError(text % {"name": name})


def _made_before(version: Version, repairs: list[dict[str, str]]) -> Version | None:
    """A version with the same repairs, finished or in progress; failed and cancelled ones don't count."""
    usable = Version.objects.filter(
        parent=version, origin="repair", state__in=(*OPEN_STATES, VersionState.READY), cancel_requested=False
    )
    return next(
        (earlier for earlier in usable.order_by("-number") if earlier.repairs == repairs),
        None,
    )


def file_name(name: str, repairs: Sequence[str]) -> str:
    """The repaired file's name: without .gz, and with .jsonl if it has one object per line."""
    name = re.sub(r"(?<=.)\.gz$", "", name, flags=re.IGNORECASE)
    if "to_jsonl" in repairs and not name.lower().endswith((".jsonl", ".ndjson")):
        name = re.sub(r"(?<=.)\.(json|txt)$", "", name, flags=re.IGNORECASE)[:249] + ".jsonl"
    return name


def write_file(version: Version, hold: Hold, progress: Progress) -> None:
    """Make the version's file from its parent's; `progress` gets the share done and may raise to stop it.

    Also raises OSError, Unreadable, and WorkStopped if another worker has the version now.
    """
    assert version.parent is not None  # only versions with a parent have repairs
    with new_file(version, hold, progress) as target:
        parents = files.local(version.parent.stored_as, lambda: progress(0.0))
        steps = [Repair(**step) for step in version.repairs]
        repair_file(parents, target, steps, uploads.limits_of_kept(), lambda share: progress(share * 0.9))


@contextmanager
def new_file(version: Version, hold: Hold, progress: Progress) -> Iterator[Path]:
    """Where to write the version's file, which is then stored. Raises WorkStopped if another worker has it now."""
    with temp_files.work_folder("read_version", version.pk) as folder:
        target = folder / "file"
        yield target
        size, sha256 = temp_files.written_out(target, lambda share: progress(0.9 + share * 0.1))
        files.send(target, version.stored_as, lambda: progress(1.0))
        with transaction.atomic():
            tables.advance(hold, size=size, sha256=sha256, bytes_read=0)
            files.place(target, version.stored_as)
