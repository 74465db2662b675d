import pandas as pd
import pytest

from judging.core import values
from judging.core.statistics.frame import (
    BATCH,
    ScaledMetric,
    VerdictRow,
    joined,
    judgement_frame,
    ordered,
    verdict_frame,
)

METRICS = {7: ScaledMetric("correct", 1, 10), 3: ScaledMetric("style", 1, 5)}
NAMES = {20: "alpha", 10: "beta"}


def judged(value, state="scored", cluster=None):
    return judgement_frame([(7, 20, 1, 1, state, value, cluster)], METRICS, NAMES).iloc[0]


@pytest.mark.parametrize(
    ("json", "kind", "value"),
    [("7", "number", 7.0), ("7.5", "number", 7.5), ("true", "bool", 1.0), ("false", "bool", 0.0)],
)
def test_numbers_and_bools_have_a_value(json, kind, value):
    got = judged(json)
    assert (got["kind"], got["value"], pd.isna(got["label"])) == (kind, value, True)


@pytest.mark.parametrize(("json", "label"), [('"好"', "好"), ('""', "")])
def test_a_string_is_a_category_with_a_label_and_no_value(json, label):
    got = judged(json)
    assert (got["kind"], got["label"], pd.isna(got["value"])) == ("category", label, True)


def test_two_spellings_of_one_label_are_one_category():
    rows = [(7, 20, row, 1, "scored", text, None) for row, text in enumerate(['"A"', '"\\u0041"'])]
    assert judgement_frame(rows, METRICS, NAMES)["label"].nunique() == 1


@pytest.mark.parametrize("state", [values.NO_SCORE, values.UNPARSED, values.ERROR, values.NOT_RUN])
def test_every_state_without_a_value_is_known(state):
    got = judged(None, state)
    assert (got["state"], pd.isna(got["kind"]), pd.isna(got["value"])) == (state, True, True)


def test_the_order_of_metrics_and_candidates_is_kept():
    got = judgement_frame([(3, 10, 5, 2, "scored", "4", None)], METRICS, NAMES)
    assert got.loc[0, ["metric", "candidate", "row", "response"]].tolist() == ["style", "beta", 5, 2]
    assert got["metric"].cat.categories.tolist() == ["correct", "style"]
    assert got["candidate"].cat.categories.tolist() == ["alpha", "beta"]


def test_rows_of_a_cluster_are_one_unit_and_a_row_without_one_is_its_own():
    rows = [(7, 20, row, 1, "scored", "1", cluster) for row, cluster in enumerate(["x", None, "y", "x"])]
    assert ordered(judgement_frame(rows, METRICS, NAMES))["unit"].tolist() == [0, 1, 2, 0]


def test_no_judgements_are_a_table_with_the_same_columns():
    some, none = (
        judgement_frame(rows, METRICS, NAMES) for rows in ([(7, 20, 1, 1, "scored", "1", None)], [])
    )
    assert none.empty
    assert (none.dtypes[["row", "state", "value"]] == some.dtypes[["row", "state", "value"]]).all()
    assert list(ordered(none).columns) == list(ordered(some).columns)


def test_labels_are_kept_from_one_batch_to_the_next():
    rows = [(7, 20, row, 1, "scored", '"a"' if row < BATCH else '"b"', None) for row in range(BATCH + 2)]
    got = judgement_frame(rows, METRICS, NAMES)["label"]
    assert got.iloc[[0, BATCH - 1, BATCH, -1]].tolist() == ["a", "a", "b", "b"]


@pytest.mark.parametrize("row", [(9, 20, 1, 1, "scored", "1", None), (7, 20, 1, 1, "lost", None, None)])
def test_an_unknown_metric_or_state_is_refused(row):
    with pytest.raises(KeyError):
        judgement_frame([row], METRICS, NAMES)


def test_people_s_judgements_are_next_to_those_of_judges():
    said = [VerdictRow(7, 20, 1, 1, "scored", value, by, kind) for value, by, kind in (
        ("1", "qwen", "judge"), ("3", "Ann", "rater"), ("5", "Bob", "rater"),
    )]  # fmt: skip
    both = ordered(verdict_frame(said, METRICS, NAMES))
    assert both.groupby("source", observed=True)["value"].mean().to_dict() == {"judge": 1.0, "rater": 4.0}


def test_the_same_author_says_one_thing_about_an_answer():
    said = [VerdictRow(7, 20, 1, 1, "scored", value, "Ann", "rater") for value in ("3", "4")]
    with pytest.raises(ValueError, match="two judgements"):
        ordered(verdict_frame(said, METRICS, NAMES))


def test_tables_of_several_sources_become_one():
    of_judges = judgement_frame([(7, 20, 1, 1, "scored", "1", None)], METRICS, NAMES)
    of_people = verdict_frame([VerdictRow(7, 20, 1, 1, "scored", "3", "Ann", "rater")], METRICS, NAMES)
    both = joined([of_judges, of_people])
    assert both["by"].tolist() == ["judge", "Ann"]
    assert list(both.columns) == list(of_judges.columns)


def test_a_table_whose_judgements_weigh_differently_is_refused():
    frame = judgement_frame([(7, 20, 1, 1, "scored", "1", None)], METRICS, NAMES)
    with pytest.raises(ValueError, match="weight"):
        ordered(frame.assign(weight=2.0))
