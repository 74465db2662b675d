"""Comparisons as win rates, ratings and ranks."""

import numpy as np
import pytest

from judging.core.statistics.frame import ScaledMetric
from judging.core.statistics.judges import answer_features, features_of
from tests.judging.core.statistics.cast import compared, document, said

PLAIN = ScaledMetric("m")
PAIRS = (("alpha", "beta"), ("alpha", "gamma"), ("beta", "gamma"))


def beside(verdicts, metric=PLAIN, **options):
    (found,) = document(verdicts, metric, **options)["side_by_side"]
    return found


def tournament(rows=40, by="qwen", source="judge", **more):
    """Comparisons in which alpha mostly beats beta, and beta mostly beats gamma."""
    rng = np.random.default_rng(rows)
    for row in range(1, rows + 1):
        for a, b in PAIRS:
            label = rng.choice(["A>>B", "A>B", "A=B", "B>A"], p=[0.2, 0.4, 0.2, 0.2])
            yield compared(str(label), a, b, row=row, by=by, source=source, **more)


def test_wins_ties_and_losses_are_seen_from_both_sides():
    found = beside(
        [compared("A>B"), compared("A=B", row=2), compared("both_bad", row=3), compared("B>>A", row=4)]
    )
    alpha, beta = found["candidates"]["alpha"], found["candidates"]["beta"]
    assert (alpha["wins"], alpha["ties"], alpha["losses"], alpha["both_bad"]) == (1, 2, 1, 1)
    assert (beta["wins"], beta["ties"], beta["losses"]) == (1, 2, 1)
    assert alpha["win_rate"] == beta["win_rate"] == 0.5
    (pair,) = found["pairs"]
    assert (pair["a"], pair["b"], pair["wins"], pair["ties"], pair["losses"], pair["both_bad"]) == (
        "alpha", "beta", 1, 2, 1, 1,
    )  # fmt: skip
    assert found["steps"] == {"A>>B": 0, "A>B": 1, "A=B": 1, "both_bad": 1, "B>A": 0, "B>>A": 1}


def test_ratings_have_mean_zero_and_intervals_and_ranks():
    found = beside(tournament())
    cells = found["candidates"]
    assert sum(cell["rating"] for cell in cells.values()) == pytest.approx(0, abs=1e-9)
    for cell in cells.values():
        assert cell["rating_low"] < cell["rating"] < cell["rating_high"]
        assert cell["ci_low"] < cell["win_rate"] < cell["ci_high"]
        assert 1 <= cell["rank_low"] <= cell["rank_high"] <= 3
    assert cells["alpha"]["rank_low"] == 1
    assert (found["connected"], found["perfect"]) == (True, [])


def test_an_unbeaten_candidate_is_named_and_leaves_no_ratings():
    found = beside([compared("A>B", *pair, row=row) for row in (1, 2) for pair in PAIRS[:2]])
    assert found["perfect"] == ["alpha", "beta", "gamma"]
    assert {cell["rating"] for cell in found["candidates"].values()} == {None}
    assert {cell["rank_low"] for cell in found["candidates"].values()} == {None}
    assert found["candidates"]["alpha"]["win_rate"] == 1


def test_a_judge_called_people_does_not_hide_what_people_said():
    found = document([compared("A>B", by="people"), compared("B>A", by="Ann", source="rater")], PLAIN)
    wins = [(one["by"], one["candidates"]["alpha"]["wins"]) for one in found["side_by_side"]]
    assert wins == [("people", 1), ("people", 0)]


def test_candidates_that_were_never_compared_are_said_not_to_be_connected():
    apart = [compared("A>B"), compared("B>A", row=2), compared("A>B", "gamma", "@reference")]
    assert beside([*apart, compared("B>A", "gamma", "@reference", row=2)])["connected"] is False


def test_people_together_and_each_judge_have_an_entry():
    verdicts = [*tournament(), *tournament(by="Ann", source="rater"), *tournament(by="Bob", source="rater")]
    found = document(verdicts, PLAIN)["side_by_side"]
    assert [one["by"] for one in found] == ["qwen", "people"]
    assert [one["candidates"]["alpha"]["comparisons"] for one in found] == [80, 80]


def test_a_judge_s_numbers_against_the_reference_are_comparisons():
    found = beside(
        [said(5), said(2, row=2), said(3, candidate="beta")], ScaledMetric("m", 1, 5, compares=True)
    )
    assert list(found["candidates"]) == ["@reference", "alpha", "beta"]
    assert (found["candidates"]["alpha"]["wins"], found["candidates"]["alpha"]["losses"]) == (1, 1)


def test_the_first_side_is_counted_where_it_is_known():
    verdicts = [compared("A>B", shown_first=1), compared("A>B", row=2, shown_first=2), compared("A>B", row=3)]
    side = beside([*verdicts, compared("A=B", row=4, shown_first=1)])["first_side"]
    assert (side["first"], side["second"], side["ties"], side["share"]) == (1, 1, 1, 0.5)
    assert side["ci_low"] < 0.5 < side["ci_high"]


def test_several_comparisons_of_one_row_are_not_taken_for_independent_ones():
    alone = [compared(label, row=row) for row, label in enumerate(["A>B", "B>A"] * 40)]
    together = [
        compared(label, row=row, response=number)
        for row, label in enumerate(["A>B", "B>A"] * 8)
        for number in range(1, 6)
    ]
    widths = [
        cell["ci_high"] - cell["ci_low"]
        for cell in (beside(one)["candidates"]["alpha"] for one in (alone, together))
    ]
    assert widths[1] > 1.5 * widths[0]


def test_scores_have_no_side_by_side():
    assert document([said(5), said(6, row=2)])["side_by_side"] == []


def test_features_of_an_answer_are_counted():
    text = "# Head\n\n- one\n- two\n1. three\n\nplain **bold** and **more**\n#nothing"
    assert features_of(text) == (len(text), 1, 3, 2)


def looks(rows=150):
    """Verdicts that depend only on the answers' length, and the answers' features."""
    rng = np.random.default_rng(5)
    lengths = {(name, row): int(rng.integers(50, 2000)) for name in ("alpha", "beta") for row in range(rows)}
    verdicts = []
    for row in range(rows):
        apart = lengths["alpha", row] - lengths["beta", row]
        longer = rng.random() < 1 / (1 + np.exp(-apart / 300))
        verdicts.append(compared("A>B" if longer else "B>A", row=row))
    return verdicts, answer_features([(name, row, 1, "x" * long) for (name, row), long in lengths.items()])


def test_verdicts_that_follow_length_show_it_in_the_style():
    verdicts, features = looks()
    style = beside(verdicts, features=features)["style"]
    assert list(style) == ["length"]
    assert style["length"]["coefficient"] > 4 * style["length"]["se"]


def test_with_looks_held_equal_the_longer_candidate_leads_no_more():
    rng = np.random.default_rng(9)
    lengths = {
        (name, row): int(rng.integers(50, 1000)) + (600 if name == "alpha" else 0)
        for name in ("alpha", "beta")
        for row in range(300)
    }
    verdicts = []
    for row in range(300):
        alpha, beta = lengths["alpha", row], lengths["beta", row]
        longer = rng.random() < 1 / (1 + np.exp(-4 * (alpha - beta) / (alpha + beta)))
        verdicts.append(compared("A>B" if longer else "B>A", row=row))
    features = answer_features([(name, row, 1, "x" * long) for (name, row), long in lengths.items()])
    found = beside(verdicts, features=features)["candidates"]
    assert found["alpha"]["rating"] > 0.3
    assert abs(found["alpha"]["style_rating"]) < found["alpha"]["rating"] / 2
    assert found["alpha"]["style_rating"] == pytest.approx(-found["beta"]["style_rating"])


def test_without_texts_there_is_no_style():
    verdicts, _ = looks(20)
    assert beside(verdicts)["style"] is None
    assert beside(verdicts)["candidates"]["alpha"]["style_rating"] is None


def test_scores_that_rise_with_length_within_the_row_show_it():
    rng = np.random.default_rng(8)
    lengths = {
        (name, row): int(rng.integers(100, 4000)) for name in ("alpha", "beta", "gamma") for row in range(80)
    }
    verdicts = [
        said(round(5 + 0.8 * np.log2(long / 1000) + rng.normal(0, 0.3), 3), candidate=name, row=row)
        for (name, row), long in lengths.items()
    ]
    features = answer_features([(name, row, 1, "x" * long) for (name, row), long in lengths.items()])
    (found,) = document(verdicts, ScaledMetric("m"), features=features)["length"]
    assert found["slope_low"] < 0.8 < found["slope_high"]
    assert 0.7 < found["ci_low"] < found["spearman"] < found["ci_high"] <= 1
    assert found["items"] == 80


def test_rows_with_one_answer_say_nothing_about_length():
    features = answer_features([("alpha", row, 1, "x" * row) for row in range(1, 9)])
    assert document([said(row % 7 + 1, row=row) for row in range(1, 9)], features=features)["length"] == []
