"""Answers with the spans that raters marked in them, for organisers and reviewers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from judging.core.people.criteria import Criterion
from judging.core.people.spans import MarkedPassage, Span, passages, spans_of
from judging.core.values import Value
from judging.people.item_criteria import content_of
from judging.people.labels import spans_label, values_of
from judging.people.models import Item, Rating


@dataclass(frozen=True, slots=True)
class MarkedAnswer:
    """An answer as one rating marks it. `label`: the sum and number of its spans; `spans`: each with its passage."""

    label: str
    passages: list[MarkedPassage]
    spans: list[tuple[Span, str]]


def marked_in(
    criteria: Mapping[int, Criterion], item: Item, values: Mapping[int, Value]
) -> MarkedAnswer | None:
    """The item's answer with the spans among a rating's values, by criterion number; None without any."""
    number = next((number for number, criterion in criteria.items() if criterion.marks_spans), None)
    if number is None or number not in values:
        return None
    content, spans = content_of(item), spans_of(str(values[number]))
    quoted = [(span, content[span.start : span.end]) for span in spans]
    return MarkedAnswer(spans_label(values[number]), passages(content, spans), quoted)


def marked_by_raters(
    criteria: Mapping[int, Criterion], item: Item, ratings: Iterable[Rating]
) -> list[tuple[Rating, MarkedAnswer]]:
    """The verdicts in force with what they mark. `ratings`: all of the item."""
    current = (rating for rating in ratings if rating.assignment.rating_id == rating.pk)
    marked = ((rating, marked_in(criteria, item, values_of(rating.values))) for rating in current)
    return [(rating, answer) for rating, answer in marked if answer is not None]
