"""Judgement filters by tag, flag, assignee, exclusion and comment."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from django import forms
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils.translation import gettext_lazy as _

from judging.filters.conditions import by_response
from judging.filters.judgement_filter import YES, FurtherFilter
from judging.records.models import Judgement, Run
from judging.teamwork.marks import exclusions_of, tag_names
from judging.teamwork.models import FLAG, Comment, Mark, MarkKind, ReviewAction

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

_ANY = [("", _("any"))]


def _of(run: Run, things: QuerySet[Any]) -> Q:
    """Judgements of the answers and metrics that `things` belong to, found through the index on responses."""
    same = things.filter(run_metric=OuterRef("run_metric"), response=OuterRef("response"))
    judgements = Judgement.objects.filter(Exists(same), by_response(run), run=run)
    return Q(pk__in=judgements.filter(response__in=things.values("response")).values("pk"))


def _marks(run: Run, kind: str, **more: str) -> QuerySet[Mark]:
    return Mark.objects.current().filter(run=run, kind=kind, **more)


def assignees_of(run: Run) -> list[str]:
    """Usernames of the run's assignees."""
    assignments = ReviewAction.objects.filter(run=run, kind=ReviewAction.Kind.ASSIGN)
    return list(assignments.order_by("user__username").values_list("user__username", flat=True).distinct())


def _yes_filter(name: str, label: StrPromise, things: Callable[[Run], QuerySet[Any]]) -> FurtherFilter:
    """Judgements with any of these marks or comments."""
    return FurtherFilter(
        name=name,
        label=label,
        field=lambda run: forms.ChoiceField(choices=[*_ANY, (YES, _("yes"))]),
        condition=lambda run, value: _of(run, things(run)),
        offered=lambda run: things(run).exists(),
    )


def _named(names: Callable[[], list[str]]) -> forms.Field:
    """A select field whose choices are queried on rendering; other values in the query string are valid too."""
    choices = cache(lambda: [*_ANY, *((name, name) for name in names())])
    return forms.CharField(max_length=150, widget=forms.Select(choices=choices))  # type: ignore[arg-type]


TAG = FurtherFilter(
    name="tag",
    label=_("Tag"),
    field=lambda run: _named(lambda: tag_names(run=run)),
    condition=lambda run, value: _of(run, _marks(run, MarkKind.TAG, name=value)),
    offered=lambda run: _marks(run, MarkKind.TAG).exclude(name=FLAG).exists(),
)
FLAGGED = _yes_filter("flagged", _("Flagged by reviewer"), lambda run: _marks(run, MarkKind.TAG, name=FLAG))
ASSIGNED = FurtherFilter(
    name="assigned",
    label=_("Assigned to"),
    field=lambda run: _named(lambda: assignees_of(run)),
    condition=lambda run, value: _of(run, _marks(run, MarkKind.ASSIGNED, user__username=value)),
    offered=lambda run: _marks(run, MarkKind.ASSIGNED).exists(),
)
EXCLUDED = _yes_filter("excluded", _("Excluded from figures"), exclusions_of)
COMMENTED = _yes_filter("commented", _("Commented"), lambda run: Comment.objects.filter(run=run))
