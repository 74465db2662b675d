"""A line set returns the lines added to it and stays small."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from datasets.core.line_set import BLOCK, Lines, lines_in


def through(lines: list[int]) -> list[int]:
    noted = Lines()
    for line in lines:
        noted.add(line)
    return [line for number, packed in noted.blocks() for line in lines_in(number, packed).tolist()]


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.integers(0, 5 * BLOCK), max_size=40))
def test_any_lines_come_out_in_order_and_once(lines: list[int]) -> None:
    assert through(lines) == sorted(set(lines))


def test_many_lines_of_a_block_come_out_too() -> None:
    lines = list(range(1, 3 * BLOCK, 2))
    assert through(lines + lines[-10:]) == lines


def test_a_million_lines_take_some_hundred_kilobytes() -> None:
    noted = Lines()
    for line in range(1_000_000):
        noted.add(line)
    assert sum(len(packed) for _, packed in noted.blocks()) < 140_000
