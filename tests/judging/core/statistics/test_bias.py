"""Signs of bias: scores at the ends of the scale, and answers with an injected verdict."""

from judging.core.statistics.frame import ScaledMetric
from judging.core.statistics.judges import Flagged, injected_verdicts
from tests.judging.core.statistics.cast import document, frame, person, said

METRIC = ScaledMetric("m", 1, 10)


def test_each_judge_has_the_shares_of_its_lowest_and_highest_scores():
    mine = [said(score, row=row) for row, score in enumerate([1, 10, 10, 5])]
    other = [said(score, "gpt", row=row) for row, score in enumerate([1, 2])]
    unscored_and_people = [said("?", row=9), person(10, row=1)]
    assert document([*mine, *other, *unscored_and_people])["scale_ends"] == [
        {"metric": "m", "judge": "gpt", "scores": 2, "lowest": 0.5, "highest": 0.0},
        {"metric": "m", "judge": "qwen", "scores": 4, "lowest": 0.25, "highest": 0.5},
    ]


def test_without_a_declared_scale_there_are_no_ends():
    assert document([said(1), said(10, row=2)], ScaledMetric("m"))["scale_ends"] == []


def test_labels_and_bools_are_at_no_end():
    assert document([said("good"), said("bad", row=2)])["scale_ends"] == []
    assert document([said(True), said(False, row=2)])["scale_ends"] == []


def test_answers_with_a_verdict_are_next_to_the_others():
    scores = frame({"a": [9, 10, 4, 6, "?"], "b": [5, 5, 5, 5, 5]})
    (found,) = injected_verdicts({("m", "a"): Flagged(3, 2, 19.0)}, scores, [METRIC])
    assert found == {"metric": "m", "candidate": "a", "answers": 3, "mean": 9.5, "others_mean": 5.0}


def test_where_every_answer_holds_a_verdict_there_are_no_others():
    (found,) = injected_verdicts({("m", "a"): Flagged(2, 2, 9.0)}, frame({"a": [4, 5]}), [METRIC])
    assert (found["mean"], found["others_mean"]) == (4.5, None)


def test_without_a_score_there_is_no_mean():
    (found,) = injected_verdicts({("m", "a"): Flagged(1, 0, 0.0)}, frame({"a": ["?", 5]}), [METRIC])
    assert (found["mean"], found["others_mean"]) == (None, 5.0)


def test_nothing_flagged_is_nothing_to_say():
    assert injected_verdicts({}, frame({"a": [4, 5]}), [METRIC]) == []
