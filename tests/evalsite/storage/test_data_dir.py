"""Only its owner can read DATA_DIR."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import LazySettings

from evalsite.storage import data_dir


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, settings: LazySettings) -> Iterator[Path]:
    before = os.umask(0o022)
    settings.DATA_DIR = tmp_path / "data"
    yield tmp_path / "data"
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_folder_and_what_is_made_in_it_are_its_owners_alone(folder: Path, db: None) -> None:
    data_dir.prepare()
    (folder / "evalsite.sqlite3").touch()  # as SQLite does, which has no option for the mode
    found = {path.name: mode(path) for path in [folder, *folder.iterdir(), *(folder / "keys").iterdir()]}
    assert found.pop("evalsite.sqlite3") == found.pop("reserve") == found.pop("django") == 0o600
    assert set(found.values()) == {0o700}


def test_an_open_folder_becomes_private_at_the_next_start(folder: Path, db: None) -> None:
    (folder / "keys").mkdir(parents=True, mode=0o755)
    for name in ("evalsite.sqlite3", "evalsite.sqlite3-wal", "keys/django"):
        (folder / name).write_text("x")
    data_dir.prepare()
    assert mode(folder) == mode(folder / "keys") == 0o700
    assert mode(folder / "evalsite.sqlite3") == mode(folder / "evalsite.sqlite3-wal") == 0o600
    assert mode(folder / "keys" / "django") == 0o600


def test_a_setting_gives_access_to_the_group_only(folder: Path, db: None, settings: LazySettings) -> None:
    settings.DATA_FOLDER_MODE, settings.DATA_FILE_MODE = 0o770, 0o660
    data_dir.prepare()
    assert mode(folder) == mode(folder / "uploads") == 0o770
    assert mode(folder / "keys" / "django") == 0o660


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
def test_a_folder_of_another_user_is_unchanged_and_logged(
    folder: Path, db: None, caplog: pytest.LogCaptureFixture
) -> None:
    folder.mkdir(mode=0o755)
    os.chown(folder, 1, 1)
    data_dir.prepare()
    assert mode(folder) == 0o755
    assert f"chmod 700 {folder}" in caplog.text


def test_a_folder_open_to_all_is_unchanged(folder: Path, db: None) -> None:
    folder.mkdir()
    folder.chmod(0o1777)
    data_dir.prepare()
    assert mode(folder) == 0o1777


def test_other_files_in_the_folder_are_unchanged(folder: Path, db: None) -> None:
    (folder / "website").mkdir(parents=True)
    (folder / "website").chmod(0o755)
    (folder / "other.sqlite3").touch(mode=0o644)
    data_dir.prepare()
    assert (mode(folder / "website"), mode(folder / "other.sqlite3")) == (0o755, 0o644)
