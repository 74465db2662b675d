"""Judges' mean scores corrected with people's labels, from whatever draws these come."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .checklists import cut
from .correction import Correction, Labelled, correct, terms_of, why_refused
from .document import Corrected
from .frame import ScaledMetric
from .judges import extended
from .numeric import Floats, Ints, finite
from .several_draws import Draw, correct_by_draws, terms_by_draws, why_draws_refused
from .verdicts import Verdicts

if TYPE_CHECKING:
    from pandas import DataFrame

SENT = -1
"""The `draw` of a verdict on an answer that a rule sent to people, and no draw drew."""


def corrected_scores(verdicts: Verdicts) -> list[Corrected]:
    """Corrected scores for each candidate and judge of a scored metric, if people labelled some of its answers.

    Answers that a rule sent count with their labels only where a draw drew them. If there were several draws, or one
    by the judge's doubts, the estimator is that of `several_draws`.
    """
    scores = []
    for drawn in _all_drawn(verdicts):
        entry = _corrected(verdicts.metric, drawn.candidate, drawn.judge, drawn.answers, drawn.draws)
        scores.append(cut_checklist(verdicts.metric, entry))
    return scores


@dataclass(frozen=True, slots=True, eq=False)
class _Drawn:
    """A candidate's answers under one judge, some of them with people's labels. `draws`: None for one first draw."""

    judge: str
    candidate: str
    units: Ints
    answers: Labelled
    draws: Sequence[Draw] | None


def _all_drawn(verdicts: Verdicts) -> Iterator[_Drawn]:
    people = verdicts.value[verdicts.value["kind"].isin(["number", "bool"]).to_numpy()]
    if people.empty or verdicts.compares:
        return
    by_draw = _labels_by_draw(verdicts.people)
    labels = people.set_index("item")[["kind", "value", "drawn_with"]]
    if by_draw is not None:
        labels = labels[labels.index.isin(by_draw["item"])]
    for judge, rows in verdicts.authors.items():
        scored = rows[rows["kind"].isin(["number", "bool"]).to_numpy()]
        for candidate, cell in scored.groupby("candidate", observed=True, sort=False):
            answers = labelled_answers(cell, labels.reindex(cell["item"]))
            if answers.has_label.any():
                draws = None if by_draw is None else draws_of(cell["item"].to_numpy(), by_draw)
                yield _Drawn(judge, str(candidate), cell["unit"].to_numpy(), answers, draws)


def corrected_terms(verdicts: Verdicts, judge: str) -> dict[str, tuple[Ints, Floats]]:
    """{candidate: units (answers,) and `correction.terms_of` (answers, terms)} of what `corrected_scores` corrects by
    this judge and does not refuse: `correction.mean_of_terms` of their sum is the corrected score, not cut."""
    terms = {}
    for drawn in _all_drawn(verdicts):
        if drawn.judge == judge and not _refused(drawn.answers, drawn.draws):
            of_answers = (
                terms_of(drawn.answers) if drawn.draws is None else terms_by_draws(drawn.answers, drawn.draws)
            )
            terms[drawn.candidate] = drawn.units, of_answers
    return terms


def _refused(answers: Labelled, draws: Sequence[Draw] | None) -> str | None:
    return why_refused(answers) if draws is None else why_draws_refused(answers, draws)


def cut_checklist(metric: ScaledMetric, entry: Corrected) -> Corrected:
    """Cut a checklist's figures to 0…1, after they were computed of uncut values."""
    if metric.checklist:
        entry["people_mean"], entry["judge_mean"] = cut(entry["people_mean"]), cut(entry["judge_mean"])
        entry["value"] = cut(entry["value"])
        entry["ci_low"], entry["ci_high"] = cut(entry["ci_low"]), cut(entry["ci_high"])
    return entry


def _labels_by_draw(people: DataFrame) -> DataFrame | None:
    """People's verdicts that count, a row for each answer and draw; None where all are of a first draw. Answers of
    which no probability is known count like those that a rule sent, once there are later draws."""
    draws = people["draw"].to_numpy()
    if not draws.any():
        return None
    counts = draws != SENT
    if (draws > 0).any():
        counts &= people["drawn_with"].notna().to_numpy()
    labels: DataFrame = people[counts].drop_duplicates(["item", "draw"])
    return labels[["item", "draw", "drawn_with", "known_to"]]


def draws_of(items: Ints, by_draw: DataFrame) -> list[Draw] | None:
    """The draws among a candidate's answers `items` (answers,), oldest first; None for one first draw alone."""
    mine = by_draw[by_draw["item"].isin(items)]
    numbers = sorted(int(number) for number in mine["draw"].unique())
    if numbers in ([], [0]):
        return None
    draws = []
    for number in numbers:
        here = mine[(mine["draw"] == number).to_numpy()].set_index("item")["drawn_with"].reindex(items)
        before = mine["item"][((mine["known_to"] > 0) & (mine["known_to"] <= number)).to_numpy()]
        drawn_with, known = here.to_numpy(dtype=np.float64), np.isin(items, before.to_numpy())
        draws.append(Draw(drawn_with if number else as_far_as_rated(drawn_with), known))
    return draws


def as_far_as_rated(drawn_with: Floats) -> Floats:
    """The first draw's probabilities times the share that was rated: their inverses sum to the number of answers."""
    total = np.nansum(1 / drawn_with)
    return np.minimum(1.0, drawn_with * total / drawn_with.size) if total > 0 else drawn_with


def labelled_answers(cell: DataFrame, people: DataFrame) -> Labelled:
    """A candidate's answers scored by a judge, with people's values of the same answers in the same order."""
    strata = cell["stratum"].astype("category").cat.codes.to_numpy().astype(np.int64)
    kinds = {*cell["kind"].unique(), *people["kind"].dropna().unique()}
    return Labelled(
        judge=cell["value"].to_numpy(dtype=np.float64),
        people=people["value"].to_numpy(dtype=np.float64),
        drawn_with=people["drawn_with"].to_numpy(dtype=np.float64),
        units=cell["unit"].to_numpy(),
        rows=cell["row"].to_numpy(),
        strata=strata if (strata >= 0).all() else None,
        passes=kinds == {"bool"},
    )


def _corrected(
    metric: ScaledMetric, candidate: str, judge: str, answers: Labelled, draws: Sequence[Draw] | None
) -> Corrected:
    labels = answers.people[answers.has_label]
    ends = (0.0, 1.0) if answers.passes else extended(metric, answers.judge, labels)
    refused = _refused(answers, draws)
    if draws is None:
        correction = None if refused else correct(answers, ends)
        draw: str = answers.draw
    else:
        correction = None if refused else correct_by_draws(answers, draws, ends)
        draw = "own" if len(draws) == 1 else "several"
    return _entry(metric, candidate, judge, answers, refused, correction, draw)


def _entry(
    metric: ScaledMetric,
    candidate: str,
    judge: str,
    answers: Labelled,
    refused: str | None,
    correction: Correction | None,
    draw: str,
) -> Corrected:
    labels = answers.people[answers.has_label]
    return Corrected(
        {
            "metric": metric.name,
            "candidate": candidate,
            "judge": judge,
            "labelled": labels.size,
            "judged": answers.judge.size - labels.size,
            "people_mean": finite(labels.mean()),
            "judge_mean": finite(answers.judge.mean()),
            "value": finite(correction.value) if correction else None,
            "se": finite(correction.se) if correction else None,
            "ci_low": correction.low if correction else None,
            "ci_high": correction.high if correction else None,
            "lambda": finite(correction.weight) if correction else None,
            "halve": correction.halve if correction else None,
            "draw": None if refused else draw,
            "source": "own",
            "refused": refused,
        }
    )
