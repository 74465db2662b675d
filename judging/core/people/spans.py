"""Spans that a rater marks in an answer, each with a label and a severity: their text, their sum, the passages.

Spans are stored as JSON, sorted: `[{"start": 3, "end": 7, "label": "Accuracy", "severity": -5}]`. `start` and `end`
count code points of the answer's `content`; `end` is behind the last one. Spans may overlap. `[]`: nothing to mark.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec

SEVERITIES = (-1, -5, -10)
"""Minor, major and critical errors. Source: Lommel, Uszkoreit and Burchardt, "Multidimensional Quality Metrics (MQM)",
Tradumàtica 12, 2014, as weighted by the MQM Council (1, 5, 10; the sum is subtracted)."""
MOST_LABELS = 9  # each has a digit as its key
MOST_SPANS = 200


class Span(msgspec.Struct, frozen=True, forbid_unknown_fields=True, order=True):
    """A marked passage, `start` and `end` in code points."""

    start: int
    end: int
    label: str
    severity: int


_decode = msgspec.json.Decoder(list[Span]).decode


def spans_of(text: str) -> list[Span]:
    """The spans, sorted. Raises msgspec.MsgspecError for a text that is none."""
    return sorted(_decode(text))


def spans_text(spans: Sequence[Span]) -> str:
    """The text by which spans are stored; equal spans have equal texts."""
    return msgspec.json.encode(sorted(spans)).decode()


def problem_of_spans(text: Any, labels: Sequence[str], length: int) -> str:
    """Why a text is no spans of an answer with `length` code points, as a code; '' if it is. too_many, or not_on_scale
    for a span that is empty, beyond the answer, twice with one label, or of an unknown label or severity."""
    try:
        spans = spans_of(text)
    except (msgspec.MsgspecError, TypeError, ValueError):  # ValueError: half of a surrogate pair
        return "not_on_scale"
    if len(spans) > MOST_SPANS:
        return "too_many"
    places = {(span.start, span.end, span.label) for span in spans}
    inside = all(0 <= span.start < span.end <= length for span in spans)
    allowed = all(span.label in labels and span.severity in SEVERITIES for span in spans)
    return "" if inside and allowed and len(places) == len(spans) else "not_on_scale"


def sum_of(text: str) -> int:
    """The score of spans: the sum of their severities, 0 without any."""
    return sum(span.severity for span in spans_of(text))


def finds(marked: str, expected: str, within: int) -> bool:
    """Whether marked spans find the expected ones: each of these is overlapped by one with its label, and the sums
    differ by at most `within`, so that marking everything finds nothing."""
    own, sought = spans_of(marked), spans_of(expected)
    found = all(any(_overlap(span, mark) and span.label == mark.label for mark in own) for span in sought)
    return found and abs(sum_of(marked) - sum_of(expected)) <= within


def _overlap(a: Span, b: Span) -> bool:
    return a.start < b.end and b.start < a.end


def records_of(text: str) -> list[dict[str, Any]]:
    """Spans for files: {start, end, label, severity} each."""
    return [msgspec.structs.asdict(span) for span in spans_of(text)]


def text_of_records(records: Any, score: Any = None) -> str:
    """The inverse of `records_of`. Records that are none stay as they are, for `accepted` to refuse, and so does '!',
    where their sum is not the `score` beside them."""
    text = json.dumps(records, ensure_ascii=False)
    try:
        return text if score is None or sum_of(text) == score else "!"
    except (msgspec.MsgspecError, ValueError):
        return text


class MarkedPassage(NamedTuple):
    """A piece of an answer and the spans that cover it, outermost first."""

    text: str
    spans: tuple[Span, ...]


def passages(content: str, spans: Sequence[Span]) -> list[MarkedPassage]:
    """An answer cut wherever a span begins or ends; together the pieces are the answer."""
    cuts = sorted({0, len(content), *(cut for span in spans for cut in (span.start, span.end))})
    ordered = sorted(spans, key=lambda span: (span.start, -span.end))
    return [
        MarkedPassage(content[a:b], tuple(span for span in ordered if span.start <= a and b <= span.end))
        for a, b in pairwise(cuts)
    ]
