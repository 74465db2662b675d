"""Records of gallery metrics: counts always, rates only with enough labelled answers."""

from __future__ import annotations

import pytest

from judging.core.gallery import gallery, read_examples
from judging.core.gallery.measured import FEWEST_FOR_RATES, Pair, measured
from judging.core.gallery.record import Record


def pairs(right: int, wrong: int, unread: int = 0) -> list[Pair]:
    verdicts = [(True, True)] * right + [(True, False)] * wrong + [(None, False)] * unread
    return [Pair(judge, people, str(row)) for row, (judge, people) in enumerate(verdicts)]


def record(data: str = "labels") -> Record:
    return Record(judge="m", date="2026-11-27", data=data)


def test_few_answers_have_counts_without_rates() -> None:
    few = measured(record(), "pass_fail", pairs(30, FEWEST_FOR_RATES - 31, unread=9))
    assert (few.n, few.equal, few.unread) == (FEWEST_FOR_RATES - 1, 30, 9)
    assert (few.agreement, few.tpr, few.tnr) == (None, None, None)


def test_enough_answers_have_rates_with_intervals() -> None:
    enough = measured(record(), "pass_fail", pairs(30, 10))
    assert (enough.agreement, enough.tpr, enough.tnr) == (0.75, 1.0, 0.0)
    assert enough.agreement_low is not None
    assert enough.agreement_high is not None
    assert enough.agreement_low < 0.75 < enough.agreement_high


def test_the_examples_alone_never_give_rates() -> None:
    assert measured(record("examples"), "pass_fail", pairs(50, 0)).agreement is None


def test_strengths_of_a_comparison_agree_in_their_direction() -> None:
    verdicts = [Pair("A>>B", "A>B", "1"), Pair("A=B", "B>A", "2"), Pair("B>A", "B>A", "3")]
    assert measured(record(), "comparison", verdicts).equal == 2


def test_scores_and_labels_agree_where_they_are_equal() -> None:
    assert measured(record(), "score", [Pair(3, 3.0, "1"), Pair(4, 3, "2")]).equal == 1
    assert measured(record(), "category", [Pair("a", "a", "1"), Pair("a", "b", "2")]).equal == 1


def test_a_shipped_record_is_empty_until_something_was_measured() -> None:
    assert all(not card.record for card in gallery().values())


def test_the_line_of_an_example_that_can_t_be_read_is_named() -> None:
    with pytest.raises(ValueError, match="verdict") as error:
        read_examples(b'{"language": "en", "verdict": "pass"}\n\n{"language": "en"}\n')
    assert error.value.__notes__ == ["line 3"]
