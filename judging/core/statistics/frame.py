"""The table that figures are computed from: a tidy pandas DataFrame with one row for each judgement.

| column    | dtype    | meaning |
| --------- | -------- | ------- |
| metric    | category | the metric's name; the categories keep the run's order |
| candidate | category | the name of the model whose response is judged; the categories keep the run's order |
| row       | int64    | the row's line in its data set: the item |
| response  | int64    | number of the response within row and candidate, from 1 |
| state     | category | scored, no_score (a script declined), unparsed (no verdict found), error or not_run |
| kind      | category | number, bool or category: what the value is; missing unless scored |
| value     | float64  | the number, 1 or 0 for a bool; NaN for a category and where nothing is scored |
| label     | category | the text of a value of kind category; missing for the others |
| cluster   | category | the conversation or group that the row belongs to; missing: the row stands alone |
| weight    | float64  | how many rows the judged one stands for; must be 1, as figures count all rows alike |
| source    | category | judge (a judge model, script or rule program) or person |

`ordered` checks such a table, sorts it and adds `unit` (int64): the number of the independent unit, which is the
row's cluster or, without one, the row. The functions of this package take an ordered table, or its rows of
one metric and one candidate: a cell of the report.

pandas is imported inside functions: start-up does not wait for it.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from judging.core.values import ERROR, NO_SCORE, NOT_RUN, SCORED, UNPARSED

if TYPE_CHECKING:
    from pandas import Categorical, DataFrame, Series

Kind = Literal["number", "bool", "category"]
Source = Literal["judge", "person"]
Judgement = tuple[Hashable, Hashable, int, int, str, str | None, Hashable | None]

KINDS: tuple[Kind, ...] = ("number", "bool", "category")
STATES = (SCORED, NO_SCORE, UNPARSED, ERROR, NOT_RUN)
SOURCES: tuple[Source, ...] = ("judge", "person")
RESPONSE = ["metric", "candidate", "row", "response"]  # one judgement for each
COLUMNS = [*RESPONSE, "state", "kind", "value", "label", "cluster", "weight", "source"]
BATCH = 50_000  # tuples held as Python objects at a time


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric's name and scale; `low` and `high` are None where its scores have no declared scale.

    `pass_threshold`: from which score a response passes (pass@k); None means the top of the scale, true for bools.
    `wanted_difference`: the difference between candidates that the run should be able to show, in score units.
    """

    name: str
    low: float | None = None
    high: float | None = None
    pass_threshold: float | None = None
    wanted_difference: float | None = None


def judgement_frame(
    judgements: Iterable[Judgement],
    metrics: Mapping[Any, Metric],
    candidates: Mapping[Any, str],
    *,
    source: Source = "judge",
) -> DataFrame:
    """The table of judgements that come as tuples from a database cursor, a million in about two seconds.

    A tuple is (metric key, candidate key, row, response, state, value as JSON or None, cluster or None). The keys are
    those of `metrics` and `candidates`, whose order is kept. Tuples are read in batches, never held all at once.
    KeyError for an unknown key or state, ValueError where two metrics or two candidates share a name.
    """
    import pandas as pd

    names = {key: metric.name for key, metric in metrics.items()}
    stream = iter(judgements)
    parts = [_part([], names, candidates)]
    while batch := list(islice(stream, BATCH)):
        parts.append(_part(batch, names, candidates))
    frame = pd.concat(parts, ignore_index=True)
    kind, value, label = _values(pd.Categorical(frame.pop("json")))
    frame = frame.assign(
        kind=kind,
        value=value,
        label=label,
        cluster=pd.Categorical(frame["cluster"]),
        weight=1.0,
        source=pd.Categorical.from_codes(np.full(len(frame), SOURCES.index(source)), pd.Index(SOURCES)),
    )
    return frame[COLUMNS]


def _part(batch: list[Judgement], metrics: Mapping[Any, str], candidates: Mapping[Any, str]) -> DataFrame:
    import pandas as pd

    metric, candidate, row, response, state, value, cluster = zip(*batch, strict=True) if batch else [()] * 7
    return pd.DataFrame(
        {
            "metric": _coded(metric, metrics),
            "candidate": _coded(candidate, candidates),
            "row": np.array(row, dtype=np.int64),
            "response": np.array(response, dtype=np.int64),
            "state": _coded(state, {state: state for state in STATES}),
            "json": pd.Series(pd.Categorical(pd.Series(value, dtype=object))).astype(object),
            "cluster": pd.Series(cluster, dtype=object),
        }
    )


def _coded(keys: Sequence[Any], names: Mapping[Any, str]) -> Categorical:
    import pandas as pd

    if len(set(names.values())) < len(names):
        raise ValueError("two metrics or two candidates share a name")
    places = {key: place for place, key in enumerate(names)}
    codes = np.fromiter(map(places.__getitem__, keys), dtype=np.int64, count=len(keys))
    # As objects: Arrow, which pandas holds texts in otherwise, refuses lone surrogates.
    return pd.Categorical.from_codes(codes, pd.Index(list(names.values()), dtype=object))


def _values(texts: Categorical) -> tuple[Categorical, Any, Categorical]:
    """Kind, value and label of each text; each distinct text is read once, as most scores repeat."""
    import pandas as pd

    read = [json.loads(text) for text in texts.categories]
    kinds = pd.Categorical([_kind(value) for value in read], categories=list(KINDS))
    # Codes are -1 where there is no text: the last of the values.
    values = np.array(
        [np.nan if value is None or isinstance(value, str) else value for value in [*read, None]]
    )
    labels = pd.Series([value if isinstance(value, str) else None for value in read], dtype=object)
    return (
        kinds.take(texts.codes, allow_fill=True),
        values.astype(np.float64)[texts.codes],
        pd.Categorical(labels).take(texts.codes, allow_fill=True),
    )


def _kind(value: Any) -> Kind | None:
    if value is None:
        return None
    if isinstance(value, str):
        return "category"
    return "bool" if isinstance(value, bool) else "number"


def ordered(frame: DataFrame) -> DataFrame:
    """The table in one order, so that equal judgements give equal sums however they arrived, with `unit`.

    Sorted by metric, candidate, row and response. ValueError where a response has two judgements under a metric, a
    scored one has no value, another one has, or weights differ from 1.
    """
    _check(frame)
    result = frame.astype({"metric": "category", "candidate": "category"})
    result = result.sort_values(RESPONSE, ignore_index=True)
    if result.duplicated(RESPONSE).any():
        raise ValueError("a response has two judgements under one metric")
    return result.assign(unit=_units(result))


def _check(frame: DataFrame) -> None:
    scored = frame["state"] == SCORED
    categorical = frame["kind"] == "category"
    if (frame["kind"].notna() != scored).any():
        raise ValueError("a judgement has a value exactly if it is scored")
    if not np.isfinite(frame["value"][scored & ~categorical]).all():
        raise ValueError("a number or bool has a finite score")
    if frame["label"][categorical].isna().any():
        raise ValueError("a category has a label")
    if (frame["weight"] != 1).any():
        raise ValueError("a judgement's weight is 1: figures count all rows alike")


def _units(frame: DataFrame) -> Series[int]:
    """Each judgement's unit, numbered by first appearance in the order of rows."""
    import pandas as pd

    clusters = frame.drop_duplicates("row").set_index("row")["cluster"].sort_index()
    codes, known = pd.factorize(clusters)
    alone = codes < 0
    codes[alone] = len(known) + np.arange(alone.sum())
    return frame["row"].map(pd.Series(pd.factorize(codes)[0], index=clusters.index))


def of_kind(judgements: DataFrame, kind: Kind | None) -> DataFrame:
    """Those that are scored with a value of this kind; for None no judgement."""
    mine = judgements["kind"] == kind
    return judgements if mine.all() else judgements[mine]
