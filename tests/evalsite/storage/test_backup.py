"""A backup that breaks off anywhere is whole or refused, and a site restored from one that is not does not start."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest
from django.conf import LazySettings
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection

from evalsite import checks
from evalsite.accounts.models import User
from evalsite.storage import backup, completeness, manifest
from evalsite.storage.manifest import Incomplete

ON_SQLITE = connection.vendor == "sqlite"
DATABASE = manifest.SQLITE_FILE if ON_SQLITE else manifest.DUMP_FILE
IN_DATA_DIR = [DATABASE] if ON_SQLITE else []
on_sqlite = pytest.mark.skipif(
    not ON_SQLITE, reason="restored beside the tests' database, on this database only"
)
pytestmark = pytest.mark.django_db(transaction=True)
FILES = 15


@pytest.fixture
def site(tmp_path: Path, settings: LazySettings) -> Path:
    """A DATA_DIR with uploads and keys, beside the database of the tests."""
    settings.DATA_DIR = tmp_path / "data"
    for folder in ("uploads", "keys"):
        (settings.DATA_DIR / folder).mkdir(parents=True)
    for number in range(FILES):
        (settings.DATA_DIR / "uploads" / f"{number}").write_text(f"row {number}\n")
    (settings.DATA_DIR / "keys" / "secrets").write_text("key")
    (settings.DATA_DIR / "uploads" / ".part").write_text("half")
    return tmp_path


@pytest.fixture
def whole(site: Path) -> Path:
    call_command("backup", str(site / "backup"))
    return site / "backup"


def broken_off(folder: Path, moment: int) -> Iterator[str]:
    """A backup that reached this moment."""
    steps = backup.backup_steps(folder)
    for _step in islice(steps, moment):
        pass
    return steps


def is_whole(folder: Path) -> bool:
    try:
        backup.verify(folder)
    except CommandError:
        return False
    return True


def killed_at(folder: Path, moment: int) -> None:
    """Make a backup in a process that is killed at this moment."""
    connection.close()
    if (child := os.fork()) == 0:
        try:
            broken_off(folder, moment)
        finally:
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)


def test_a_backup_killed_at_any_moment_is_whole_or_refused(site: Path) -> None:
    moments = list(backup.backup_steps(site / "all"))
    assert len(moments) >= 20
    for moment in range(len(moments) + 1):
        folder = site / f"backup-{moment}"
        killed_at(folder, moment)
        assert is_whole(folder) == folder.exists() == (moment >= len(moments))
        draft = folder.with_name(f"{folder.name}.incomplete")
        assert is_whole(draft) == (draft / manifest.NAME).exists()


def test_the_next_backup_of_that_name_starts_over(site: Path) -> None:
    killed_at(site / "backup", 8)
    call_command("backup", str(site / "backup"))
    assert is_whole(site / "backup")
    assert [path.name for path in site.iterdir() if "incomplete" in path.name] == []


def test_two_backups_of_one_name_do_not_mix(site: Path) -> None:
    running = broken_off(site / "backup", 3)
    with pytest.raises(CommandError, match="Another backup"):
        call_command("backup", str(site / "backup"))
    running.close()


def test_a_backup_holds_the_finished_files_and_what_they_are(whole: Path) -> None:
    made = manifest.read(whole)
    names = {str(path.relative_to(whole)) for path in whole.rglob("*") if path.is_file()}
    assert names - {manifest.NAME} == made.files.keys()
    assert "uploads/.part" not in names
    assert made.tables == manifest.table_counts()


@pytest.mark.parametrize("name", [DATABASE, "uploads/3", "keys/secrets", manifest.NAME])
def test_a_backup_of_which_a_file_is_cut_or_lost_is_refused(whole: Path, name: str) -> None:
    content = (whole / name).read_bytes()
    for damaged in (content[:-1], content[:-1] + bytes([content[-1] ^ 1])):
        (whole / name).write_bytes(damaged)
        assert not is_whole(whole)
    (whole / name).unlink()
    assert not is_whole(whole)


def test_a_file_that_is_deleted_during_the_backup_ends_it(
    site: Path, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    needed = [*completeness.file_names, lambda: ["uploads/5", "uploads/lost"]]
    monkeypatch.setattr(completeness, "file_names", needed)
    steps = broken_off(site / "backup", 2)
    (settings.DATA_DIR / "uploads" / "5").unlink()
    with pytest.raises(CommandError, match=r"deleted while the backup was made: uploads/5\. Run it again"):
        list(steps)


@on_sqlite
def test_a_restored_site_is_compared_once(site: Path, whole: Path, settings: LazySettings) -> None:
    settings.DATA_DIR = site / "restored"
    call_command("restore", str(whole))
    assert checks.restored_site_is_whole() == []
    completeness.compare_with_backup()
    completeness.end_comparison()
    User.objects.create(username="later")
    completeness.compare_with_backup()


@pytest.mark.parametrize("name", [*IN_DATA_DIR, "uploads/3", "keys/secrets"])
def test_a_site_that_was_not_restored_completely_does_not_start(
    site: Path, whole: Path, settings: LazySettings, name: str
) -> None:
    settings.DATA_DIR = site / "restored"
    shutil.copytree(whole, settings.DATA_DIR)
    (settings.DATA_DIR / name).unlink()
    with pytest.raises(Incomplete, match="not restored completely"):
        completeness.compare_with_backup()
    assert [error.id for error in checks.restored_site_is_whole()] == ["evalsite.E001"]


def test_a_site_with_other_rows_than_its_backup_does_not_start(
    site: Path, whole: Path, settings: LazySettings
) -> None:
    settings.DATA_DIR = site / "restored"
    shutil.copytree(whole, settings.DATA_DIR)
    User.objects.create(username="later")
    with pytest.raises(Incomplete, match="another number of rows than the backup: accounts_user"):
        completeness.compare_with_backup()


def test_a_backup_is_not_restored_over_a_site(site: Path, whole: Path) -> None:
    with pytest.raises(CommandError, match="not empty"):
        call_command("restore", str(whole))


@on_sqlite
def test_a_site_whose_restore_was_killed_while_it_verified_does_not_start(
    site: Path, whole: Path, settings: LazySettings
) -> None:
    settings.DATA_DIR = site / "restored"
    stop_at_first_file(whole)
    connection.close()
    if (child := os.fork()) == 0:
        try:
            backup.restore(whole)
        finally:
            os.kill(os.getpid(), signal.SIGKILL)
    opened = (whole / DATABASE).open("wb")  # returns once the other process reads it
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    opened.close()
    with pytest.raises(Incomplete, match="not restored completely"):
        completeness.compare_with_backup()


def stop_at_first_file(folder: Path) -> None:
    """Have whoever reads the backup's database wait for a writer."""
    (folder / DATABASE).unlink()
    os.mkfifo(folder / DATABASE)
    made = manifest.read(folder)
    made.files[DATABASE] = manifest.FileEntry(0, "")
    made.write(folder)


@on_sqlite
@pytest.mark.parametrize("existed", [True, False])
def test_a_refused_backup_leaves_data_dir_as_it_was(
    site: Path, whole: Path, settings: LazySettings, existed: bool
) -> None:
    settings.DATA_DIR = site / "restored"
    if existed:
        settings.DATA_DIR.mkdir()
    (whole / "uploads" / "3").write_text("damaged")
    with pytest.raises(CommandError, match="uploads/3"):
        call_command("restore", str(whole))
    assert settings.DATA_DIR.is_dir() == existed
    assert not existed or list(settings.DATA_DIR.iterdir()) == []


def test_a_backup_can_be_checked_without_restoring_it(
    whole: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("restore", str(whole), check=True)
    assert f"{whole} is whole: {FILES + 2} files" in capsys.readouterr().out
