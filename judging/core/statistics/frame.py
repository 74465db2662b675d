"""The table that figures are computed from: a tidy pandas DataFrame with one row for each judgement.

| column         | dtype    | meaning |
| -------------- | -------- | ------- |
| metric         | category | the metric's name; the categories keep the run's order |
| candidate      | category | the name of the model whose response is judged; the categories keep the run's order |
| other          | category | the candidate it is compared with, `@reference` for the reference; missing: none |
| row            | int64    | the row's line in its data set |
| response       | int64    | number of the response within row and candidate, from 1 |
| other_response | int64    | number of the other candidate's response; 0 if there is none |
| state          | category | scored, no_score (a script returned no score), unparsed (no verdict), unsettled (the two
                              orders of a comparison disagree), error or not_run |
| kind           | category | number, bool or category: what the value is; missing unless scored |
| value          | float64  | the number; 1 or 0 for a bool; NaN for a category and for unscored judgements |
| label          | category | the text of a value of kind category; missing for the others |
| by             | category | a judge's name, `rules`, `script`, `combined`, `override`, or a person's name |
| source         | category | type of `by`: judge, rules, script, combined, override, rater or adjudicator |
| repeat         | int64    | number of the judge's repeat on the same question, from 1 |
| order          | category | order in which a judge saw the two sides: first, swapped, or both (the combined result) |
| main           | bool     | whether it counts in results; False: one of several verdicts that were combined |
| shown_first    | int64    | comparisons: the answer shown first: 1 `response`, 2 `other_response`, 0 unknown |
| drawn_with     | float64  | probability with which the item was sampled for human rating; NaN: not at random |
| draw           | int32    | the draw that it comes from: 0 the first, -1 sent by a rule and not drawn        |
| known_to       | int32    | the first draw that took the rating as known; 0: none                            |
| stratum        | category | the stratum of the draw that the answer belongs to; missing: none, or unknown |
| seconds        | float64  | duration; NaN if unknown |
| cluster        | category | the conversation or group that the row belongs to; missing: none |
| weight         | float64  | number of rows that the row represents; must be 1, because rows have equal weight |

Comparisons have the labels of `STEPS` (and `both_bad`), in which A is `response`. `ordered` checks such a table, sorts
it and adds `unit` (int64): the number of the independent unit, which is the row's cluster or, without one, the row.
The functions of this package take an ordered table, or its rows of one metric and one candidate: a cell.

pandas is imported inside functions: start-up does not wait for it.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from judging.core.values import ERROR, NO_SCORE, NOT_RUN, SCORED, UNPARSED, UNSETTLED

from .numeric import Ints

if TYPE_CHECKING:
    from pandas import Categorical, DataFrame, Series

Kind = Literal["number", "bool", "category"]
Level = Literal["nominal", "ordinal", "interval", "ratio"]  # of measurement
Source = Literal["judge", "rules", "script", "combined", "override", "rater", "adjudicator"]
Order = Literal["first", "swapped", "both"]
JudgementTuple = tuple[Hashable, Hashable, int, int, str, str | None, Hashable | None]

KINDS: tuple[Kind, ...] = ("number", "bool", "category")
STATES = (SCORED, NO_SCORE, UNPARSED, UNSETTLED, ERROR, NOT_RUN)
SOURCES: tuple[Source, ...] = ("judge", "rules", "script", "combined", "override", "rater", "adjudicator")
PEOPLE: tuple[Source, ...] = ("rater", "adjudicator")
ORDERS: tuple[Order, ...] = ("first", "swapped", "both")
REFERENCE = "@reference"  # the other side of a comparison with the row's reference answer
COMBINED = "combined"
JUDGEMENT = ("metric", "candidate", "row", "response", "state", "value", "cluster")  # of a tuple
ANSWERS = [
    "metric",
    "candidate",
    "row",
    "response",
    "other",
    "other_response",
]  # an answer or a pair
VERDICT = [*ANSWERS, "source", "by", "repeat", "order", "shown_first", "main"]  # unique per judgement
COLUMNS = [
    "metric", "candidate", "other", "row", "response", "other_response", "state", "kind", "value", "label",
    "by", "source", "repeat", "order", "main", "shown_first", "drawn_with", "draw", "known_to", "stratum",
    "seconds", "cluster", "weight",
]  # fmt: skip
DTYPES = {
    **dict.fromkeys(("other_response", "repeat", "shown_first"), "int64"),
    **dict.fromkeys(("drawn_with", "seconds", "weight"), "float64"),
    **dict.fromkeys(("draw", "known_to"), "int32"),
    "main": "bool",
}
BATCH = 50_000  # tuples held as Python objects at a time


@dataclass(frozen=True, slots=True)
class ScaledMetric:
    """A metric's name and scale; `low` and `high` are None if its scores have no declared scale.

    `pass_threshold`: the lowest score that passes (pass@k); None means the top of the scale, true for bools.
    `wanted_difference`: the difference between candidates that the run should be able to detect, in score units.
    `compares`: its numbers 1…5 compare the row's reference (A) with the answer (B): 1 is A>>B, 5 is B>>A.
    `checklist`: its values are shares of points, of which the worst answer can get `least`; means are cut to 0…1.
    `label_values`: what its labels count as in a mean, if all of them have a value. `choices`: the labels that people
    could choose from, None if their verdicts came from elsewhere.
    """

    name: str
    low: float | None = None
    high: float | None = None
    pass_threshold: float | None = None
    wanted_difference: float | None = None
    compares: bool = False
    label_values: Mapping[str, float] | None = None
    choices: tuple[str, ...] | None = None
    checklist: bool = False
    least: float | None = None


@dataclass(frozen=True, slots=True)
class Author:
    """The author of a metric's judgements, and the order in which it sees the two sides of a comparison."""

    by: str
    source: Source
    order: Order = "first"


class VerdictRow(NamedTuple):
    """One verdict on an answer or a pair of answers, as a row of the table described above.

    `metric` and `candidate` are keys of the mappings passed with it, `other` is a name or None, `value` is JSON.
    """

    metric: Hashable
    candidate: Hashable
    row: int
    response: int
    state: str
    value: str | None
    by: str
    source: Source
    other: str | None = None
    other_response: int = 0
    repeat: int = 1
    order: Order = "first"
    main: bool = True
    shown_first: int = 0
    drawn_with: float = np.nan
    draw: int = 0
    known_to: int = 0
    stratum: str | None = None
    seconds: float = np.nan
    cluster: Hashable | None = None


def judgement_frame(
    judgements: Iterable[JudgementTuple],
    metrics: Mapping[Any, ScaledMetric],
    candidates: Mapping[Any, str],
    *,
    authors: Mapping[Any, Author] | None = None,
) -> DataFrame:
    """Build the table from tuples of a database cursor; a million take about two seconds.

    A tuple is (metric key, candidate key, row, response, state, value as JSON or None, cluster or None). The keys are
    those of `metrics` and `candidates`, whose order is preserved. Tuples are read in batches and never all held in
    memory. `authors`: by metric key, the author of its judgements; defaults to a judge called `judge`. Raises KeyError
    for an unknown key or state, ValueError if two metrics or two candidates have the same name.
    """
    import pandas as pd  # imported in functions: it takes 300 ms, which most processes do not need

    stream = iter(judgements)
    parts = [_part([], JUDGEMENT, metrics, candidates)]
    while batch := list(islice(stream, BATCH)):
        parts.append(_part(batch, JUDGEMENT, metrics, candidates))
    frame = pd.concat(parts, ignore_index=True)
    metric_authors = [(authors or {}).get(key, Author("judge", "judge")) for key in metrics]
    of_metric = frame["metric"].cat.codes.to_numpy()
    return _completed(
        frame.assign(
            by=_texts([author.by for author in metric_authors]).take(of_metric),
            source=_texts([author.source for author in metric_authors]).take(of_metric),
            order=_texts([author.order for author in metric_authors]).take(of_metric),
        )
    )


def verdict_frame(
    verdicts: Iterable[VerdictRow], metrics: Mapping[Any, ScaledMetric], candidates: Mapping[Any, str]
) -> DataFrame:
    """The table of verdicts by people, by individual judges or from imports. Raises the same as `judgement_frame`."""
    return _completed(_part(list(verdicts), VerdictRow._fields, metrics, candidates))


def joined(frames: Sequence[DataFrame]) -> DataFrame:
    """Concatenate tables of the same metrics and candidates."""
    import pandas as pd
    from pandas.api.types import union_categoricals

    filled = [frame for frame in frames if len(frame)] or list(frames[:1])
    if len(filled) == 1:
        return filled[0]
    texts = {
        name: union_categoricals(
            [_as_objects(frame[name]) for frame in filled], sort_categories=name != "cluster"
        )
        for name in ("other", "label", "by", "stratum", "cluster")
    }
    rest = [frame.drop(columns=list(texts)) for frame in filled]
    return pd.concat(rest, ignore_index=True).assign(**texts)[COLUMNS]


def _as_objects(column: Series[Any]) -> Series[Any]:
    import pandas as pd

    return column.cat.rename_categories(pd.Index(column.cat.categories, dtype=object))


def _part(
    rows: Sequence[tuple[Any, ...]],
    columns: Sequence[str],
    metrics: Mapping[Any, ScaledMetric],
    candidates: Mapping[Any, str],
) -> DataFrame:
    """Tuples as a table of objects, in which metric, candidate and state are categories."""
    import pandas as pd

    table = pd.DataFrame(rows, columns=list(columns), dtype=object)
    return table.assign(
        metric=_coded(table["metric"], {key: metric.name for key, metric in metrics.items()}),
        candidate=_coded(table["candidate"], candidates),
        state=_coded(table["state"], {state: state for state in STATES}),
        value=pd.Series(_texts(table["value"])).astype(object),  # equal texts share one object
    ).astype({"row": np.int64, "response": np.int64})


def _coded(keys: Series[Any], names: Mapping[Any, str]) -> Categorical:
    import pandas as pd

    if len(set(names.values())) < len(names):
        raise ValueError("two metrics or two candidates share a name")
    codes = pd.Index(list(names), dtype=object).get_indexer(keys)
    if (codes < 0).any():
        raise KeyError("a judgement has an unknown metric, candidate or state")
    # As objects, because Arrow, pandas' default for texts, rejects lone surrogates.
    return pd.Categorical.from_codes(codes, pd.Index(list(names.values()), dtype=object))


def _texts(texts: Sequence[str | None] | Series[Any]) -> Categorical:
    import pandas as pd

    return pd.Categorical(pd.Series(texts, dtype=None if hasattr(texts, "cat") else object))


def _completed(frame: DataFrame) -> DataFrame:
    """Add the missing columns with their defaults, split the JSON into kind, value and label, and set the dtypes."""
    import pandas as pd

    usual = {name: default for name, default in VerdictRow._field_defaults.items() if name not in frame}
    frame = frame.assign(**usual, weight=1.0)
    kind, value, label = _values(_texts(frame["value"]))
    return frame.assign(
        kind=kind,
        value=value,
        label=label,
        source=pd.Categorical(frame["source"], categories=list(SOURCES)),
        order=pd.Categorical(frame["order"], categories=list(ORDERS)),
        **{name: _texts(frame[name]) for name in ("other", "by", "stratum", "cluster")},
    ).astype(DTYPES)[COLUMNS]


def _values(texts: Categorical) -> tuple[Categorical, Any, Categorical]:
    """Kind, value and label of each text; each distinct text is parsed once, because most scores repeat."""
    import pandas as pd

    read = [json.loads(text) for text in texts.categories]
    kinds = pd.Categorical([_kind(value) for value in read], categories=list(KINDS))
    # Code -1 stands for no text and indexes the last value.
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
    """Sort the table, so that equal judgements give equal sums in whatever order they arrived, and add `unit`.

    Sorted by metric, candidate, row and response, then by the other columns of `VERDICT`. Raises ValueError if the same
    author has two judgements of a response under a metric, if a scored judgement has no value, if an unscored one has a
    value, or if a weight is not 1.
    """
    _check(frame)
    result = frame.astype({"metric": "category", "candidate": "category"})
    result = result.sort_values(VERDICT, ignore_index=True)
    if result.duplicated(VERDICT).any():
        raise ValueError("a response has two judgements under one metric")
    return result.assign(unit=units_of(result))


def answers_coded(frame: DataFrame) -> Ints:
    """A number for each row's metric and answer (or pair of answers), in the order of answers: shape (rows,)."""
    answers = frame[ANSWERS].assign(other=frame["other"].cat.codes)
    return np.asarray(answers.groupby(ANSWERS, observed=True).ngroup(), dtype=np.int64)


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


def units_of(frame: DataFrame) -> Series[int]:
    """Each judgement's unit, numbered by first appearance in row order."""
    import pandas as pd

    clusters = frame.drop_duplicates("row").set_index("row")["cluster"].sort_index()
    codes, clustered = pd.factorize(clusters)
    alone = codes < 0
    codes[alone] = len(clustered) + np.arange(alone.sum())
    return frame["row"].map(pd.Series(pd.factorize(codes)[0], index=clusters.index))


def rated_candidates(judgements: DataFrame) -> list[str]:
    """The candidates' names, with or without judgements; the reference is included only if it was rated itself."""
    rated = (judgements["candidate"] == REFERENCE).any()
    return [str(name) for name in judgements["candidate"].cat.categories if name != REFERENCE or rated]


def of_kind(judgements: DataFrame, kind: Kind | None) -> DataFrame:
    """The judgements that are scored with a value of this kind; none if `kind` is None."""
    mine = (judgements["kind"] == kind).to_numpy()
    return judgements if mine.all() else judgements[mine]
