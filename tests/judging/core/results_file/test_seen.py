"""Detection of verdicts repeated within a file: the first one counts."""

from __future__ import annotations

from judging.core.results_file.verdicts import SeenVerdicts


def test_what_is_said_first_counts() -> None:
    seen = SeenVerdicts()
    assert [seen.agrees(("row", 1), said) for said in ("7.0", "7.0", "8.0", "7.0")] == [
        None,
        True,
        False,
        True,
    ]


def test_questions_are_kept_apart() -> None:
    seen = SeenVerdicts()
    assert seen.agrees(("row", 1), "7.0") is None
    assert seen.agrees(("row", 2), "8.0") is None
