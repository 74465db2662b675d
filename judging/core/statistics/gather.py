"""From the tuples of a database cursor to columns."""

import json
from collections.abc import Callable, Hashable, Iterable, Mapping
from itertools import islice
from typing import Any

import numpy as np

from .arrays import Floats, Ints
from .columns import Columns, Kind, Metric, State

BATCH = 50_000  # tuples held as Python objects at a time

Judgement = tuple[Hashable, Hashable, int, int, str, str | None, Hashable | None]


def gather(
    judgements: Iterable[Judgement], metrics: Mapping[Any, Metric], candidates: Mapping[Any, str]
) -> Columns:
    """Columns from tuples as a cursor gives them, a million in about two seconds, without holding them all.

    A tuple is (metric key, candidate key, row number, response number, state word, value as JSON or None,
    cluster or None). The keys are those of `metrics` and `candidates`, whose order is kept; the words are
    those of `core.values`; None as cluster makes the row its own. KeyError for an unknown key or word.
    """
    codes = _Codes(metrics, candidates)
    stream = iter(judgements)
    batches = [codes.encode([])]
    while batch := list(islice(stream, BATCH)):
        batches.append(codes.encode(batch))
    arrays: dict[str, Any] = {name: np.concatenate([part[name] for part in batches]) for name in batches[0]}
    names = tuple(candidates.values())
    return Columns(tuple(metrics.values()), names, tuple(codes.categories), **arrays)


class _Codes:
    """Turns batches of tuples into arrays of codes, remembering the categories and clusters met so far."""

    def __init__(self, metrics: Mapping[Any, Metric], candidates: Mapping[Any, str]) -> None:
        self.metrics = {key: place for place, key in enumerate(metrics)}
        self.candidates = {key: place for place, key in enumerate(candidates)}
        self.states = {state.name.lower(): int(state) for state in State}
        self.categories: dict[str, int] = {}
        self.clusters: dict[Any, int] = {}

    def encode(self, batch: list[Judgement]) -> dict[str, Ints | Floats]:
        columns = list(zip(*batch, strict=True)) if batch else [()] * 7
        metric, candidate, row, response, state, value, cluster = columns
        kind, score, category = self._values(value)
        return {
            "metric": _coded(self.metrics.__getitem__, metric),
            "candidate": _coded(self.candidates.__getitem__, candidate),
            "row": np.array(row, dtype=np.int64),
            "response": np.array(response, dtype=np.int64),
            "state": _coded(self.states.__getitem__, state),
            "kind": kind,
            "score": score,
            "category": category,
            "cluster": _coded(lambda key: _code(self.clusters, key), cluster),
        }

    def _values(self, texts: tuple[Any, ...]) -> tuple[Ints, Floats, Ints]:
        """Kind, score and category of each value; each distinct text is read once, for most scores repeat."""
        read = {text: self._value(text) for text in dict.fromkeys(texts)}
        places = {text: place for place, text in enumerate(read)}
        which = _coded(places.__getitem__, texts)
        kinds, scores, categories = zip(*read.values(), strict=True) if read else ((), (), ())
        return (
            np.array(kinds, dtype=np.int64)[which],
            np.array(scores, dtype=np.float64)[which],
            np.array(categories, dtype=np.int64)[which],
        )

    def _value(self, text: str | None) -> tuple[Kind, float, int]:
        value = None if text is None else json.loads(text)
        if value is None:
            return Kind.NONE, np.nan, -1
        if isinstance(value, str):
            return Kind.CATEGORY, np.nan, _code(self.categories, value)
        return (Kind.BOOL if isinstance(value, bool) else Kind.NUMBER), float(value), -1


def _coded(code: Callable[[Any], int], keys: tuple[Any, ...]) -> Ints:
    return np.fromiter(map(code, keys), dtype=np.int64, count=len(keys))


def _code(codes: dict[Any, int], key: Hashable | None) -> int:
    """The key's code by order of first sight, -1 for None."""
    return -1 if key is None else codes.setdefault(key, len(codes))
