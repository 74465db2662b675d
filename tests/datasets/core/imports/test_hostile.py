"""Malicious files: each is refused or skipped with a code, and nothing but NotUsable is raised."""

from __future__ import annotations

import json
import struct
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from datasets.core.imports.archives import DIRECTORY_BYTES, is_archive_with
from datasets.core.imports.model import NotUsable, Options, SourceFile
from datasets.core.imports.registry import SOURCES, recognise, source_named
from datasets.core.limits import Limits
from tests.datasets.core.imports import fastchat
from tests.datasets.core.imports.inspect_logs import archive, log, sample
from tests.datasets.core.imports.reading import files, lines, taken

ODD = ("", "x", "[1", "[]", "{}", "[[]]", "null", "[null]", '{"results": 1}', '{"a": {}}', "\x00", "[" * 5000)


def nested(depth: int) -> Any:
    value: Any = "end"
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("content", ODD)
def test_no_tool_recognises_or_stumbles_over_odd_files(tmp_path: Path, content: str) -> None:
    given = files(tmp_path, odd__json=content)
    assert [source.name for source in SOURCES if source.name != "table" and source.recognise(given)] == []


@pytest.mark.parametrize("source", [one for one in SOURCES if one.name != "table"])
def test_a_tool_that_is_given_other_files_takes_nothing(tmp_path: Path, source: Any) -> None:
    given = files(tmp_path, other__jsonl=lines({"a": 1}, {"question_id": 1}, {"data": []}))
    rows: list[Any] = []
    with suppress(NotUsable):
        rows += source.read(given, Options()).rows
    assert rows == []


def test_what_is_nested_too_deeply_is_left_out(tmp_path: Path) -> None:
    deep = fastchat.QUESTION | {"question_id": 82, "category": nested(300)}
    found = taken(tmp_path, q__jsonl=lines(fastchat.QUESTION, deep))
    assert (len(found.rows), found.left_out) == (2, {"too_deep": 1})
    found = taken(tmp_path, log__json=json.dumps(log(sample(), sample("s2", metadata={"x": nested(300)}))))
    assert (len(found.rows), found.left_out) == (1, {"too_deep": 1})


def test_a_line_beyond_the_limit_is_left_out(tmp_path: Path) -> None:
    long = fastchat.QUESTION | {"question_id": 82, "turns": ["x" * 2000]}
    given = files(tmp_path, q__jsonl=lines(fastchat.QUESTION, long))
    source = recognise(given)
    assert source is not None
    imported = source.read(given, Options(limits=Limits(row_bytes=1000)))
    assert (len(list(imported.rows)), imported.left_out_counts) == (2, {"too_large": 1})


def test_an_archive_with_an_endless_list_of_files_is_not_opened(tmp_path: Path) -> None:
    whole = archive(log(sample()))
    at = whole.rindex(b"PK\x05\x06") + 12
    path = tmp_path / "log.eval"
    path.write_bytes(whole[:at] + struct.pack("<I", DIRECTORY_BYTES + 1) + whole[at + 4 :])
    file, source = SourceFile.of(path), source_named("inspect")
    assert not is_archive_with(file, "header.json")
    assert source is not None
    with pytest.raises(NotUsable, match="too_large"):
        list(source.read([file], Options()).rows)


def test_a_look_reads_the_first_records_only(tmp_path: Path) -> None:
    given = files(tmp_path, log__eval=archive(log(*(sample(f"s{number}") for number in range(9)))))
    source = recognise(given)
    assert source is not None
    assert len(list(source.read(given, Options(first=3)).rows)) == 3
