"""Local copies of remote files: complete or absent, fetched once, removed when unused or the disk is short."""

from __future__ import annotations

import os
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO, NamedTuple

import pytest

from evalsite.storage import local_cache
from evalsite.storage.local_cache import LocalCache

NAME = "uploads/a"


def writing(content: bytes, seconds: float = 0.0, calls: list[int] | None = None):
    def fetch(part: BinaryIO) -> None:
        if calls is not None:
            calls.append(threading.get_ident())
        time.sleep(seconds)
        part.write(content)

    return fetch


def test_a_copy_is_brought_once_and_found_afterwards(tmp_path: Path) -> None:
    path = LocalCache(tmp_path).get_or_fetch(NAME, 3, writing(b"abc"))
    assert path.read_bytes() == b"abc"
    assert LocalCache(tmp_path).get(NAME) == path


def test_of_eight_at_once_one_brings_it(tmp_path: Path) -> None:
    calls: list[int] = []
    with ThreadPoolExecutor(8) as pool:
        jobs = [
            pool.submit(LocalCache(tmp_path).get_or_fetch, NAME, 3, writing(b"abc", 0.2, calls))
            for _ in range(8)
        ]
    assert {job.result().read_bytes() for job in jobs} == {b"abc"}
    assert len(calls) == 1


def test_a_copy_that_is_too_short_is_none(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="2 bytes in place of 3"):
        LocalCache(tmp_path).get_or_fetch(NAME, 3, writing(b"ab"))
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_what_a_killed_process_had_started_is_started_again(tmp_path: Path) -> None:
    (tmp_path / "uploads").mkdir()
    (tmp_path / "uploads" / "a.part").write_bytes(b"much longer than the file")
    assert LocalCache(tmp_path).get_or_fetch(NAME, 3, writing(b"abc")).read_bytes() == b"abc"
    assert not (tmp_path / "uploads" / "a.part").exists()


def aged(tmp_path: Path, name: str, seconds: float) -> Path:
    path = LocalCache(tmp_path).get_or_fetch(name, 3, writing(b"abc"))
    os.utime(path, (time.time() - seconds,) * 2)
    return path


def test_what_nobody_asked_for_in_a_week_goes_when_another_comes(tmp_path: Path) -> None:
    old, young = (
        aged(tmp_path, "old", local_cache.KEPT_FOR + 60),
        aged(tmp_path, "young", local_cache.KEPT_FOR - 60),
    )
    LocalCache(tmp_path).make_room(1)
    assert (old.exists(), young.exists()) == (False, True)


class Usage(NamedTuple):
    total: int
    used: int
    free: int


def test_a_short_disk_takes_all_but_what_is_in_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    idle, used = aged(tmp_path, "idle", local_cache.IN_USE + 60), aged(tmp_path, "used", 0)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(1 << 40, 0, local_cache.RESERVE))
    LocalCache(tmp_path).make_room(1)
    assert (idle.exists(), used.exists()) == (False, True)
