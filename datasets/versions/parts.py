"""Versions uploaded as several files: joined into one file, with the original bytes of each part stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from datasets import services, uploads
from datasets.core.decode import Upload
from datasets.core.formats import format_called
from datasets.core.imports.places import place_in
from datasets.messages import message
from datasets.models import FileImport, Version, VersionState
from datasets.uploads import limits, limits_of_kept
from datasets.versions.joined_parts import Misfit, PartSource, Placed, common_name, fit_together, place_of
from evalsite.accounts.models import Project, User
from evalsite.audit import Action
from evalsite.storage import files
from evalsite.templatetags.show import filesize

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

LONGEST_HEADER = 200  # characters of a header to quote in a message


@dataclass(frozen=True, slots=True)
class FilePart:
    """One of the files, as stored in `Version.parts`.

    `first_line` is where it starts in the version's file, `skipped` how many of its own lines precede that.
    """

    name: str
    size: int
    sha256: str
    stored_as: str
    encoding: str
    first_line: int
    skipped: int


@dataclass(frozen=True, slots=True)
class PartLine:
    """A line in one of the files."""

    file: str
    line: int


def files_needed() -> Iterator[str]:
    """The names of the files of all versions that were read."""
    ready = Version.objects.filter(state=VersionState.READY).exclude(stored_as="")
    for stored_as, parts in ready.values_list("stored_as", "parts").iterator():
        yield stored_as
        yield from (part["stored_as"] for part in parts)


def parts_of(version: Version) -> list[FilePart]:
    """The files that the version was joined from; empty if it was uploaded as one."""
    return [FilePart(**part) for part in version.parts]


def only_part(version: Version) -> FilePart | None:
    """The file of which the version is an import; None if there are several, or it is an upload."""
    parts = parts_of(version)
    return parts[0] if version.origin == "import" and len(parts) == 1 else None


def places(version: Version) -> Callable[[int | None], PartLine | None]:
    """A function that maps a line of the version to its file and line; returns None for a single file.

    For imported files, it returns what is known.
    """
    if version.origin == "import":
        return _imported_places(version)
    starts = [(part["name"], part["first_line"], part["skipped"]) for part in version.parts]
    placed = [(first, skipped) for _name, first, skipped in starts]

    def find(line: int | None) -> PartLine | None:
        if line is None or not starts:
            return None
        index, own_line = place_of(line, placed)
        return PartLine(starts[index][0], own_line)

    return find


def _imported_places(version: Version) -> Callable[[int | None], PartLine | None]:
    stored = FileImport.objects.filter(new_version=version).values_list("places", flat=True).first() or {}
    names, ranges = stored.get("names", []), stored.get("stretches", [])

    def find(line: int | None) -> PartLine | None:
        place = place_in(names, ranges, line) if line is not None else None
        return PartLine(*place) if place else None

    return find


def name_of_parts(names: Sequence[str]) -> str:
    """The data set name suggested by the names of its files."""
    stems = [uploads.name_from(name) for name in names]
    return (common_name(stems) if len(stems) > 1 else "") or stems[0]


def dataset_upload_parts(
    *,
    project: Project,
    name: str,
    named_files: Sequence[tuple[BinaryIO, str]],
    user: User | None,
    chosen_format: str = "",
) -> Version:
    """Store the files and have their rows read as one data set, or as a new version of the one called `name`.

    `named_files`: each file with its name, in order. Raises ValidationError with a message naming the file that cannot
    be joined or stored; nothing is left then.
    """
    sources = [PartSource(uploads.shown_name(name), Upload(file, limits())) for file, name in named_files]
    with files.deleted_on_error() as stored_names:
        try:
            joining = fit_together(sources, limits_of_kept().file_bytes, format_called(chosen_format))
            whole = services.store_chunks(joining, joining.most)
        except Misfit as misfit:
            raise ValidationError(
                _("%(problem)s Nothing was saved.") % {"problem": _problem(misfit)}
            ) from None
        stored_names.append(whole.stored_as)
        parts = []
        for (file, _name), source, placed in zip(named_files, sources, joining.placed, strict=True):
            stored = _store_part(file, source.name)
            stored_names.append(stored.stored_as)
            parts.append(_as_json(source, stored, placed))
        names = [source.name for source in sources]
        ending = "csv" if joining.is_csv else "jsonl"
        file_name = uploads.shown_name(f"{name_of_parts(names)}.{ending}")
        given_as = {"file_name": file_name, "chosen_format": chosen_format, "parts": parts}
        with transaction.atomic():
            name = name.strip()[:200] or services.name_of_file(project, file_name)
            dataset = services.dataset_named(project, name, user)
            version = Version(dataset=dataset, **given_as, **asdict(whole))
            detail = {"file": file_name, "bytes": whole.size, "parts": names}
            return services.version_add(version, Action.DATASET_UPLOADED, user, **detail)


def _store_part(file: BinaryIO, name: str) -> services.Stored:
    file.seek(0)
    try:
        return services.store(file)
    except ValidationError as error:
        raise ValidationError(_named(name, error.messages[0])) from None


def _as_json(source: PartSource, stored: services.Stored, placed: Placed) -> dict[str, Any]:
    place = (placed.encoding, placed.first_line, placed.skipped)
    return asdict(FilePart(source.name, stored.size, stored.sha256, stored.stored_as, *place))


def _named(name: str, sentence: str) -> str:
    return _("“%(name)s”: %(problem)s") % {"name": name, "problem": sentence}


def _problem(misfit: Misfit) -> str:
    """The message on why a file does not fit, and what to do."""
    if misfit.finding:
        return _named(misfit.name, message(misfit.finding))
    params = {key: str(value)[:LONGEST_HEADER] for key, value in misfit.params.items()}
    if misfit.reason == "too_large":
        params["limit"] = filesize(misfit.params["limit"])
    is_csv = misfit.reason == "format" and params["met"] == "csv"
    return str(_MISFITS["csv" if is_csv else misfit.reason]) % (params | {"name": misfit.name})


_MISFITS: dict[str, StrPromise] = {
    "csv": gettext_lazy(
        "“%(name)s” is CSV, but “%(first)s” is JSONL. Convert one of them so that all parts have the same format, "
        "or upload them as separate data sets."
    ),
    "format": gettext_lazy(
        "“%(name)s” is JSONL, but “%(first)s” is CSV. Convert one of them so that all parts have the same format, "
        "or upload them as separate data sets."
    ),
    "family": gettext_lazy(
        "The rows of “%(name)s” have “%(met)s”, but those of “%(first)s” have “%(wanted)s”. Convert one of them so "
        "that all parts have the same format, or upload them as separate data sets."
    ),
    "columns": gettext_lazy(
        "“%(name)s” has the columns %(met)s, but “%(first)s” has %(wanted)s. Give all parts the same header, with "
        "the columns in the same order, or upload them as separate data sets."
    ),
    "quote": gettext_lazy(
        'In “%(name)s”, a quoted field opens in line %(line)s and is never closed. Add the closing quote (") and '
        "upload the files again."
    ),
    "too_large": gettext_lazy(
        "Up to “%(name)s”, the parts come to more than %(limit)s, unpacked. Upload fewer of them, or ask an "
        "administrator to raise UNPACKED_MAX_MB."
    ),
}
