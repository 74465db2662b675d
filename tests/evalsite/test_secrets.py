"""Secret keys and encryption with them."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.conf import LazySettings

from evalsite import secrets
from tests.full_and_locked import files_up_to


@pytest.fixture
def folder(settings: LazySettings, tmp_path: Path) -> Path:
    settings.DATA_DIR = tmp_path
    return tmp_path


def test_what_was_encrypted_can_be_read(folder: Path) -> None:
    assert secrets.decrypt(secrets.encrypt("a secret text")) == "a secret text"


def test_reading_a_secret_whose_key_is_gone_writes_no_key(folder: Path) -> None:
    stored = secrets.encrypt("a secret text")
    (folder / "keys" / "secrets").unlink()
    with pytest.raises(secrets.Undecryptable):
        secrets.decrypt(stored)
    assert not list((folder / "keys").iterdir())


def test_a_key_that_came_back_reads_it_again(folder: Path) -> None:
    stored = secrets.encrypt("a secret text")
    key, kept = folder / "keys" / "secrets", folder / "kept"
    key.rename(kept)
    with pytest.raises(secrets.Undecryptable):
        secrets.decrypt(stored)
    kept.rename(key)
    assert secrets.decrypt(stored) == "a secret text"


def test_a_key_that_does_not_fit_on_the_disk_leaves_nothing(folder: Path) -> None:
    with files_up_to(10), pytest.raises(OSError, match="File too large"):
        secrets.make_key(folder, "secrets")
    assert not list((folder / "keys").iterdir())
