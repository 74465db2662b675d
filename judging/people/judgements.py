"""A rating as judgements of its run, the run's counters with them, and what people said for the reports of runs.

Call what writes with the evaluation locked.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from django.db.models import F, Q, QuerySet

from datasets.core.variables import response_data
from judging.core.candidates import flags_of
from judging.core.people.criteria import Criterion, outcome_of
from judging.core.values import NO_SCORE, SCORED, Outcome, Value
from judging.people.labels import values_of
from judging.people.models import (
    Adjudication,
    Assignment,
    AssignmentState,
    Evaluation,
    EvaluationRater,
    Item,
    Rating,
)
from judging.people.selectors import criteria_of
from judging.runs.models import Judgement, Run, RunMetric
from judging.runs.overrides import carry_over, metrics_lock
from judging.runs.plain import storable

BATCH = 20_000  # judgements fetched at a time


def judgements_add(
    evaluation: Evaluation, assignment: Assignment, rating: Rating, values: Mapping[int, Value]
) -> None:
    """One judgement a criterion. Gold and silent repeats have none: they tell of the rater, not of the answer."""
    if not assignment.item.counts:
        return
    metrics = dict(evaluation.run.metrics.values_list("number", "pk"))
    made = judgements_made(evaluation, criteria_of(evaluation), metrics, assignment, rating, values)
    if rating.attempt > 1:
        metrics_lock(evaluation.run_id)
    Judgement.objects.bulk_create(made)
    if rating.attempt > 1:
        carry_over(evaluation.run_id, Judgement.objects.filter(pk__in=[one.pk for one in made]))
    evaluation.next_position += len(made)
    evaluation.save(update_fields=["next_position"])
    count(evaluation, Counter(one.state for one in made), 1, extra=rating.extra)


def judgements_made(
    evaluation: Evaluation,
    criteria: Mapping[int, Criterion],
    metrics: Mapping[int, int],
    assignment: Assignment,
    rating: Rating,
    values: Mapping[int, Value],
) -> list[Judgement]:
    """The judgements of a rating, from `evaluation.next_position` on; `metrics` {criterion number: its RunMetric}."""
    item = assignment.item
    answers = [one for one in (item.response, item.other_response) if one is not None]
    flags = dict.fromkeys(flag for one in answers for flag in flags_of(response_data(one.raw)))
    made = []
    for place, number in enumerate(sorted(criteria)):
        outcome = outcome_of(criteria[number], values.get(number))
        made.append(
            Judgement(
                run_id=evaluation.run_id,
                position=evaluation.next_position + place,
                run_metric_id=metrics[number],
                row_id=item.row_id,
                candidate_id=item.response.candidate_id,
                response_id=item.response_id,
                other_response_id=item.other_response_id,
                rater_id=assignment.rater.user_id,
                rating=rating,
                shown_first=assignment.shown_first,
                drawn_with=item.drawn_with,
                attempt=rating.attempt,
                state=outcome.state,
                value=storable(outcome.value_json),
                score=outcome.score,
                reason=outcome.reason,
                detail=storable(outcome.detail) or "",
                flags=",".join(flags),
                seconds=rating.seconds,
                finished_at=time.time(),
            )
        )
    return made


def judgements_withdraw(evaluation: Evaluation, rating: Rating) -> None:
    """A verdict counts no more; its judgements stay as history."""
    _mark(evaluation, rating, current=False)


def judgements_restore(evaluation: Evaluation, rating: Rating) -> None:
    """An earlier verdict counts again."""
    _mark(evaluation, rating, current=True)


def _mark(evaluation: Evaluation, rating: Rating, *, current: bool) -> None:
    found = rating.judgements.all()
    if not found.exists():
        return
    metrics_lock(evaluation.run_id)
    states = Counter(found.values_list("state", flat=True))
    found.update(current=current)
    carry_over(evaluation.run_id, found)
    count(evaluation, states, 1 if current else -1, extra=rating.extra)


def count(evaluation: Evaluation, states: Counter[str], sign: int, *, extra: bool) -> None:
    """The run's counters. What nobody had asked for adds to what was asked for, or the run would be overfull."""
    Run.objects.filter(pk=evaluation.run_id).update(
        scored=F("scored") + sign * states[SCORED],
        no_score=F("no_score") + sign * states[NO_SCORE],
        total=F("total") + (sign * states.total() if extra else 0),
    )
    figures_change(evaluation)


def figures_change(evaluation: Evaluation) -> None:
    """The reports with what people said are to be worked out anew: this one, and that of the run it is about."""
    concerned = [pk for pk in (evaluation.run_id, evaluation.about_run_id) if pk is not None]
    Run.objects.filter(pk__in=concerned).update(revision=F("revision") + 1)


def rating_forget(evaluation: Evaluation, rating: Rating) -> None:
    """A verdict of a file that is not taken in after all: it goes, with its judgements and with what it counted for."""
    assignment, item = rating.assignment, rating.assignment.item
    judgements_withdraw(evaluation, rating)
    rating.judgements.all().delete()
    freed = 0 if assignment.extra or not item.needed else 1
    changes = {"given": F("given") - 1, "free": F("free") + freed}
    if assignment.ratings.count() == 1 and not assignment.draft:
        changes["dealt"] = F("dealt") - 1
        assignment.delete()
    else:
        rating.delete()
        assignment.state, assignment.rating, assignment.extra = AssignmentState.RELEASED, None, False
        assignment.given_at = None
        assignment.save()
    Item.objects.filter(pk=item.pk).update(**changes)


class PersonVerdict(NamedTuple):
    """What a rater, or an adjudicator, said of an answer or of two under a metric of a run.

    `metric` and `candidate` are ids; `row` is the line, `value` JSON with `A` for `response`; `other` names the
    candidate of the other answer. Nobody reads user names here: `by` is a pseudonym.
    """

    metric: int
    candidate: int
    row: int
    response: int
    state: str
    value: str | None
    by: str
    source: Literal["rater", "adjudicator"]
    other: str | None = None
    other_response: int = 0
    shown_first: int = 0
    drawn_with: float = math.nan
    seconds: float = math.nan


ADJUDICATED = "adjudicated"


def person_verdicts(run: Run) -> Iterator[PersonVerdict]:
    """All that counts of what people said of a run's answers: in a human evaluation its own verdicts, for any other run
    those of the evaluations that were organised from it, under metrics of the same name. Decisions come last."""
    evaluations = list(evaluations_of(run))
    metrics = _metrics_by_place(run, evaluations)
    yield from _raters_verdicts(evaluations, metrics)
    yield from _decisions(evaluations, metrics)


def evaluations_of(run: Run) -> QuerySet[Evaluation]:
    """The human evaluations that a run's report counts, oldest first."""
    mine = Q(run=run) if run.by_people else Q(about_run=run)
    return Evaluation.objects.filter(mine).order_by("pk")


def _metrics_by_place(run: Run, evaluations: Sequence[Evaluation]) -> dict[tuple[int, int], int]:
    """{(run of the evaluation, criterion's number): the run's metric of that name}."""
    named = dict(run.metrics.values_list("name", "pk"))
    criteria = RunMetric.objects.filter(run__in=[one.run_id for one in evaluations], name__in=named)
    found = criteria.values_list("run", "number", "name")
    return {(of, number): named[name] for of, number, name in found}


_SAID = (
    *("run", "run_metric__number", "candidate", "row__line", "response__number"),
    *("state_in_force", "value_in_force", "rater", "other_response__candidate__name"),
    *("other_response__number", "shown_first", "drawn_with", "seconds"),
)


def _raters_verdicts(
    evaluations: Sequence[Evaluation], metrics: Mapping[tuple[int, int], int]
) -> Iterator[PersonVerdict]:
    """One of each rater on an answer: of somebody who rated it in two evaluations the newer one."""
    pseudonyms = _pseudonyms(evaluations)
    newer: set[tuple[Any, ...]] = set()
    for evaluation in reversed(evaluations):
        said = Judgement.objects.filter(run=evaluation.run_id, current=True, rater__isnull=False)
        for run, number, *rest in said.order_by("position").values_list(*_SAID).iterator(BATCH):
            candidate, row, response, state, value, rater, other, other_response, side, drawn, seconds = rest
            metric = metrics.get((run, number))
            key = (metric, candidate, row, response, other, other_response, rater)
            if metric is None or key in newer:
                continue
            if len(evaluations) > 1:
                newer.add(key)
            yield PersonVerdict(
                *(metric, candidate, row, response, state, value, pseudonyms[rater], "rater"),
                *(other, other_response or 0, side or 0),
                math.nan if drawn is None else drawn,
                math.nan if seconds is None else seconds,
            )


def _pseudonyms(evaluations: Sequence[Evaluation]) -> dict[int, str]:
    """{user: what a report calls the rater}; no two alike, though every evaluation counts its raters from R1."""
    names: dict[int, str] = {}
    found = EvaluationRater.objects.filter(evaluation__in=evaluations).order_by("pk")
    for user, pseudonym in found.values_list("user", "pseudonym"):
        taken = set(names.values())
        free = (f"R{number}" for number in range(1, len(taken) + 2) if f"R{number}" not in taken)
        names.setdefault(user, pseudonym if pseudonym not in taken else next(free))
    return names


def _decisions(
    evaluations: Sequence[Evaluation], metrics: Mapping[tuple[int, int], int]
) -> Iterator[PersonVerdict]:
    """What was decided where raters differ; the newest decision on an answer counts."""
    criteria = {one.pk: criteria_of(one) for one in evaluations}
    about = Adjudication.objects.filter(item__evaluation__in=evaluations, item__gold="", item__repeat_of=None)
    parts = ("item__evaluation", "item__row", "item__response", "item__other_response__candidate")
    newest: dict[tuple[Any, ...], PersonVerdict] = {}
    for one in about.select_related(*parts).order_by("pk"):
        item, evaluation = one.item, one.item.evaluation
        for number, value in values_of(one.values).items():
            metric = metrics.get((evaluation.run_id, number))
            outcome = outcome_of(criteria[evaluation.pk][number], value)
            if metric is not None and outcome.state == SCORED:
                decided = _decided(item, metric, outcome)
                newest[decided[:4] + decided[8:10]] = decided
    yield from newest.values()


def _decided(item: Item, metric: int, outcome: Outcome) -> PersonVerdict:
    other = item.other_response
    return PersonVerdict(
        *(metric, item.response.candidate_id, item.row.line, item.response.number),
        *(SCORED, outcome.value_json, ADJUDICATED, "adjudicator"),
        *(other.candidate.name if other else None, other.number if other else 0),
        drawn_with=math.nan if item.drawn_with is None else item.drawn_with,
    )
