"""Candidate numbers, which determine colours and markers."""

from __future__ import annotations

from datasets.core.candidate_numbers import COLOURS, Named, candidate_numbers


def version(number: int, *names: str, uploaded: bool = True) -> list[Named]:
    return [Named(number, name, uploaded) for name in names]


def test_names_are_numbered_as_they_come_and_keep_their_numbers() -> None:
    assert candidate_numbers([*version(1, "a", "b"), *version(2, "c", "a")]) == {"a": 1, "b": 2, "c": 3}


def test_candidates_of_one_version_differ_in_colour() -> None:
    found = candidate_numbers([*version(1, *"abcdef"), *version(2, "g", "h", "a")])
    assert len({(found[name] - 1) % COLOURS for name in "gha"}) == 3


def test_no_two_names_share_a_number() -> None:
    found = candidate_numbers([*version(1, *"abcdefghijklmn"), *version(2, *"opqrst")])
    assert len(set(found.values())) == len(found)


def test_a_candidate_that_is_added_later_changes_no_number() -> None:
    before = [*version(1, *"abcdef"), *version(2, "g", "h")]
    added = version(2, "a", uploaded=False) + version(1, "i", uploaded=False)
    found = candidate_numbers(before)
    assert found.items() <= candidate_numbers([*before, *added]).items()
