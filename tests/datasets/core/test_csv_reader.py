"""Records of CSV: quotes that never close, delimiters, and the header's place."""

import pytest

from datasets.core.csv_layout import legacy_layout
from datasets.core.csv_reader import records_in
from datasets.core.csv_text import NEVER, fields_in, open_quote, split_fields


def read(text: str, delimiter: str = ",") -> list[tuple[int, list[str], bool]]:
    """(line, fields, whether a quote never closes) of each record."""
    return [(one.line, one.fields, one.quote is not None) for one in records_in(text, delimiter=delimiter)]


def test_after_a_quote_that_never_closes_the_next_line_is_read() -> None:
    assert read('a,"b\nc,d\n\ne,f') == [
        (1, ["a", "b"], True),
        (2, ["c", "d"], False),
        (4, ["e", "f"], False),
    ]


def test_a_quote_that_ends_before_other_text_was_never_closed() -> None:
    assert read('a,"b\n"c","d"\n') == [(1, ["a", "b"], True), (2, ["c", "d"], False)]


def test_a_field_over_several_lines_is_one() -> None:
    assert read('"a\n""b""\nc" ,d\n') == [(1, ['a\n"b"\nc ', "d"], False)]


def test_quotes_that_reopen_to_the_end_are_read_again_in_bounded_time() -> None:
    text = 'a,"b\n' + 'x","y\n' * 2_999 + 'x","y'
    found = records_in(text)
    assert found[0].quote is not None
    assert sum(1 + one.more for one in found) == 3_001


@pytest.mark.parametrize(
    ("line", "inside", "found"),
    [("a,b", False, None), ('a,"b', False, 2), ('b",c', True, None), ("b", True, -1), ('b"c', True, NEVER)],
)
def test_a_line_leaves_a_quote_open_or_not(line: str, inside: bool, found: int | None) -> None:
    assert open_quote(line, inside) == found


@pytest.mark.parametrize(
    ("text", "delimiter", "fields"),
    [
        ("a;b,c", ";", ["a", "b,c"]),
        ('"a;b";c', ";", ["a;b", "c"]),
        ("a, b", "", ["a, b"]),
        ('"a"', "", ["a"]),
    ],
)
def test_fields_are_split_at_the_delimiter(text: str, delimiter: str, fields: list[str]) -> None:
    assert split_fields(text, delimiter) == fields


@pytest.mark.parametrize(
    ("lines", "delimiter", "header", "above"),
    [
        (["prompt,response"], ",", 1, []),
        (["prompt;response"], ";", 1, []),
        (["", "Prompt\tRESPONSE"], "\t", 2, []),
        (["sep=|", "prompt|response"], "|", 2, []),
        (["Survey", "", "prompt;response"], ";", 3, [(1, "Survey")]),
        (["prompt,system"], ",", 1, []),
    ],
)
def test_the_header_of_a_legacy_csv_is_found(
    lines: list[str], delimiter: str, header: int, above: list[tuple[int, str]]
) -> None:
    layout = legacy_layout(lines)
    assert layout is not None
    assert (layout.delimiter, layout.header, list(layout.above)) == (delimiter, header, above)


def test_other_text_has_no_legacy_header() -> None:
    assert legacy_layout(["question,answer", "q,a"]) is None


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ('a,"b,c",d', ["a", "b,c", "d"]),
        ('"say ""hi""",x', ['say "hi"', "x"]),
        ('a"b,c', ['a"b', "c"]),
        ('"a"b,c', ["ab", "c"]),
        ('a,"b', ["a", "b"]),
        ('"x" ,\ry', ["x ", "\ry"]),
        (f'"{"x" * 200_000}",y', ["x" * 200_000, "y"]),
    ],
)
def test_fields_of_any_shape_are_split_alike(text: str, fields: list[str]) -> None:
    assert split_fields(text) == list(fields_in(text, ",")) == fields
