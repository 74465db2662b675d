"""Imported comparisons of candidates: a judge's verdicts in the two orders of a pair become one that counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from judging.core.pairs import settled_verdict
from judging.core.values import SCORED, UNSETTLED

from .frame import ANSWERS, REFERENCE, joined
from .verdicts import oriented

if TYPE_CHECKING:
    from pandas import DataFrame

_QUESTION = [*ANSWERS, "by", "repeat"]


def with_settled_orders(frame: DataFrame) -> DataFrame:
    """Add a combined row (`order` both) for each pair that a judge saw in both orders; the two no longer count.

    The table is as from `frame.verdict_frame`. Where the orders disagree, the combined row is unsettled; where one has
    no value, it has that one's state. Comparisons with a reference are left as they are.
    """
    import pandas as pd  # imported in functions: it takes 300 ms, which most processes do not need

    seen = (
        (frame["source"] == "judge")
        & frame["main"]
        & frame["other"].notna()
        & (frame["other"] != REFERENCE)
        & (frame["candidate"] != REFERENCE)
        & (frame["order"] == "first")
        & (frame["shown_first"] > 0)
    ).to_numpy()
    if not seen.any():
        return frame
    pairs = oriented(frame[seen])
    keys = pairs[[*_QUESTION, "shown_first"]].astype({"metric": object, "candidate": object, "other": object})
    sorted_keys = keys.sort_values([*_QUESTION, "shown_first"], kind="stable")
    group = sorted_keys.groupby(_QUESTION, observed=True, sort=False)["shown_first"]
    both = (group.transform("nunique") == 2) & (group.transform("size") == 2)
    places = sorted_keys.index[both.to_numpy()].to_numpy()
    if not places.size:
        return frame
    firsts, seconds = pairs.loc[places[::2]], pairs.loc[places[1::2]]
    states, labels = _combined(firsts, seconds)
    scored = states == SCORED
    combined = firsts.assign(
        state=pd.Categorical(states, categories=frame["state"].cat.categories),
        kind=firsts["kind"].where(scored),
        label=pd.Categorical(labels),
        order=pd.Categorical(["both"] * len(firsts), categories=frame["order"].cat.categories),
        candidate=pd.Categorical(
            firsts["candidate"].astype(object), categories=frame["candidate"].cat.categories
        ),
        shown_first=0,
    )
    single = frame.index.isin(places)
    order = frame["order"].astype(object).where(~(single & (frame["shown_first"] == 2).to_numpy()), "swapped")
    rest = frame.assign(
        main=frame["main"].to_numpy() & ~single,
        order=pd.Categorical(order, categories=frame["order"].cat.categories),
    )
    return joined([rest, combined])


def _combined(firsts: DataFrame, seconds: DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """The states and labels of both orders together."""
    states, labels = [], []
    columns = [
        side[name].astype(object).tolist() for side in (firsts, seconds) for name in ("state", "label")
    ]
    for state, label, other_state, other_label in zip(*columns, strict=True):
        unread = next((each for each in (state, other_state) if each != SCORED), None)
        settled = None if unread else settled_verdict(label, other_label)
        states.append(unread or (SCORED if settled else UNSETTLED))
        labels.append(settled)
    return np.array(states, dtype=object), np.array(labels, dtype=object)
