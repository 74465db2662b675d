"""Judgements made from ratings, and the run's counters. Call with the evaluation locked."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence

from django.db.models import F

from datasets.core.variables import response_data
from datasets.models import Response
from evalsite.hooks import Hook
from judging.core.candidates import flags_of
from judging.core.values import NO_SCORE, SCORED, UNPARSED, Value
from judging.filters.row_filters import id_subquery
from judging.people.item_criteria import Judged, judged_by
from judging.people.models import AssignmentState, Evaluation, Item, Rating
from judging.records.json_text import storable
from judging.records.models import Judgement, Run, RunMetric
from judging.records.overrides import carry_over, metrics_lock

labels_stored: Hook[Callable[[Evaluation], None]] = Hook("judging.people.judgements.labels_stored")
"""What is done once a rating or a decision was stored, in the same transaction."""


def tell_of_labels(evaluation: Evaluation) -> None:
    """Tell other parts that a rating or a decision was stored."""
    for tell in labels_stored:
        tell(evaluation)


def judgements_add(rating: Rating, values: Mapping[int, Value]) -> None:
    """Add a judgement for each criterion. Gold and hidden repeats get none: they measure the rater, not the answer."""
    if not rating.assignment.item.counts:
        return
    evaluation = rating.assignment.evaluation
    judgements = unsaved_judgements(rating, values)
    if rating.attempt > 1:
        metrics_lock(evaluation.run_id)
    Judgement.objects.bulk_create(judgements)
    if rating.attempt > 1:
        carry_over(
            evaluation.run_id, Judgement.objects.filter(pk__in=[judgement.pk for judgement in judgements])
        )
    evaluation.next_position += len(judgements)
    evaluation.save(update_fields=["next_position"])
    count(evaluation, Counter(judgement.state for judgement in judgements), 1, extra=rating.extra)


def unsaved_judgements(rating: Rating, values: Mapping[int, Value]) -> list[Judgement]:
    """Unsaved judgements of a rating, numbered from its evaluation's `next_position`: one for each criterion, and of a
    ranking one for each pair of answers."""
    item, evaluation = rating.assignment.item, rating.assignment.evaluation
    all_judged = (
        (metric, judged)
        for metric in evaluation.metrics
        for judged in judged_by(evaluation, item, metric.number, values.get(metric.number))
    )
    return [
        _judgement(rating, item.answers, evaluation.next_position + place, metric, judged)
        for place, (metric, judged) in enumerate(all_judged)
    ]


def _judgement(
    rating: Rating, answers: Sequence[Response], position: int, metric: RunMetric, judged: Judged
) -> Judgement:
    assignment, item, outcome = rating.assignment, rating.assignment.item, judged.outcome
    response = answers[judged.answer]
    other = None if judged.other is None else answers[judged.other]
    about = [response, other] if other else [response]
    flags = dict.fromkeys(flag for answer in about for flag in flags_of(response_data(answer.raw)))
    return Judgement(
        run_id=assignment.evaluation.run_id,
        position=position,
        run_metric=metric,
        row_id=item.row_id,
        candidate_id=response.candidate_id,
        response=response,
        other_response=other,
        rater_id=assignment.rater.user_id,
        rating=rating,
        shown_first=_shown_first(assignment.order, judged),
        drawn_with=item.drawn_with,
        attempt=rating.attempt,
        state=outcome.state,
        value=storable(outcome.value_json),
        score=outcome.score,
        reason=outcome.reason,
        detail=storable(outcome.detail) or "",
        checklist=storable(judged.checklist.to_json()) or "" if judged.checklist else "",
        flags=",".join(flags),
        seconds=rating.seconds,
        finished_at=time.time(),
    )


def _shown_first(order: Sequence[int], judged: Judged) -> int | None:
    """Which answer of a pair stood before the other: 1 or 2; None for a single one, or if the order is unknown."""
    if judged.other is None or not order:
        return None
    return 1 if order.index(judged.answer) < order.index(judged.other) else 2


def judgements_mark(evaluation: Evaluation, rating: Rating, *, current: bool) -> None:
    """Withdraw a verdict's judgements, which stay as history, or make them current again."""
    ratings_mark(evaluation, [rating.pk], current=current)


def ratings_mark(evaluation: Evaluation, ratings: Collection[int], *, current: bool) -> None:
    """The same for several ratings (ids). What is marked already is left as it is."""
    judgements = Judgement.objects.filter(rating__in=id_subquery(list(ratings)), current=not current)
    marked = list(judgements.values_list("pk", "state", "rating__extra"))
    if not marked:
        return
    metrics_lock(evaluation.run_id)
    changed = Judgement.objects.filter(pk__in=id_subquery([pk for pk, _state, _extra in marked]))
    changed.update(current=current)
    carry_over(evaluation.run_id, changed)
    for extra in (False, True):
        states = Counter(state for _pk, state, is_extra in marked if is_extra == extra)
        if states:
            count(evaluation, states, 1 if current else -1, extra=extra)


def count(evaluation: Evaluation, states: Counter[str], sign: int, *, extra: bool) -> None:
    """Update the run's counters. Extra ratings also increase the total, so that it is not exceeded."""
    changes = {
        "scored": sign * states[SCORED],
        "no_score": sign * states[NO_SCORE],
        "unparsed": sign * states[UNPARSED],
        "total": sign * states.total() if extra else 0,
        "revision": 1,
    }
    counters = {name: F(name) + change for name, change in changes.items() if change}
    Run.objects.filter(pk=evaluation.run_id).update(**counters)
    if evaluation.about_run_id is not None:
        Run.objects.filter(pk=evaluation.about_run_id).update(revision=F("revision") + 1)


def figures_change(evaluation: Evaluation) -> None:
    """Mark the reports that include these ratings as outdated: of this run, and of the run it is about."""
    concerned = [pk for pk in (evaluation.run_id, evaluation.about_run_id) if pk is not None]
    Run.objects.filter(pk__in=concerned).update(revision=F("revision") + 1)


def rating_forget(evaluation: Evaluation, rating: Rating) -> None:
    """Delete an imported rating with its judgements, and subtract it from the counters."""
    assignment, item = rating.assignment, rating.assignment.item
    judgements_mark(evaluation, rating, current=False)
    rating.judgements.all().delete()
    taken = int(not assignment.extra)
    changes = {"rated": F("rated") - taken, "free": F("free") + (taken if item.needed else 0)}
    if assignment.ratings.count() == 1 and not assignment.draft:
        changes["assigned"] = F("assigned") - 1
        assignment.delete()
    else:
        rating.delete()
        assignment.state, assignment.rating, assignment.extra = AssignmentState.RELEASED, None, False
        assignment.rated_at = None
        assignment.save()
    Item.objects.filter(pk=item.pk).update(**changes)
