"""Queries for judgements: pages of a list, neighbours of a judgement, and related data."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
from django.db.models import QuerySet

from evalsite.truncation import truncate
from judging.core.values import Value, value_of
from judging.filters.conditions import BY_METRICS, BY_SOURCES
from judging.filters.filter_form import FLAGS
from judging.filters.judgement_filter import Filters
from judging.filters.orders import ListPosition, place_of
from judging.filters.page_limits import LIMITS, Limits
from judging.filters.search import nearest
from judging.messages import verdict_texts
from judging.records.definitions import definitions_now
from judging.records.models import Judgement, JudgementState, JudgeReply, Override, Run
from judging.records.overrides import attempts_of, history_of
from judging.records.seal import unsealed, without_sealed
from judging.records.stored_judgement import data_of

PER_PAGE = 50
_VALUES_LOOKED_AT = 100
_SHOWN = 300  # characters of a question or an answer in the list
_LINE_FIELDS = (
    "position", "run", "state", "value", "reason", "flags", "seconds", "spread", "changed_at", "attempt", "current",
    "state_in_force", "value_in_force", "score_in_force", "override_value",
    "row__line", "row__raw", "response__number", "response__raw", "candidate__name", "run_metric__name",
    "other_response__number", "other_response__raw", "other_response__candidate__name", "source__kind", "source__name",
    "repeat",
)  # fmt: skip


class _Content(msgspec.Struct):
    content: str | None = None


_decode_content = msgspec.json.Decoder(_Content).decode


@dataclass(frozen=True, slots=True)
class JudgementLine:
    """A judgement in the list, with the beginnings of its question and its answer.

    `value` is the one in force; `own`: the attempt's own value or state if it is overridden, else ''. `other`: the
    beginning of answer B of a comparison, else ''.
    """

    judgement: Judgement
    value: str
    own: str
    question: str
    answer: str
    other: str

    @property
    def flags(self) -> list[str]:
        return flag_names(self.judgement)

    @property
    def noted(self) -> bool:
        """Whether there is more to say than its state."""
        return bool(self.judgement.overridden or self.judgement.reason or self.judgement.flags)


@dataclass(frozen=True, slots=True)
class Page:
    """A page of judgements; `previous` and `next`: the places where the neighbouring pages end and start, or None.

    `stopped`: the place where the search stopped before the page was full, after it `looked_at` judgements; continue
    from there, `back` or forward.
    """

    lines: list[JudgementLine]
    previous: ListPosition | None
    next: ListPosition | None
    stopped: ListPosition | None = None
    looked_at: int = 0
    back: bool = False


def page(
    run: Run,
    filters: Filters,
    *,
    after: ListPosition | None = None,
    before: ListPosition | None = None,
    size: int = PER_PAGE,
    limits: Limits = LIMITS,
) -> Page:
    """The page after or before a place, or the first page."""
    back = before is not None
    look = nearest(run, filters, before if back else after, size + 1, back=back, limits=limits)
    if back and look.stopped is None and len(look.matches) <= size:
        return page(run, filters, size=size, limits=limits)  # reached the beginning: return a full first page
    matches = look.matches[:size][:: -1 if back else 1]
    first, last = (matches[0].place, matches[-1].place) if matches else (None, None)
    # A judgement at the place itself belongs to the page next to an empty one.
    beyond_before = before.beside(filters, back=True) if before else None
    beyond_after = after.beside(filters) if after else None
    more = len(look.matches) > size
    return Page(
        lines_of(run, [match.pk for match in matches]),
        previous=look.stopped or first if back else first or beyond_after if after is not None else None,
        next=(last or beyond_before) if back else look.stopped or (last if more else None),
        stopped=look.stopped,
        looked_at=look.looked_at,
        back=back,
    )


def lines_of(run: Run, ids: Sequence[int]) -> list[JudgementLine]:
    """The judgements with these ids as lines, in this order."""
    joined = ("row", "response", "candidate", "run_metric", "other_response__candidate", "source")
    by_id = Judgement.objects.select_related(*joined).only(*_LINE_FIELDS).in_bulk(ids)
    judgements = [by_id[pk] for pk in ids]
    values = [
        value_of(text) for judgement in judgements for text in (judgement.value_in_force, judgement.value)
    ]
    metrics = definitions_now(run)
    of_values = [metrics[judgement.run_metric_id] for judgement in judgements for _both in range(2)]
    texts = [
        metric.verdict_of(value) or text
        for metric, value, text in zip(of_values, values, verdict_texts(values), strict=True)
    ]
    return [
        _line(run, judgement, in_force, own)
        for judgement, in_force, own in zip(judgements, texts[::2], texts[1::2], strict=True)
    ]


def _line(run: Run, judgement: Judgement, in_force: str, own: str) -> JudgementLine:
    """`in_force`, `own`: its value with and without an override, as texts of the column."""
    judgement.run = run
    question = data_of(judgement.row.raw, run.version.format)["question"] or ""
    answer = answer_text(judgement.response.raw)
    other = answer_text(judgement.other_response.raw) if judgement.other_response else ""
    return JudgementLine(
        judgement,
        in_force,
        (own or judgement.get_state_display()) if judgement.overridden else "",
        truncate(question, _SHOWN),
        truncate(answer, _SHOWN),
        truncate(other, _SHOWN),
    )


def answer_text(raw: str) -> str:
    """A response's content; '' if it has none."""
    try:
        return _decode_content(raw).content or ""
    except msgspec.MsgspecError:
        return ""


def flag_names(judgement: Judgement) -> list[str]:
    """Its flags as text."""
    return [str(FLAGS.get(flag, flag)) for flag in judgement.flags.split(",") if flag]


def neighbours(judgement: Judgement, filters: Filters) -> tuple[int | None, int | None]:
    """Ids of the judgements before and after this one in the list of `filters`, if the search found any."""
    here = place_of(judgement, filters)
    before = nearest(judgement.run, filters, here, 1, back=True).matches
    after = nearest(judgement.run, filters, here, 1).matches
    return before[0].pk if before else None, after[0].pk if after else None


def replies_of(judgement: Judgement) -> QuerySet[JudgeReply]:
    """Requests to the judge models and their replies, in order; of an earlier attempt if this one reused its
    replies."""
    replies_from = judgement.replies_from_id or judgement.pk
    return JudgeReply.objects.filter(judgement=replies_from).order_by(
        "judge", "repeat", "swapped", "criterion"
    )


def overrides_of(judgement: Judgement) -> list[Override]:
    """History of overrides for this answer and metric, newest first; the newest counts."""
    return list(history_of(judgement).select_related("by", "judgement"))


def values_like(judgement: Judgement) -> list[Value]:
    """A sample of the metric's values in this run, including its own, to determine their type."""
    others = Judgement.objects.filter(
        run=judgement.run_id,
        run_metric=judgement.run_metric_id,
        current=True,
        state_in_force=JudgementState.SCORED,
    )
    others = unsealed(judgement.run, others)
    values = others.values_list("value_in_force", flat=True)[:_VALUES_LOOKED_AT]
    return [json.loads(text) for text in {judgement.value, judgement.value_in_force, *values} if text]


def attempts(judgement: Judgement) -> list[Judgement]:
    """All attempts of this metric at this response within the run, newest first."""
    fields = ("attempt", "current", "state", "value", "value_in_force", "state_in_force")
    all_attempts = list(attempts_of(judgement).only(*fields).order_by("-attempt"))
    for attempt in all_attempts:
        attempt.run = judgement.run
    return all_attempts


def other_runs(judgement: Judgement, limit: int = 20) -> list[Judgement]:
    """Current judgements of the same response by other runs and by other metrics of this run, without sealed labels."""
    of_response = Judgement.objects.filter(response=judgement.response_id).order_by()
    by_index = (
        of_response.filter(BY_METRICS)
        .values("pk")
        .union(of_response.filter(BY_SOURCES).values("pk"), all=True)
    )
    others = Judgement.objects.filter(pk__in=by_index, current=True, other_response=None)
    others = others.exclude(pk=judgement.pk)
    if judgement.source_id is None:
        others = others.exclude(run_metric=judgement.run_metric_id)
    parts = ("run__version", "run_metric", "reading", "source")
    return without_sealed(others.select_related(*parts).order_by("-pk")[:limit])
