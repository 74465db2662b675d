"""Items behind figures: every count in the document equals the length of a list of items."""

from itertools import product

import numpy as np
import pytest

from judging.core.statistics import drill_down
from judging.core.statistics.drill_down import (
    comparisons_listed,
    judges_listed,
    orders_listed,
    ratings_listed,
    repeats_listed,
)
from judging.core.statistics.frame import ScaledMetric
from judging.core.statistics.verdicts import STEPS
from tests.judging.core.statistics.cast import compared, document, person, said, under

PLAIN = ScaledMetric("m")
PAIRS = (("alpha", "beta"), ("beta", "gamma"), ("gamma", "alpha"))


def tournament():
    rng = np.random.default_rng(4)
    for row, pair in product(range(30), PAIRS):
        for source, by in (("judge", "qwen"), ("rater", "Ann"), ("rater", "Bob")):
            yield compared(str(rng.choice([*STEPS])), *pair, row=row, by=by, source=source)


def test_every_count_of_comparisons_is_the_length_of_a_list():
    given = list(tournament())
    lists = comparisons_listed(under(given, PLAIN))
    entries = document(given, PLAIN)["side_by_side"]
    assert set(lists) == {entry["by"] for entry in entries}
    for entry in entries:
        for name, cell in entry["candidates"].items():
            mine = lists[entry["by"]].of(name)
            assert len(mine) == cell["comparisons"]
            assert [mine.count(key) for key in ("wins", "ties", "losses", "both_bad")] == [
                cell[key] for key in ("wins", "ties", "losses", "both_bad")
            ]
        for pair in entry["pairs"]:
            both = lists[entry["by"]].of(pair["a"], pair["b"])
            assert [both.count(key) for key in ("wins", "ties", "losses")] == [
                pair[key] for key in ("wins", "ties", "losses")
            ]


def test_every_verdict_on_a_pair_is_the_length_of_a_list():
    given = [compared(label, row=row) for row, label in enumerate([*STEPS, "A>B", "both_bad"])]
    (mine,) = comparisons_listed(under(given, PLAIN)).values()
    (entry,) = document(given, PLAIN)["side_by_side"]
    assert {step: mine.of("alpha", "beta").count(step) for step in STEPS} == entry["steps"]


def test_a_comparison_is_seen_from_the_asked_candidate():
    (mine,) = comparisons_listed(under([compared("A>>B", "alpha", "beta", row=3)], PLAIN)).values()
    (one,) = mine.of("beta").page(range(1))
    assert (one.row, one.candidate, one.other, one.label) == (3, "beta", "alpha", "B>>A")


def ratings():
    rng = np.random.default_rng(5)
    for row, name in product(range(20), ("Ann", "Bob", "Cem")):
        if name == "Ann" or rng.random() < 0.6:
            yield person(int(rng.integers(4, 7)), name, row=row)


def test_every_count_of_raters_is_the_length_of_a_list():
    given = list(ratings())
    mine, (figures,) = ratings_listed(under(given)), document(given)["raters"]
    for name, one in figures["each"].items():
        assert len(mine.places((name, ""))) == one["items"]
    for pair in figures["pairs"]:
        assert len(mine.places((pair["a"], ""), (pair["b"], ""))) == pair["items"]


def test_what_raters_differ_on_most_comes_first():
    given = [person(value, name, row=row) for row, two in enumerate(((5, 5), (1, 9), (4, 6)))
             for name, value in zip(("Ann", "Bob"), two, strict=True)]  # fmt: skip
    mine = ratings_listed(under(given))
    assert (mine.rows, mine.apart) == ([1, 2, 0], [True, True, False])
    assert mine.said[0] == [(0, 1), (1, 9)]


def test_nobody_rated_is_no_list():
    assert ratings_listed(under([said(5)])) is None


def test_the_answers_that_a_judge_scored_again_are_listed():
    given = [said(5, row=row, repeat=again) for row in (1, 2) for again in (1, 2)] + [said(9, row=3)]
    given[1] = said(8, row=1, repeat=2)
    mine, (figures,) = repeats_listed(under(given))["qwen"], document(given)["repeats"]
    assert mine.total == figures["items"] == 2
    assert (mine.rows, mine.names, mine.said[0]) == ([1, 2], ["1", "2"], [(0, 5), (1, 8)])


def test_flips_are_listed_first_and_are_as_many_as_the_report_counts():
    labels = (("A>B", "A>>B"), ("A>B", "B>A"), ("A=B", "B>A"), ("B>>A", "A>>B"))
    given = [
        compared(label, row=row, shown_first=first, repeat=first)
        for row, both in enumerate(labels)
        for first, label in enumerate(both, 1)
    ]
    mine, (figures,) = orders_listed(under(given, PLAIN))["qwen"], document(given, PLAIN)["order"]
    assert (mine.total, len(mine.places(apart=True))) == (figures["pairs"], figures["flips"]) == (4, 2)
    assert mine.rows[:2] == [3, 1]
    assert mine.said[0] == [(0, "B>>A"), (1, "A>>B")]


def test_of_many_answers_those_that_differ_most_are_listed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(drill_down, "MOST_LISTED", 3)
    mine = ratings_listed(under(list(ratings())))
    assert (mine.total, len(mine.rows), all(mine.apart)) == (20, 3, True)


def test_an_unknown_rater_is_an_error():
    with pytest.raises(ValueError, match="Eve"):
        ratings_listed(under([person(5)])).places(("Eve", ""))


def test_every_cell_of_a_confusion_table_of_judges_is_the_length_of_a_list():
    rng = np.random.default_rng(8)
    given = [said(int(rng.integers(4, 7)), by, row=row) for row in range(30) for by in ("glm", "qwen")]
    mine, (figures,) = judges_listed(under(given)), document(given)["judges"]
    for label, row in zip(figures["labels"], figures["confusion"], strict=True):
        cells = [mine.places(("glm", str(label)), ("qwen", str(other))) for other in figures["labels"]]
        assert [len(cell) for cell in cells] == row
