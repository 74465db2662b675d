"""Reading judgements: pages of a list, the neighbours of one, what is known beside it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from django.db.models import F, FloatField, Q, QuerySet, Value
from django.db.models.expressions import Combinable
from django.db.models.functions import Coalesce

from judging.review.forms import FLAGS
from judging.review.models import Override
from judging.review.telling import shown_json
from judging.runs.export import data_of
from judging.runs.filters import Filters, matching
from judging.runs.models import Judgement, JudgeReply, Run, RunMetric

PER_PAGE = 50
_SHOWN = 300  # characters of a question or an answer in a line of the list
_LINE_FIELDS = (
    "position", "run", "state", "value", "score", "reason", "detail", "flags", "seconds", "attempt", "current",
    "row__line", "row__raw", "response__number", "response__raw", "candidate__name", "run_metric__name",
)  # fmt: skip


class _Content(msgspec.Struct):
    content: str | None = None


_decode_content = msgspec.json.Decoder(_Content).decode


@dataclass(frozen=True, slots=True)
class Place:
    """Where a judgement stands in a sorted list: the value sorted by and, to break ties, its position."""

    key: float
    position: int

    def __str__(self) -> str:
        return f"{self.key!r}~{self.position}"


def place_from(text: str) -> Place | None:
    """The place that an address names; None if it names none."""
    key, _, position = text.partition("~")
    try:
        return Place(float(key), int(position))
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class Line:
    """A judgement as the list shows it, with the beginnings of its question and its answer."""

    judgement: Judgement
    value: str
    question: str
    answer: str

    @property
    def flags(self) -> list[str]:
        return flag_names(self.judgement)


@dataclass(frozen=True, slots=True)
class Page:
    """A page of judgements; `previous` and `next` are where the pages beside it end and begin, if there are any."""

    lines: list[Line]
    previous: Place | None
    next: Place | None


@dataclass(frozen=True, slots=True)
class _Order:
    """How a filter's list is sorted. Judgements without the value come last, whichever way."""

    filters: Filters

    @property
    def down(self) -> bool:
        return self.filters.sort.startswith("-")

    @property
    def key(self) -> Combinable:
        name = self.filters.sort.removeprefix("-")
        if name != "position":
            last = -sys.float_info.max if self.down else sys.float_info.max
            return Coalesce(F(name), Value(last), output_field=FloatField())
        # Where few of many are meant, +0 keeps the database from walking the run in the order of positions
        # in search of them: it sorts what the index of the figures gives.
        return F("position") + 0 if self.filters.by_figures else F("position")

    def beyond(self, place: Place, *, back: bool) -> Q:
        """Later in the list than `place`, or earlier."""
        key = "key__lt" if self.down != back else "key__gt"
        position = "position__lt" if back else "position__gt"
        if self.filters.sort == "position":
            return Q(**{key: place.position})
        return Q(**{key: place.key}) | Q(key=place.key, **{position: place.position})

    def by(self, *, back: bool) -> tuple[str, ...]:
        key = "-key" if self.down != back else "key"
        return (key,) if self.filters.sort == "position" else (key, "-position" if back else "position")


def places(run: Run, filters: Filters, beside: Place | None, limit: int, *, back: bool = False) -> list[Any]:
    """(id, key, position) of up to `limit` judgements after `beside` (or before it, nearest first)."""
    order = _Order(filters)
    found = matching(run, filters).annotate(key=order.key)
    if beside is not None:
        found = found.filter(order.beyond(beside, back=back))
    return list(found.order_by(*order.by(back=back)).values_list("pk", "key", "position")[:limit])


def page(run: Run, filters: Filters, *, after: Place | None = None, before: Place | None = None) -> Page:
    """The page after a place, or before one, or the first."""
    back = before is not None
    found = places(run, filters, before if back else after, PER_PAGE + 1, back=back)
    if back and len(found) <= PER_PAGE:
        return page(run, filters)  # the beginning was reached: a whole first page
    more, found = len(found) > PER_PAGE, found[:PER_PAGE]
    if back:
        found.reverse()
    first, last = (
        (Place(found[0][1], found[0][2]), Place(found[-1][1], found[-1][2])) if found else (None, None)
    )
    return Page(
        lines_of(run, [pk for pk, _, _ in found]),
        previous=first if back or after is not None else None,
        next=last if back or more else None,
    )


def lines_of(run: Run, ids: Sequence[int]) -> list[Line]:
    """The judgements with these ids as lines, in this order."""
    parts = Judgement.objects.select_related("row", "response", "candidate", "run_metric").only(*_LINE_FIELDS)
    found = parts.in_bulk(ids)
    return [_line(run, found[pk]) for pk in ids]


def _line(run: Run, judgement: Judgement) -> Line:
    judgement.run = run
    question = data_of(judgement.row.raw, run.version.format)["question"] or ""
    answer = answer_text(judgement.response.raw)
    return Line(judgement, shown_json(judgement.value), question[:_SHOWN], answer[:_SHOWN])


def answer_text(raw: str) -> str:
    """A response's content; '' if it has none."""
    try:
        return _decode_content(raw).content or ""
    except msgspec.MsgspecError:
        return ""


def flag_names(judgement: Judgement) -> list[str]:
    """What is odd about it, in words."""
    return [str(FLAGS.get(flag, flag)) for flag in judgement.flags.split(",") if flag]


def place_of(judgement: Judgement, filters: Filters) -> Place:
    """Where the judgement stands in the list of `filters`."""
    name = filters.sort.removeprefix("-")
    key = getattr(judgement, name)
    if key is None:
        key = -sys.float_info.max if filters.sort.startswith("-") else sys.float_info.max
    return Place(float(key), judgement.position)


def neighbours(judgement: Judgement, filters: Filters) -> tuple[int | None, int | None]:
    """Ids of the judgements before and after this one in the list of `filters`."""
    here = place_of(judgement, filters)
    before = places(judgement.run, filters, here, 1, back=True)
    after = places(judgement.run, filters, here, 1)
    return before[0][0] if before else None, after[0][0] if after else None


def was_retried(run: Run) -> bool:
    """Are there older attempts? They were planned at positions beyond the first ones."""
    return run.judgements.filter(position__gte=run.total).exists()


def replies_of(judgement: Judgement) -> QuerySet[JudgeReply]:
    """What the judge models were asked and said, in order; of the attempt that asked, if this one did not."""
    asked_by = judgement.asked_by_id or judgement.pk
    return JudgeReply.objects.filter(judgement=asked_by).order_by("judge", "repeat", "swapped")


def overrides_of(judgement: Judgement) -> QuerySet[Override]:
    """What reviewers put instead, the newest, which counts, first."""
    return Override.objects.filter(judgement=judgement).select_related("by").order_by("-pk")


def overrides_before(judgement: Judgement) -> QuerySet[Override]:
    """Overrides of earlier attempts, the newest first. They count for those attempts only."""
    earlier = attempts(judgement).filter(attempt__lt=judgement.attempt)
    found = Override.objects.filter(judgement__in=earlier.order_by())
    return found.select_related("by", "judgement").order_by("-pk")


def overridden_now(run_metric: RunMetric) -> int:
    """How many of a metric's current judgements a reviewer has overridden."""
    current = Judgement.objects.filter(run=run_metric.run_id, run_metric=run_metric, current=True)
    return current.filter(pk__in=Override.objects.values("judgement")).count()


def attempts(judgement: Judgement) -> QuerySet[Judgement]:
    """Every attempt of this metric at this response within the run, the newest first."""
    return _same_response(judgement).filter(run_metric=judgement.run_metric_id).order_by("-attempt")


def other_runs(judgement: Judgement, limit: int = 20) -> QuerySet[Judgement]:
    """What other runs, and other metrics of this one, say of the same response now."""
    others = _same_response(judgement).filter(current=True).exclude(run_metric=judgement.run_metric_id)
    return others.select_related("run", "run_metric").order_by("-pk")[:limit]


def _same_response(judgement: Judgement) -> QuerySet[Judgement]:
    # The two nulls are those of the index that finds judgements by response.
    return Judgement.objects.filter(response=judgement.response_id, rater=None, other_response=None)
