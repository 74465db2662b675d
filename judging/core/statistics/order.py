"""Brings columns into one order and refuses what would make figures wrong."""

from dataclasses import replace

import numpy as np

from .arrays import Ints
from .columns import Columns, Kind, State, Table


def ordered(columns: Columns) -> Table:
    """Sorts the columns and numbers items and clusters in order, so that equal judgements give equal sums.

    ValueError where a response has two judgements under a metric, a scored one has no value, or two metrics or
    two candidates share a name.
    """
    _check_names([metric.name for metric in columns.metrics])
    _check_names(list(columns.candidates))
    _check_values(columns)
    rows, item = np.unique(columns.row, return_inverse=True)
    key = columns.metric * len(columns.candidates) + columns.candidate
    order = np.lexsort((columns.response, key * max(1, rows.size) + item))
    result = _taken(columns, order)
    item = item[order].astype(np.int64)
    _check_single(key[order], item, result.response)
    cells = len(columns.metrics) * len(columns.candidates)
    edges = np.searchsorted(key[order], np.arange(cells + 1)).astype(np.int64)
    clusters = _item_clusters(item, result.cluster, int(rows.size))
    return Table(result, item, int(rows.size), clusters, edges)


def _taken(columns: Columns, order: Ints) -> Columns:
    return replace(
        columns,
        metric=columns.metric[order],
        candidate=columns.candidate[order],
        row=columns.row[order],
        response=columns.response[order],
        state=columns.state[order],
        kind=columns.kind[order],
        score=columns.score[order],
        category=columns.category[order],
        cluster=columns.cluster[order],
    )


def _check_names(names: list[str]) -> None:
    if len(set(names)) < len(names):
        raise ValueError("two metrics or two candidates share a name")


def _check_values(columns: Columns) -> None:
    scored = columns.state == State.SCORED
    if np.any((columns.kind != Kind.NONE) != scored):
        raise ValueError("a judgement has a value exactly if it is scored")
    categorical = columns.kind == Kind.CATEGORY
    if not np.all(np.isfinite(columns.score[scored & ~categorical])):
        raise ValueError("a number or bool has a finite score")
    if np.any(columns.category[categorical] < 0):
        raise ValueError("a category has a label")


def _check_single(key: Ints, item: Ints, response: Ints) -> None:
    repeated = (key[1:] == key[:-1]) & (item[1:] == item[:-1]) & (response[1:] == response[:-1])
    if np.any(repeated):
        raise ValueError("a response has two judgements under one metric")


def _item_clusters(item: Ints, cluster: Ints, items: int) -> Ints | None:
    """Each item's cluster, numbered by first appearance; an item without one is a cluster of its own."""
    if not np.any(cluster >= 0):
        return None
    of_item = np.full(items, -1, dtype=np.int64)
    of_item[item[::-1]] = cluster[::-1]
    alone = of_item < 0
    of_item[alone] = int(cluster.max()) + 1 + np.flatnonzero(alone)
    _, first, member = np.unique(of_item, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[member].astype(np.int64)
