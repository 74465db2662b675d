"""Files written from a version read back equal, whatever its rows contain."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from io import StringIO
from typing import Any

import pytest
from django.conf import LazySettings
from hypothesis import given
from hypothesis import strategies as st

from datasets.core.csv_text import csv_record
from datasets.models import Row, Version
from datasets.versions import downloads, row_writer
from tests.datasets.conftest import Upload, question
from tests.datasets.helpers import CELLS, SETTINGS

pytestmark = pytest.mark.django_db
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=5,
)
FURTHER = st.dictionaries(TEXT, VALUES, max_size=3)
ANSWERS = st.lists(FURTHER.map(lambda more: {**more, "content": "an answer"}), min_size=1, max_size=2)
ENTRIES = st.lists(
    st.tuples(st.sampled_from("xyz"), ANSWERS, FURTHER), min_size=1, unique_by=lambda entry: entry[0]
).map(lambda entries: [{**more, "model_name": name, "responses": given} for name, given, more in entries])
RESERVED = {"messages", "model_outputs", "conversation"}
ROWS = st.tuples(FURTHER, ENTRIES, TEXT).map(
    lambda parts: {
        **{key: value for key, value in parts[0].items() if key not in RESERVED},
        "messages": [{"role": "user", "content": f"a{parts[2]}"}],
        "model_outputs": parts[1],
    }
)


def written(version: Version) -> list[Any]:
    return [json.loads(line) for line in b"".join(row_writer.jsonl(version)).split(b"\n")[:-1]]


def in_order(value: Any) -> str:
    return json.dumps(value)


@SETTINGS
@given(st.lists(ROWS, min_size=1, max_size=3))
def test_rows_of_a_file_come_out_equal_in_the_order_of_their_keys(upload: Upload, rows: list[Any]) -> None:
    source = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
    version = upload(source, read=True)
    assert [in_order(row) for row in written(version)] == [in_order(row) for row in rows]


@SETTINGS
@given(st.lists(ROWS, min_size=1, max_size=2))
def test_the_tables_alone_give_all_but_what_is_next_to_a_models_answers(
    upload: Upload, rows: list[Any]
) -> None:
    for entry in (entry for row in rows for entry in row["model_outputs"]):
        for key in entry.keys() - {"model_name", "responses"}:
            del entry[key]
    version = upload("".join(json.dumps(row) + "\n" for row in rows).encode(), read=True)
    version.path.unlink()
    assert written(version) == rows


@SETTINGS
@given(st.binary(max_size=200) | st.text(max_size=100).map(lambda text: text.encode("utf-8", "replace")))
def test_any_bytes_become_a_version_that_is_ready(upload: Upload, source: bytes) -> None:
    version = upload(source, read=True)
    assert version.state == "ready"
    assert Row.objects.filter(version=version, valid=True).count() == version.valid_rows


def test_a_row_that_became_too_long_for_the_limit_is_written_all_the_same(
    upload: Upload, settings: LazySettings
) -> None:
    rows = [question("a"), question("b" * 3000), question("c")]
    version = upload("".join(json.dumps(row) + "\n" for row in rows).encode(), read=True)
    settings.CONFIG = replace(settings.CONFIG, row_max_kb=1)
    assert written(version) == rows


@SETTINGS
@given(st.lists(st.tuples(CELLS.map(lambda text: f"q{text}"), CELLS, CELLS), min_size=1, max_size=3))
def test_records_of_a_csv_come_out_equal(upload: Upload, records: list[tuple[str, str, str]]) -> None:
    header = ["prompt", "response", "备注"]
    source = "".join(f"{csv_record(one)}\r\n" for one in [header, *records])
    version = upload(source.encode(), read=True, file_name="x.csv")
    text = b"".join(downloads.legacy_csv(version)).decode("utf-8-sig")
    assert list(csv.reader(StringIO(text, newline=""))) == [header, *map(list, records)]


def test_a_record_with_a_system_text_becomes_a_whole_conversation(upload: Upload) -> None:
    version = upload(b"prompt,response,system,note\nq,a,be brief,n\n", read=True, file_name="x.csv")
    turns = [{"prompt": "q", "response": "a"}]
    assert written(version) == [{"system": "be brief", "conversation": turns, "note": "n"}]
