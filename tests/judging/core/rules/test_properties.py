"""Property tests for arbitrary texts, programs and scores."""

from decimal import Decimal
from itertools import product
from typing import Literal

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from judging.core.rules import keywords
from judging.core.rules.check import read_length, read_program
from judging.core.rules.evaluate import conclude, plan
from judging.core.rules.functions import FUNCTIONS, aggregate, is_part
from judging.core.rules.program import Length
from judging.core.rules.values import Number, from_python, identity, json_text, same
from tests.judging.core.rules.program_writer import write, write_argument, write_length

# No deadline: other processes may be using the processors.
patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

NAMES = [word for pair in keywords.OWN_NAMES for word in pair.both()]
FUNCTION_NAMES = [word for function in FUNCTIONS for word in function.name.both()]
SIGNS = ["# DSL", ":", "：", "\n", "\r\n", "\r", " ", "\ufeff", "\x0b", "<", ">", "a", "60", "(1，2)", "min"]
TAGS = ["<规则1>", "</规则1>", "<code1>", "</code1>", "def f(ref_answer, model_answer):"]
PIECES = st.sampled_from([*NAMES, *FUNCTION_NAMES, *SIGNS, *TAGS, *keywords.FORMATS])
NEARLY_PROGRAMS = st.lists(PIECES, max_size=40).map("".join)
HALVES: tuple[Literal["Cs"]] = ("Cs",)
PLAIN = st.text(st.characters(exclude_characters=":：<>\n\r@", exclude_categories=HALVES), min_size=1).filter(
    lambda text: text.strip() == text
)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)
SCORES = st.lists(st.integers(1, 5) | st.floats(1, 5), min_size=1, max_size=20)


@st.composite
def programs(draw: st.DrawFn) -> str:
    """Strategy for valid programs in all forms."""
    lines = []
    for _ in range(draw(st.integers(1, 6))):
        function = draw(st.sampled_from(FUNCTIONS))
        low = draw(st.integers(0, 50))
        argument = {
            "length": write_argument(Length(low, low + draw(st.integers(0, 50))), "zh"),
            "format": draw(st.sampled_from(["JSON", "XML", "XML:根", "text"])),
            "constant": draw(PLAIN),
            "replacement": draw(st.just("") | PLAIN),
            "rule": "规则1",
            "code": "code 1",
        }.get(function.argument, "")
        name = draw(PLAIN | st.sampled_from(keywords.ALL.both()))
        lines.append(":".join(filter(None, [name, draw(st.sampled_from(function.name.both())), argument])))
    block = draw(st.text(st.characters(exclude_characters="<", exclude_categories=HALVES)))
    aggregates = draw(st.sampled_from(["", *(f"@aggregate:{name}\n" for name in keywords.AGGREGATES)]))
    form = draw(st.sampled_from(["JSON", "XML", "XML:根"]))
    code = "<code 1>\ndef f(ref_answer, model_answer): return 1\n</code 1>"
    head = "\n".join(["# DSL", *lines])
    return f"{head}\n{aggregates}@格式限制:{form}\n<规则1>\n{block}\n</规则1>\n{code}"


@patient
@given(st.text() | st.text(st.characters()) | NEARLY_PROGRAMS | NEARLY_PROGRAMS.map("# DSL\n".__add__))
def test_any_text_gives_a_program_or_errors_with_places(text: str) -> None:
    reading = read_program(text)
    assert (reading.program is None) == bool(reading.errors)
    lines = text.split("\n")
    assert all(1 <= problem.place.line <= len(lines) + 1 for problem in reading.problems)
    assert all(problem.place.column >= 1 for problem in reading.problems)


@patient
@given(NEARLY_PROGRAMS.map("# DSL\na:length:3\n".__add__))
def test_what_could_be_read_can_be_written_and_read_again(text: str) -> None:
    program = read_program(text).program
    if program is not None:
        assert read_program(write(program)).program == program


@patient
@given(programs())
@example("# DSL\na:rule:规则1\n@格式限制:JSON\n<规则1>\na\r\r\n</规则1>")
def test_formatting_and_parsing_gives_the_same_program(text: str) -> None:
    program = read_program(text).program
    assert program is not None, read_program(text).problems
    for language in ("zh", "en", ""):
        assert read_program(write(program, language)).program == program


@patient
@given(programs())
def test_formatting_twice_changes_nothing_more(text: str) -> None:
    program = read_program(text).program
    assert program is not None
    written = write(program, "en")
    again = read_program(written).program
    assert again is not None
    assert write(again, "en") == written


@given(st.integers(0, 3) | st.integers(0, 10**9 - 1), st.integers(0, 3) | st.integers(0, 10**9 - 1))
def test_a_length_is_read_as_it_was_written(one: int, other: int) -> None:
    limit = Length(min(one, other), max(one, other))
    assert read_length(write_length(limit)) == limit


@patient
@given(st.sampled_from(keywords.AGGREGATES), SCORES)
def test_an_aggregate_lies_between_the_lowest_and_the_highest(name: str, scores: list[float]) -> None:
    assert min(scores) <= aggregate(name, scores) <= max(scores)


@patient
@given(
    programs(), st.text() | JSON_VALUES.map(lambda value: json_text(from_python({"a": value}))), JSON_VALUES
)
def test_any_answer_gives_a_score_or_an_error(text: str, answer: str, reference: object) -> None:
    program = read_program(text).program
    assert program is not None
    found = conclude(plan(program, answer, reference), {})
    assert (found.score is None) != (found.error is None)
    assert found.score is None or 1 <= found.score <= 5


@patient
@given(st.dictionaries(st.text(), JSON_VALUES, min_size=1))
def test_a_reference_scores_5_against_itself(reference: dict[str, object]) -> None:
    program = read_program(
        "# DSL\n@全部字段:精确匹配\n@all:contained_in\n@all:contains\n@格式限制:JSON"
    ).program
    assert program is not None
    assert conclude(plan(program, json_text(from_python(reference)), reference), {}).score == 5


@patient
@given(JSON_VALUES, JSON_VALUES)
def test_equal_is_a_part_both_ways_and_symmetric(one: object, other: object) -> None:
    left, right = from_python(one), from_python(other)
    assert same(left, right) == same(right, left)
    assert not same(left, right) or (is_part(left, right) and is_part(right, left))


def test_numbers_are_the_same_exactly_where_their_values_are() -> None:
    parts = (
        ("", "-"),
        ("0", "1", "10", "5", "50"),
        ("", ".0", ".5", ".50", ".05"),
        ("", "e0", "E1", "e-1", "e+2"),
    )
    sources = ["".join(one) for one in product(*parts)]
    pairs = {(identity(Number(source)), Decimal(source)) for source in sources}
    assert len(pairs) == len({kept for kept, _value in pairs}) == len({value for _kept, value in pairs})


@patient
@given(st.integers(), st.integers(0, 30), st.integers(0, 30))
def test_numbers_are_compared_exactly_however_they_are_written(number: int, zeros: int, shift: int) -> None:
    written = Number(f"{number}{'0' * shift}.{'0' * (zeros + 1)}e-{shift}")
    assert same(written, Number(str(number)))
    assert not same(written, Number(str(number + 1)))
