"""What in human evaluations needs their organiser's attention, and when they will be done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime

from django.db.models import Count, Min, Q

from evalsite import clock
from judging.core.people.forecast import WINDOW, Pace, behind, forecast_end, pace_begun
from judging.people.models import Assignment, Evaluation, EvaluationRater
from judging.people.qualification.selectors import failed_tries
from judging.people.questions.selectors import open_questions
from judging.people.quota import rooms_of
from judging.people.rater_figures import flags_of

FILLS_PLACE = Q(item__needed__gt=0, extra=False)
"""Assignments whose ratings fill a place: the pace is measured by them."""


@dataclass(frozen=True, slots=True)
class Attention:
    """`flagged`: raters whose figures stand out, as last computed; `missed`: raters under the pass mark of gold;
    `failed`: raters who failed the qualification and wait for a decision; `questions`: those without an answer;
    `uncovered`: ratings that no rater will give within what each was told; `late`: the forecast end, if that is after
    the evaluation closes by itself."""

    flagged: int = 0
    missed: int = 0
    failed: int = 0
    questions: int = 0
    uncovered: int = 0
    late: datetime | None = None

    @property
    def needed(self) -> bool:
        return any(getattr(self, part.name) for part in fields(self))


def attention_of(evaluations: Sequence[Evaluation]) -> dict[int, Attention]:
    """{evaluation: attention} of those that are not closed; `evaluations` as selectors.evaluations_page returns them.
    A constant number of queries, and some for each whose flags are computed anew by a worker."""
    running = [evaluation for evaluation in evaluations if evaluation.state in ("open", "paused")]
    pks = [evaluation.pk for evaluation in running]
    flags, ends = flags_of([evaluation.run for evaluation in running]), ends_of(running)
    missed, questions = _missed(pks), open_questions(pks)
    failed = Counter(row.rater.evaluation_id for row in failed_tries(pks))
    rooms = rooms_of(running)
    return {
        evaluation.pk: Attention(
            flagged=flags.get(evaluation.run_id, 0),
            missed=missed[evaluation.pk],
            failed=failed[evaluation.pk],
            questions=questions[evaluation.pk],
            uncovered=_uncovered(evaluation, rooms),
            late=_late(ends.get(evaluation.pk), evaluation),
        )
        for evaluation in running
    }


def _uncovered(evaluation: Evaluation, rooms: Mapping[int, int]) -> int:
    return max(0, _left(evaluation) - rooms[evaluation.pk]) if evaluation.pk in rooms else 0


def _left(evaluation: Evaluation) -> int:
    """Ratings that are missing, by the sums of evaluations_page."""
    return (getattr(evaluation, "needed", 0) or 0) - (getattr(evaluation, "ratings", 0) or 0)


def _late(end: datetime | None, evaluation: Evaluation) -> datetime | None:
    return end if behind(end, evaluation.ends_at) else None


def with_attention(evaluations: Sequence[Evaluation]) -> list[Evaluation]:
    """The same, each with its `attention`; those that need some come first."""
    attention = attention_of(evaluations)
    for evaluation in evaluations:
        evaluation.attention = attention.get(evaluation.pk, Attention())  # type: ignore[attr-defined]
    return sorted(evaluations, key=lambda each: not attention.get(each.pk, Attention()).needed)


def _missed(evaluations: Collection[int]) -> Counter[int]:
    raters = EvaluationRater.objects.filter(evaluation__in=evaluations, left_at=None, set_aside_at=None)
    counts = raters.exclude(gold_failed_at=None).order_by().values_list("evaluation")
    return Counter(dict(counts.annotate(count=Count("pk"))))


def paces_of(evaluations: Collection[int]) -> dict[int, Pace]:
    """{evaluation: pace} of those with ratings that fill places."""
    now = clock.now()
    counted = Assignment.objects.counted().filter(FILLS_PLACE, evaluation__in=evaluations)
    recent = Count("pk", filter=Q(rated_at__gte=now - WINDOW))
    sums = counted.order_by().values_list("evaluation").annotate(recent=recent, first=Min("rated_at"))
    return {pk: Pace(count, pace_begun(first, now)) for pk, count, first in sums if first}


def ends_of(evaluations: Sequence[Evaluation]) -> dict[int, datetime]:
    """{evaluation: forecast end} of those that have ratings left and a pace; with the sums of evaluations_page."""
    paces, now = paces_of([evaluation.pk for evaluation in evaluations]), clock.now()
    ends = {}
    for evaluation in evaluations:
        left = _left(evaluation)
        end = forecast_end(left, paces.get(evaluation.pk), now) if left > 0 else None
        if end is not None:
            ends[evaluation.pk] = end
    return ends
