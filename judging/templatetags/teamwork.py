"""Template tags for review collaboration: `{% load teamwork %}`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django import template
from django.http import HttpRequest
from django.utils.safestring import SafeString

from judging.messages import reason_sentence
from judging.records.models import Judgement
from judging.review.grid import GridPage, Pill
from judging.review.teamwork.inbox import unread_notices
from judging.review.teamwork.views import teamwork_of
from judging.teamwork.marks import marks_by_judgement
from judging.teamwork.models import Mark

register = template.Library()
MOST_COUNTED = 99


@register.filter
def why(reason: str) -> str:
    """A message on why a judgement has no score."""
    return reason_sentence(reason)


@register.inclusion_tag("review/_teamwork.html", takes_context=True)
def teamwork(context: template.Context) -> dict[str, Any]:
    """Comments, tags, assignee and exclusion of the page's judgement."""
    inherited = {name: context[name] for name in ("request", "project", "may", "user", "csrf_token")}
    return inherited | {"here": context.get("here", "")} | teamwork_of(context["judgement"])


@register.simple_tag
def marks_on(judgements: Iterable[Judgement]) -> dict[int, list[Mark]]:
    """{judgement id: marks} for the judgements of a list, in one query."""
    return marks_by_judgement(judgements)


@register.filter
def judgements_in(page: GridPage) -> list[Judgement]:
    """All judgements on a page of the grid."""
    cells = (answer for row in page.rows for cell in row.cells for answer in cell)
    return [pill.judgement for answer in cells for pill in answer.pills]


@register.filter
def of_key(marks: Mapping[int, list[Mark]], key: int) -> list[Mark]:
    return marks.get(key, [])


@register.simple_tag(takes_context=True)
def pill_link(context: template.Context, pill: Pill, marked: Mapping[int, list[Mark]]) -> SafeString:
    """Render a pill of the grid with the marks on its judgement."""
    return pill.html(context["base"], context["query"], marked[pill.judgement.pk])


@register.simple_tag(takes_context=True)
def unread_count(context: template.Context) -> str:
    """The number of the user's unread notices as badge text; '' if none."""
    request: HttpRequest = context["request"]
    if not request.user.is_authenticated:
        return ""
    count = unread_notices(request)[: MOST_COUNTED + 1].count()
    return f"{MOST_COUNTED}+" if count > MOST_COUNTED else str(count or "")
