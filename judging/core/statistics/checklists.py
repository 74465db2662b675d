"""Figures of checklists: their cells cut to 0…1, by criterion and by tag, and which criteria say little.

Criteria of several rows are one where they share a key: their own id, or else their text.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .agreement import gwet_ac1, krippendorff_alpha, percent_agreement
from .document import Cell, CriterionAgreement, CriterionCell, CriterionHealth, TagCell
from .means import estimate_mean, rate_of

FEW = 2  # answers from which on a criterion can be said to be always or never met


@dataclass(frozen=True, slots=True)
class CriterionVerdict:
    """What became of a criterion; `met` None: open. `points`: as in the rubric."""

    key: str
    id: str
    text: str
    points: float
    tags: tuple[str, ...]
    met: bool | None


@dataclass(frozen=True, slots=True)
class AnswerChecklist:
    """One checklist about an answer: whose, the share of points that it allows at least and at most, the least value
    of its rubric, and its criteria. `by_people`: a rater gave it; `answer`: the answer's id."""

    candidate: str
    row: int
    response: int
    by_people: bool
    low: float
    high: float
    least: float
    criteria: tuple[CriterionVerdict, ...]
    answer: int = 0
    adjudicated: bool = False


def cut(value: float | None) -> float | None:
    """Within 0…1, as a checklist's figures are shown."""
    return None if value is None else min(1.0, max(0.0, value))


def least_value(checklists: Iterable[AnswerChecklist]) -> float:
    """The least value that a judged row allows: 0 unless points are negative."""
    return min((checklist.least for checklist in checklists), default=0.0)


def add_checklist_figures(cell: Cell, checklists: Sequence[AnswerChecklist]) -> None:
    """Add the criteria and tags of one candidate's checklists to its cell."""
    cell["criteria"] = criterion_cells(checklists)
    cell["tags"] = tag_cells(checklists)


def criterion_cells(checklists: Sequence[AnswerChecklist]) -> list[CriterionCell]:
    """How often each criterion is met, in the order of first appearance; the interval is that of a rate, by rows."""
    by_key: dict[str, list[tuple[int, CriterionVerdict]]] = defaultdict(list)
    for checklist in checklists:
        for verdict in checklist.criteria:
            by_key[verdict.key].append((checklist.row, verdict))
    return [_criterion_cell(verdicts) for verdicts in by_key.values()]


def _criterion_cell(verdicts: Sequence[tuple[int, CriterionVerdict]]) -> CriterionCell:
    first = verdicts[0][1]
    read = [(row, verdict.met) for row, verdict in verdicts if verdict.met is not None]
    rate = rate_of(
        np.array([met for _row, met in read], dtype=np.float64),
        np.array([row for row, _met in read], dtype=np.int64),
    )
    return CriterionCell(
        key=first.key,
        id=first.id,
        criterion=first.text,
        tags=list(first.tags),
        items=len({row for row, _verdict in verdicts}),
        met=sum(met for _row, met in read),
        rate=rate.rate,
        ci_low=rate.low,
        ci_high=rate.high,
        unparsed=len(verdicts) - len(read),
    )


def tag_cells(checklists: Sequence[AnswerChecklist]) -> dict[str, TagCell]:
    """For each tag the mean share of the points of its criteria, over rows where none of them is open and some are
    positive; not cut before the end."""
    shares: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    least: dict[str, float] = defaultdict(float)
    for checklist in checklists:
        of_tag: dict[str, list[CriterionVerdict]] = defaultdict(list)
        for verdict in checklist.criteria:
            for tag in verdict.tags:
                of_tag[tag].append(verdict)
        for tag, verdicts in of_tag.items():
            positive = sum(max(0.0, verdict.points) for verdict in verdicts)
            if positive and all(verdict.met is not None for verdict in verdicts):
                met = sum(verdict.points for verdict in verdicts if verdict.met)
                shares[tag][checklist.row].append(met / positive)
                worst = sum(min(0.0, verdict.points) for verdict in verdicts) / positive
                least[tag] = min(least[tag], worst)
    return {tag: _tag_cell(rows, least[tag]) for tag, rows in sorted(shares.items())}


def _tag_cell(rows: Mapping[int, Sequence[float]], least: float) -> TagCell:
    means = np.array([sum(values) / len(values) for values in rows.values()], dtype=np.float64)
    estimate = estimate_mean(means, ends=(least, 1.0))
    return TagCell(
        mean=cut(estimate.mean), ci_low=cut(estimate.low), ci_high=cut(estimate.high), items=len(rows)
    )


def criterion_health(checklists: Sequence[AnswerChecklist]) -> list[CriterionHealth]:
    """Criteria that every answer meets or none does, or that people, or people and the judge, see differently.

    `people_disagree`: answers on which raters differ; `judge_disagrees`: answers on which the judge differs from the
    majority of the raters.
    """
    by_key: dict[str, list[tuple[AnswerChecklist, CriterionVerdict]]] = defaultdict(list)
    for checklist in checklists:
        for verdict in checklist.criteria:
            if verdict.met is not None:
                by_key[verdict.key].append((checklist, verdict))
    health = [_health(verdicts) for verdicts in by_key.values()]
    return [entry for entry in health if entry["always_met"] or entry["never_met"] or _is_disputed(entry)]


def criterion_agreement(checklists: Iterable[AnswerChecklist]) -> list[CriterionAgreement]:
    """The agreement of raters on each criterion on which two of them decided for the same answer."""
    first: dict[str, CriterionVerdict] = {}
    ratings: dict[str, dict[tuple[Any, ...], list[float]]] = defaultdict(lambda: defaultdict(list))
    for checklist in checklists:
        if not checklist.by_people or checklist.adjudicated:
            continue
        for verdict in checklist.criteria:
            if verdict.met is not None:
                first.setdefault(verdict.key, verdict)
                ratings[verdict.key][_place(checklist)].append(float(verdict.met))
    entries = [_agreement(first[key], list(by_answer.values())) for key, by_answer in ratings.items()]
    return [entry for entry in entries if entry["answers"]]


def _agreement(first: CriterionVerdict, ratings: Sequence[Sequence[float]]) -> CriterionAgreement:
    several = [each for each in ratings if len(each) > 1]
    matrix = np.full((len(several), max(map(len, several), default=0)), np.nan)
    for row, each in enumerate(several):
        matrix[row, : len(each)] = each
    return CriterionAgreement(
        key=first.key,
        id=first.id,
        criterion=first.text,
        answers=len(several),
        percent=percent_agreement(matrix) if several else None,
        alpha=krippendorff_alpha(matrix, "nominal") if several else None,
        ac1=gwet_ac1(matrix, labels=2) if several else None,
    )


def disputed_answers(checklists: Iterable[AnswerChecklist], key: str) -> tuple[set[int], set[int]]:
    """Ids of the answers that `criterion_health` counts for the criterion with this key: those on which people
    disagree, and those on which the judge disagrees with them."""
    mine = [
        (checklist, verdict)
        for checklist in checklists
        for verdict in checklist.criteria
        if verdict.key == key and verdict.met is not None
    ]
    ids = {_place(checklist): checklist.answer for checklist, _verdict in mine}
    by_answer = _by_answer(mine)
    return (
        {ids[place] for place, (_judge, people) in by_answer.items() if len(set(people)) > 1},
        {ids[place] for place, (judge, people) in by_answer.items() if _contradicts(judge, people)},
    )


def _place(checklist: AnswerChecklist) -> tuple[Any, ...]:
    return checklist.candidate, checklist.row, checklist.response


def _by_answer(
    verdicts: Iterable[tuple[AnswerChecklist, CriterionVerdict]],
) -> dict[tuple[Any, ...], tuple[list[bool], list[bool]]]:
    """{answer: (what judges, what people say)}."""
    by_answer: dict[tuple[Any, ...], tuple[list[bool], list[bool]]] = defaultdict(lambda: ([], []))
    for checklist, verdict in verdicts:
        by_answer[_place(checklist)][checklist.by_people].append(bool(verdict.met))
    return by_answer


def _is_disputed(entry: CriterionHealth) -> bool:
    return entry["people_disagree"] > 0 or entry["judge_disagrees"] > 0


def _health(verdicts: Sequence[tuple[AnswerChecklist, CriterionVerdict]]) -> CriterionHealth:
    by_answer = _by_answer(verdicts)
    said = [met for sides in by_answer.values() for side in sides for met in side]
    first = verdicts[0][1]
    return CriterionHealth(
        key=first.key,
        id=first.id,
        criterion=first.text,
        answers=len(by_answer),
        always_met=len(by_answer) >= FEW and all(said),
        never_met=len(by_answer) >= FEW and not any(said),
        people_disagree=sum(len(set(people)) > 1 for _judge, people in by_answer.values()),
        judge_disagrees=sum(_contradicts(judge, people) for judge, people in by_answer.values()),
    )


def _contradicts(judge: Sequence[bool], people: Sequence[bool]) -> bool:
    """Whether the judge says otherwise than most raters; never where they are split."""
    share = sum(people) / len(people) if people else 0.5
    return bool(judge) and share != 0.5 and any(met != (share > 0.5) for met in judge)


def bounds_of_mean(
    scored: Mapping[tuple[int, int], float], checklists: Iterable[AnswerChecklist], asked: int, least: float
) -> tuple[float | None, float | None]:
    """The mean over rows if every open checklist had got its lowest, or its highest, possible value.

    `scored`: {(row, response): value}; answers without any checklist count as `least` or 1.
    """
    lows, highs = dict(scored), dict(scored)
    for checklist in checklists:
        place = checklist.row, checklist.response
        lows.setdefault(place, checklist.low)
        highs.setdefault(place, checklist.high)
    missing = max(0, asked - len(lows))
    if not lows and not missing:
        return None, None
    return _mean_by_row(lows, missing, least), _mean_by_row(highs, missing, 1.0)


def _mean_by_row(values: Mapping[tuple[int, int], float], missing: int, otherwise: float) -> float:
    rows: dict[int, list[float]] = defaultdict(list)
    for (row, _response), value in values.items():
        rows[row].append(value)
    total = sum(sum(each) / len(each) for each in rows.values()) + missing * otherwise
    return min(1.0, max(0.0, total / (len(rows) + missing)))
