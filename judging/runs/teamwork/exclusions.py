"""Answers that a reviewer has taken out of a run's figures, with a reason."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db.models import Count, Exists, OuterRef

from judging.runs.models import Judgement, JudgementQuerySet, Run
from judging.runs.teamwork.models import Mark, MarkKind, MarkQuerySet


def exclusions_of(run: Run) -> MarkQuerySet:
    """The marks that exclude something from the run's figures now."""
    return Mark.objects.current().filter(run=run, kind=MarkKind.EXCLUDED)


def without_excluded(run: Run, judgements: JudgementQuerySet) -> JudgementQuerySet:
    """Those that figures count. Where nothing is excluded the query stays as it is."""
    if not exclusions_of(run).exists():
        return judgements
    same = {"run_metric": OuterRef("run_metric"), "kind": MarkKind.EXCLUDED, "name": ""}
    excluded = Mark.objects.current().filter(**same)
    found = judgements.filter(~Exists(excluded.filter(response=OuterRef("response"))))
    if run.by_workers:
        return found
    return found.filter(~Exists(excluded.filter(response=OuterRef("other_response"))))


def excluded_by(run: Run) -> list[dict[str, Any]]:
    """Who excluded how many answers under a metric, and why: `by`, `reason`, `judgements`."""
    found = exclusions_of(run).values_list("action__by__username", "action__reason")
    counted = found.annotate(count=Count("*")).order_by("-count", "action__reason", "action__by__username")
    return [{"by": by, "reason": reason, "judgements": count} for by, reason, count in counted]


def exclusions_among(judgements: Iterable[Judgement]) -> dict[tuple[int, int], Mark]:
    """{(metric, response): the exclusion} of those that are excluded."""
    given = list(judgements)
    found = Mark.objects.current().filter(
        kind=MarkKind.EXCLUDED,
        run_metric__in={one.run_metric_id for one in given},
        response__in={one.response_id for one in given},
    )
    return {(one.run_metric_id, one.response_id): one for one in found.select_related("action__by")}
