"""Random access to the lines of an upload."""

from __future__ import annotations

from pathlib import Path

import pytest

from datasets.core import decode, lines
from datasets.core.limits import Limits
from datasets.core.lines import lines_at

TEXT = "".join(f"第{n}行 {'x' * (n % 700)}\n" for n in range(1, 2001))


@pytest.mark.parametrize("first", [1, 2, 377, 1024, 1999, 2000])
@pytest.mark.parametrize("count", [1, 3])
def test_lines_are_found_across_chunks(tmp_path: Path, first: int, count: int) -> None:
    assert len(TEXT.encode()) > 2 * decode.CHUNK
    (tmp_path / "file").write_text(TEXT)
    expected = "\n".join(TEXT.splitlines()[first - 1 : first - 1 + count])
    assert lines_at(tmp_path / "file", "utf-8", first, first + count, Limits()) == expected


def test_beyond_the_end_there_is_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"a\nb")
    assert lines_at(tmp_path / "file", "utf-8", 3, 4, Limits()) == ""
    assert lines_at(tmp_path / "file", "utf-8", 2, 3, Limits()) == "b"


def test_a_line_without_end_is_cut_at_the_limit(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 1_000_000)
    assert len(lines_at(tmp_path / "file", "utf-8", 1, 2, Limits(row_bytes=1000))) == 1000


def test_a_plain_file_is_read_on_from_a_landmark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines are returned exactly, in any order, without reading the file from its start."""
    monkeypatch.setattr(lines, "STRIDE", 2 * decode.CHUNK)
    whole = "\ufeff" + TEXT * 4
    (tmp_path / "file").write_text(whole)
    expected = whole.removeprefix("\ufeff").splitlines()
    for line in (8000, 1, 7999, 4000, 2, 3999, 6001, 8000, 377):
        assert lines_at(tmp_path / "file", "utf-8-sig", line, line + 1, Limits()) == expected[line - 1]
    read: list[int] = []
    monkeypatch.setattr(lines, "CHUNK", 1024)
    monkeypatch.setattr(lines, "between", lambda chunk, *_: read.append(len(chunk)) or b"x")
    lines_at(tmp_path / "file", "utf-8-sig", 8000, 8001, Limits())
    assert sum(read) < 4 * decode.CHUNK


def test_a_file_that_was_written_again_has_other_landmarks(tmp_path: Path) -> None:
    (tmp_path / "file").write_text(TEXT)
    assert lines_at(tmp_path / "file", "utf-8", 2000, 2001, Limits()).startswith("第2000行")
    (tmp_path / "file").write_text("a\n" * 3000)
    assert lines_at(tmp_path / "file", "utf-8", 2000, 2001, Limits()) == "a"
