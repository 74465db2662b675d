"""Filters of the pages of looks."""

from __future__ import annotations

from django import template

from judging.look.models import Note
from judging.look.results import LookResult, NotedAnswer

register = template.Library()


@register.filter
def answer_of(result: LookResult, note: Note) -> NotedAnswer:
    """The answer that a note is about."""
    return result.by_note[note.pk]
