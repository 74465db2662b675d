"""Mapping of an imported version's lines to positions in its source files."""

from __future__ import annotations

import pytest

from datasets.core.imports import places
from datasets.core.imports.json_records import json_records
from datasets.core.imports.model import Place
from datasets.core.imports.places import Places, place_in
from tests.datasets.core.imports.tabular import source_file


def kept(*given: Place) -> Places:
    found = Places()
    for one in given:
        found.add(one)
    return found


GIVEN = (
    *(Place("a.csv", line) for line in (2, 3, 4, 7, 9, 11)),
    *(Place("book.xlsx", line, "Sheet1") for line in (5, 6)),
    Place("a.csv", 20),
    Place("a.csv", 20),
)


def test_each_line_is_found_again_and_equal_steps_take_one_entry() -> None:
    found = kept(*GIVEN)
    names = {"Sheet1": "book.xlsx · Sheet1", "": "a.csv"}
    places_again = [place_in(found.names, found.ranges, line) for line in range(1, len(GIVEN) + 1)]
    assert places_again == [(names[one.sheet], one.line) for one in GIVEN]
    assert len(found.ranges) == 4
    many = kept(*(Place("a.csv", 2 * line) for line in range(1, 1000)))
    assert many.ranges == [[1, 0, 2, 2]]


def test_what_is_not_known_is_not_made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "MOST_RANGES", 2)
    found = kept(*(Place("a.csv", line) for line in (2, 3, 9, 10, 50, 51)))
    assert [place_in(found.names, found.ranges, line) for line in (0, 4, 5, 6)] == [
        None,
        ("a.csv", 10),
        None,
        None,
    ]
    assert place_in([], [], 1) is None
    assert place_in(*([["log.json"], [[1, 0, 0, 0]]]), 1) is None


def test_the_objects_of_an_array_on_one_line_are_distinguished() -> None:
    file = source_file('[{"a": 1}, {"a": 2},\n{"a": 3}]')
    assert [number for number, _value in json_records(file)] == [1, 2, 3]
