"""Names of downloaded files."""

from __future__ import annotations

import pytest

from evalsite.web.headers import download_headers, safe_file_name


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("a>b`c`.jsonl", "a-b-c-.jsonl"),
        ("<script>.csv", "script-.csv"),
        ("../../x.csv", "x.csv"),
        ("-rf.csv", "rf.csv"),
        ("a\u202eb\n.csv", "a-b-.csv"),
        ("评测 集 (2).csv", "评测 集 (2).csv"),
        ("..", "file"),
    ],
)
def test_a_file_name_keeps_nothing_that_systems_or_shells_interpret(name: str, safe: str) -> None:
    assert safe_file_name(name) == safe


def test_a_download_names_its_file_safely() -> None:
    assert download_headers("a>`.csv") == {"Content-Disposition": 'attachment; filename="a--.csv"'}
