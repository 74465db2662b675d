"""Unfinished files whose process was killed are deleted at the next start; those in progress stay."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.conf import LazySettings
from django.test import RequestFactory

from datasets.services import store_chunks
from evalsite import secrets
from evalsite.storage import unfinished
from evalsite.web import incoming


@pytest.fixture
def folder(tmp_path: Path, settings: LazySettings) -> Path:
    settings.DATA_DIR, settings.FILE_UPLOAD_TEMP_DIR = tmp_path, tmp_path / "incoming"
    settings.FILE_UPLOAD_TEMP_DIR.mkdir()
    return settings.FILE_UPLOAD_TEMP_DIR


def upload_begins(rf: RequestFactory) -> incoming.LockedUploadHandler:
    handler = incoming.LockedUploadHandler(rf.post("/"))
    handler.new_file("file", "a.jsonl", "application/jsonl", 10)
    handler.receive_data_chunk(b"{}", 0)
    return handler


def killed_during(_upload: incoming.LockedUploadHandler) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def stored_when(act: Callable[[], object]) -> None:
    """Store two chunks, with this between them."""

    def chunks() -> Iterator[bytes]:
        yield b"{}\n"
        act()
        yield b"{}\n"

    store_chunks(chunks(), 100)


def test_an_upload_in_progress_keeps_its_file(folder: Path, rf: RequestFactory) -> None:
    handler = upload_begins(rf)
    unfinished.delete_left(folder.parent)
    assert [path.name for path in folder.iterdir()] == [Path(handler.file.temporary_file_path()).name]
    handler.upload_interrupted()


def test_files_of_killed_processes_are_deleted(folder: Path, rf: RequestFactory) -> None:
    if (child := os.fork()) == 0:
        killed_during(upload_begins(rf))
    os.waitpid(child, 0)
    (folder / "of an earlier release").touch()
    assert len(list(folder.iterdir())) == 2
    unfinished.delete_left(folder.parent)
    assert list(folder.iterdir()) == []


def test_a_folder_that_is_not_there_yet_is_empty(tmp_path: Path) -> None:
    unfinished.delete_left(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_being_stored_stays(folder: Path) -> None:
    stored_when(lambda: unfinished.delete_left(folder.parent))
    assert len(list((folder.parent / "uploads").iterdir())) == 1


def test_a_file_that_a_killed_process_was_storing_is_deleted(folder: Path) -> None:
    if (child := os.fork()) == 0:
        stored_when(lambda: os.kill(os.getpid(), signal.SIGKILL))
    os.waitpid(child, 0)
    left = [path.suffix for path in (folder.parent / "uploads").iterdir()]
    unfinished.delete_left(folder.parent)
    assert (left, list((folder.parent / "uploads").iterdir())) == ([".part"], [])


def test_a_key_that_a_killed_process_was_writing_is_deleted(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if (child := os.fork()) == 0:
        monkeypatch.setattr(os, "link", lambda *_: os.kill(os.getpid(), signal.SIGKILL))
        secrets.make_key(folder.parent, "django")
    os.waitpid(child, 0)
    keys = folder.parent / "keys"
    left = [path.name for path in keys.iterdir()]
    unfinished.delete_left(folder.parent)
    assert (left, list(keys.iterdir())) == ([f".django.{child}"], [])


def test_keys_and_a_key_that_is_being_written_stay(folder: Path) -> None:
    key = secrets.make_key(folder.parent, "secrets")
    draft = folder.parent / "keys" / ".django.1"
    with draft.open("w") as file:
        unfinished.lock(file)
        unfinished.delete_left(folder.parent)
        assert (draft.exists(), secrets.stored_key(folder.parent, "secrets")) == (True, key)
