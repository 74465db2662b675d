"""docs/metrics-file.md agrees with the code: every key, and a valid example."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from judging.core.builtin import NAMES
from judging.core.metrics_file import KEYS, read_metrics_file
from tests.judging.core.metrics_example import PAGES, write_example

OF_LATER_KINDS = {"both_bad", "three_steps", "answers", "pairs", "at_once"}  # no judge gives these kinds yet


def tables(page: str) -> list[list[str]]:
    """The keys of each table, in order."""
    return [re.findall(r"^\| `(\w+)` \|", part, re.MULTILINE) for part in page.split("\n### ")[1:]]


@pytest.mark.parametrize("language", PAGES)
def test_every_key_is_in_its_table_and_no_other(language: str) -> None:
    assert [sorted(keys) for keys in tables(PAGES[language])] == [sorted(keys) for keys in KEYS.values()]


@pytest.mark.parametrize("language", PAGES)
def test_every_key_has_a_meaning_and_an_example(language: str) -> None:
    rows = [row for row in PAGES[language].splitlines() if re.match(r"\| `\w+` \|", row)]
    assert [row for row in rows if not all(cell.strip() for cell in row.split("|")[1:-1])] == []


@pytest.mark.parametrize("language", PAGES)
def test_the_built_in_templates_are_listed(language: str) -> None:
    last = PAGES[language].rstrip().splitlines()[-1]
    assert re.findall(r"`([^`]+)`", last) == list(NAMES)


def test_the_example_uses_every_key_and_both_pages_have_the_same(tmp_path: Path) -> None:
    read = []
    for language in PAGES:
        path = write_example(tmp_path / language, language)
        read.append(read_metrics_file(path.read_text(encoding="utf-8"), path.parent))
    assert read[0] == read[1]
    written = set(re.findall(r"(\w+):", path.read_text(encoding="utf-8")))
    assert {key for keys in KEYS.values() for key in keys} - written - OF_LATER_KINDS == set()
