import numpy as np
import pytest

from judging.core import values
from judging.core.statistics.columns import Kind, Metric, State
from judging.core.statistics.gather import BATCH, gather

METRICS = {7: Metric("correct", 1, 10), 3: Metric("style", 1, 5)}
NAMES = {20: "alpha", 10: "beta"}


def judged(value, state="scored", cluster=None):
    return gather([(7, 20, 1, 1, state, value, cluster)], METRICS, NAMES)


@pytest.mark.parametrize(
    ("value", "kind", "score"),
    [("7", Kind.NUMBER, 7.0), ("7.5", Kind.NUMBER, 7.5), ("true", Kind.BOOL, 1.0), ("false", Kind.BOOL, 0.0)],
)
def test_numbers_and_bools_have_a_score(value, kind, score):
    got = judged(value)
    assert (got.kind[0], got.score[0], got.category[0]) == (kind, score, -1)


def test_a_string_is_a_category_without_a_score():
    got = judged('"好"')
    assert (got.kind[0], got.categories[got.category[0]]) == (Kind.CATEGORY, "好")
    assert np.isnan(got.score[0])


@pytest.mark.parametrize("state", [values.NO_SCORE, values.UNPARSED, values.ERROR, values.NOT_RUN])
def test_every_state_without_a_value_is_known(state):
    got = judged(None, state)
    assert (State(got.state[0]).name.lower(), got.kind[0]) == (state, Kind.NONE)


def test_the_order_of_metrics_and_candidates_is_kept():
    got = gather([(3, 10, 5, 2, "scored", "4", None)], METRICS, NAMES)
    assert (got.metric[0], got.candidate[0], got.row[0], got.response[0]) == (1, 1, 5, 2)
    assert (got.metrics[1].name, got.candidates) == ("style", ("alpha", "beta"))


def test_equal_clusters_get_equal_numbers_and_none_gets_its_own_row():
    rows = [(7, 20, row, 1, "scored", "1", cluster) for row, cluster in enumerate(["x", None, "y", "x"])]
    assert gather(rows, METRICS, NAMES).cluster.tolist() == [0, -1, 1, 0]


def test_no_judgements_are_empty_columns():
    assert gather([], METRICS, NAMES).score.shape == (0,)


def test_codes_stay_the_same_from_one_batch_to_the_next():
    rows = [(7, 20, row, 1, "scored", '"a"' if row < BATCH else '"b"', None) for row in range(BATCH + 2)]
    got = gather(rows, METRICS, NAMES)
    assert (got.category[0], got.category[-1], got.categories) == (0, 1, ("a", "b"))


@pytest.mark.parametrize("row", [(9, 20, 1, 1, "scored", "1", None), (7, 20, 1, 1, "lost", None, None)])
def test_an_unknown_metric_or_state_is_refused(row):
    with pytest.raises(KeyError):
        gather([row], METRICS, NAMES)
