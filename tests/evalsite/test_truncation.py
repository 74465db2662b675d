"""A cut text ends in an ellipsis."""

from evalsite.truncation import truncate


def test_a_text_that_fits_is_unchanged() -> None:
    assert truncate("four", 4) == "four"


def test_a_longer_text_ends_in_an_ellipsis_without_a_space_before() -> None:
    assert truncate("four words", 5) == "four…"
