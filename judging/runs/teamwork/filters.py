"""Judgement filters by tag, flag, assignee, exclusion and comment."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from django import forms
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils.translation import gettext_lazy as _

from judging.runs.filters import YES, FurtherFilter, by_response
from judging.runs.models import Judgement, Run
from judging.runs.teamwork.marks import tag_names
from judging.runs.teamwork.models import FLAG, Comment, Mark, MarkKind, ReviewAction

_ANY = [("", _("any"))]
_YES = [*_ANY, (YES, _("yes"))]


def _of(run: Run, things: QuerySet[Any]) -> Q:
    """Judgements of the answers and metrics that `things` belong to, found through the index on responses."""
    there = things.filter(run_metric=OuterRef("run_metric"), response=OuterRef("response"))
    found = Judgement.objects.filter(Exists(there), by_response(run), run=run)
    return Q(pk__in=found.filter(response__in=things.values("response")).values("pk"))


def _marks(kind: str) -> Callable[..., QuerySet[Mark]]:
    return lambda run, **more: Mark.objects.current().filter(run=run, kind=kind, **more)


_tags, _assigned, _excluded = map(_marks, (MarkKind.TAG, MarkKind.ASSIGNED, MarkKind.EXCLUDED))


def _comments(run: Run) -> QuerySet[Comment]:
    return Comment.objects.filter(run=run)


def assignees_of(run: Run) -> list[str]:
    """Usernames of the run's assignees."""
    found = ReviewAction.objects.filter(run=run, kind=ReviewAction.Kind.ASSIGN)
    return list(found.order_by("user__username").values_list("user__username", flat=True).distinct())


def _named(names: Callable[[], list[str]]) -> forms.Field:
    """A select field whose choices are queried on rendering; other values in the query string are valid too."""
    choices = cache(lambda: [*_ANY, *((name, name) for name in names())])
    return forms.CharField(max_length=150, widget=forms.Select(choices=choices))  # type: ignore[arg-type]


FILTERS = (
    FurtherFilter(
        name="tag",
        label=_("Tag"),
        field=lambda run: _named(lambda: tag_names(run=run)),
        condition=lambda run, value: _of(run, _tags(run, name=value)),
        offered=lambda run: _tags(run).exclude(name=FLAG).exists(),
    ),
    FurtherFilter(
        name="flagged",
        label=_("Flagged by reviewer"),
        field=lambda run: forms.ChoiceField(choices=_YES),
        condition=lambda run, value: _of(run, _tags(run, name=FLAG)),
        offered=lambda run: _tags(run, name=FLAG).exists(),
    ),
    FurtherFilter(
        name="assigned",
        label=_("Assigned to"),
        field=lambda run: _named(lambda: assignees_of(run)),
        condition=lambda run, value: _of(run, _assigned(run, user__username=value)),
        offered=lambda run: _assigned(run).exists(),
    ),
    FurtherFilter(
        name="excluded",
        label=_("Excluded from figures"),
        field=lambda run: forms.ChoiceField(choices=_YES),
        condition=lambda run, value: _of(run, _excluded(run)),
        offered=lambda run: _excluded(run).exists(),
    ),
    FurtherFilter(
        name="commented",
        label=_("Commented"),
        field=lambda run: forms.ChoiceField(choices=_YES),
        condition=lambda run, value: _of(run, _comments(run)),
        offered=lambda run: _comments(run).exists(),
    ),
)
