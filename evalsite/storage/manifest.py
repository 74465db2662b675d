"""The manifest of a backup: what it holds, so that one that broke off is not taken for a whole one.

It is written last. A folder without it, or that differs from it, is not restored, and a site that finds it in DATA_DIR
compares it once before it starts.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from django.db import connection

NAME = "manifest.json"
SQLITE_FILE, DUMP_FILE = "evalsite.sqlite3", "database.dump"
_PIECE = 1 << 20
_SHOWN = 5


class Incomplete(Exception):
    """The folder or the site differs from its manifest; the message says how."""


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file of a backup."""

    bytes: int
    sha256: str


@dataclass(slots=True)
class Manifest:
    """`database`: the name of its file; `tables`: rows by table; `files`: entries by path below the folder."""

    made_at: str
    database: str
    tables: dict[str, int]
    files: dict[str, FileEntry] = field(default_factory=dict)

    def write(self, folder: Path) -> None:
        draft = folder / f".{NAME}"
        draft.write_text(json.dumps(asdict(self), indent=1, ensure_ascii=False))
        draft.replace(folder / NAME)


def read(folder: Path) -> Manifest:
    """The manifest of a backup; raises Incomplete if it is missing or damaged."""
    try:
        values: dict[str, Any] = json.loads((folder / NAME).read_text())
        entries = {name: FileEntry(**entry) for name, entry in values.pop("files").items()}
        return Manifest(**values, files=entries)
    except FileNotFoundError:
        raise Incomplete(
            f"{folder} is not a whole backup: it has no {NAME}, which is written last. Use another one."
        ) from None
    except (ValueError, TypeError, KeyError, AttributeError):
        raise Incomplete(f"{folder / NAME} is damaged. Use another backup.") from None


def entry_of(path: Path) -> FileEntry:
    """Size and hash of a file."""
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            digest.update(piece)
            size += len(piece)
    return FileEntry(size, digest.hexdigest())


def compare_files(folder: Path, manifest: Manifest, *, without: str = "") -> None:
    """Raise Incomplete if files of the manifest, except the one called `without`, are missing or differ."""
    different = [name for name in manifest.files if name != without and not _is_same(folder, name, manifest)]
    if different:
        raise Incomplete(
            f"{len(different)} of {len(manifest.files)} files in {folder} are missing or differ from the backup's "
            f"manifest: {shown(different)}."
        )


def _is_same(folder: Path, name: str, manifest: Manifest) -> bool:
    entry, path = manifest.files[name], folder / name
    try:
        return path.stat().st_size == entry.bytes and entry_of(path) == entry
    except FileNotFoundError:
        return False


def compare_tables(manifest: Manifest) -> None:
    """Raise Incomplete if the database has other numbers of rows than the backup."""
    counts = table_counts()
    different = [name for name, rows in manifest.tables.items() if counts.get(name) != rows]
    if different:
        raise Incomplete(
            f"{len(different)} of {len(manifest.tables)} tables are missing or have another number of rows than the "
            f"backup: {shown(different)}."
        )


def table_counts() -> dict[str, int]:
    """Rows by table."""
    with connection.cursor() as cursor:
        return dict(_counted(cursor, connection.introspection.table_names(cursor)))


def _counted(cursor: Any, tables: list[str]) -> Iterator[tuple[str, int]]:
    for table in tables:
        cursor.execute(f"SELECT COUNT(*) FROM {connection.ops.quote_name(table)}")  # noqa: S608  # from the database
        yield table, cursor.fetchone()[0]


def shown(names: list[str]) -> str:
    """The first of these names, and how many more there are."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
