"""What in human evaluations needs their organiser's attention, and when they will be done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Min, Q

from evalsite import clock
from judging.core.people.forecast import WINDOW, Pace, behind, forecast_end, pace_begun
from judging.people.models import Assignment, Evaluation, EvaluationRater
from judging.people.rater_figures import stored_flags


@dataclass(frozen=True, slots=True)
class Attention:
    """`flagged`: raters whose figures stand out, as last computed; `missed`: raters under the pass mark of gold;
    `late`: the forecast end, if that is after the evaluation closes by itself."""

    flagged: int = 0
    missed: int = 0
    late: datetime | None = None

    @property
    def needed(self) -> bool:
        return bool(self.flagged or self.missed or self.late)


def attention_of(evaluations: Sequence[Evaluation]) -> dict[int, Attention]:
    """{evaluation: attention} of those that are not closed; `evaluations` as selectors.evaluations_page returns them.
    A constant number of queries."""
    running = [evaluation for evaluation in evaluations if evaluation.state in ("open", "paused")]
    pks = [evaluation.pk for evaluation in running]
    flags, missed, ends = stored_flags([each.run_id for each in running]), _missed(pks), ends_of(running)
    attention = {}
    for evaluation in running:
        end = ends.get(evaluation.pk)
        late = end if behind(end, evaluation.ends_at) else None
        attention[evaluation.pk] = Attention(flags.get(evaluation.run_id, 0), missed[evaluation.pk], late)
    return attention


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
    counted = Assignment.objects.counted().filter(evaluation__in=evaluations, item__needed__gt=0, extra=False)
    recent = Count("pk", filter=Q(rated_at__gte=now - WINDOW))
    sums = counted.order_by().values_list("evaluation").annotate(recent=recent, first=Min("rated_at"))
    return {pk: Pace(count, pace_begun(first, now)) for pk, count, first in sums if first}


def ends_of(evaluations: Sequence[Evaluation]) -> dict[int, datetime]:
    """{evaluation: forecast end} of those that have ratings left and a pace; with the sums of evaluations_page."""
    paces, now = paces_of([evaluation.pk for evaluation in evaluations]), clock.now()
    ends = {}
    for evaluation in evaluations:
        left = (getattr(evaluation, "needed", 0) or 0) - (getattr(evaluation, "ratings", 0) or 0)
        end = forecast_end(left, paces.get(evaluation.pk), now) if left > 0 else None
        if end is not None:
            ends[evaluation.pk] = end
    return ends
