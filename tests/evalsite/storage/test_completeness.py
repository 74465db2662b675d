"""A site finds what is missing in its database and files, and then does not start."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from django.conf import LazySettings
from django.core.management.base import CommandError
from django.db import connection

from datasets.models import Version, VersionState
from evalsite import checks
from evalsite.accounts.models import Project
from evalsite.storage import completeness, data_dir
from judging.endpoints.models import Endpoint
from tests.make import a_version


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, settings: LazySettings) -> Path:
    settings.DATA_DIR = tmp_path / "data"
    (settings.DATA_DIR / "uploads").mkdir(parents=True)
    return tmp_path / "data"


@pytest.fixture
def version(project: Project) -> Version:
    version = a_version(project)
    version.stored_as, version.state = "uploads/a", VersionState.READY
    version.parts = [{"stored_as": "uploads/b"}]
    version.save()
    return version


def test_a_whole_site_lacks_nothing(db: None) -> None:
    assert list(completeness.problems()) == []
    assert checks.nothing_is_missing(databases=["default"]) == []


def test_versions_without_their_files_are_found(version: Version, folder: Path) -> None:
    (folder / "uploads" / "b").touch()
    (problem,) = completeness.problems()
    assert problem == f"1 files of data sets are missing in {folder}: uploads/a."
    (folder / "uploads" / "a").touch()
    assert list(completeness.problems()) == []


def test_a_version_that_is_still_made_needs_no_file_yet(version: Version) -> None:
    Version.objects.update(state=VersionState.WAITING)
    assert list(completeness.problems()) == []


def test_a_lost_key_is_found_where_something_is_encrypted(project: Project, folder: Path) -> None:
    Endpoint.objects.create(
        project=project, name="Judge", url="http://127.0.0.1:9", model="m", key_encrypted="x"
    )
    (problem,) = completeness.problems()
    assert "keys/secrets is missing" in problem
    (folder / "keys").mkdir()
    (folder / "keys" / "secrets").write_text("key")
    assert list(completeness.problems()) == []


def test_the_site_says_so_and_starts_only_if_it_is_told_to(version: Version, settings: LazySettings) -> None:
    with pytest.raises(CommandError, match=r"2 files of data sets are missing .* START_INCOMPLETE=1"):
        data_dir.prepare_to_start()
    settings.CONFIG = replace(settings.CONFIG, start_incomplete=True)
    data_dir.prepare_to_start()


def test_a_missing_index_is_found(db: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute("DROP INDEX audit_project")
    assert completeness.missing_constraints() == ["audit_project"]
    assert [error.id for error in checks.nothing_is_missing(databases=["default"])] == ["evalsite.E002"]


@pytest.mark.skipif(connection.vendor != "postgresql", reason="constraints are listed on this database only")
def test_missing_constraints_are_found(db: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE evalsite_sentmessage DROP CONSTRAINT sent_message_once")
        cursor.execute("ALTER TABLE evalsite_sentmessage DROP CONSTRAINT evalsite_sentmessage_pkey")
    assert completeness.missing_constraints() == [
        "sent_message_once",
        "1 of evalsite_sentmessage (primary key)",
    ]
