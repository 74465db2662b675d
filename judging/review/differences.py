"""Differences between two texts of a judgement's page: answer and reference, or the replies of two judges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from evalsite.text_diff import Passage, sides
from evalsite.web.numbers import whole
from judging.core.metric_definition import MetricDefinition
from judging.review.judgement_view import JudgementView
from judging.runs.models import Judgement, JudgeReply

MOST = 60  # replies to choose from


@dataclass(frozen=True, slots=True)
class Differences:
    """Two texts side by side with their names and the parts that differ."""

    before_name: str
    after_name: str
    before: list[Passage]
    after: list[Passage]


def answer_differences(view: JudgementView) -> tuple[list[Passage], list[Passage]]:
    """Reference and answer in pieces."""
    return sides(view.reference, view.answer)


def reply_differences(
    found: Judgement, others: Sequence[Judgement], asked: Mapping[str, str]
) -> dict[str, Any]:
    """The replies that can be compared, [(key, name)], this judgement's first, and the differences between those
    selected by `a` and `b`."""
    offered = dict(_offered(found, others))
    chosen = [whole(asked.get(name, "")) for name in ("a", "b")]
    keys = [pk for pk in chosen if pk is not None and pk in offered]
    context: dict[str, Any] = {"replies": list(offered.items()) if len(offered) > 1 else [], "compared": keys}
    if len(set(keys)) == 2:
        texts = {one.pk: _words(one) for one in JudgeReply.objects.filter(pk__in=keys)}
        before, after = (texts[pk] for pk in keys)
        first, second = (offered[pk] for pk in keys)
        context["differences"] = Differences(first, second, *sides(before, after))
    return context


def _offered(found: Judgement, others: Sequence[Judgement]) -> list[tuple[int, str]]:
    judgements = {one.asked_by_id or one.pk: one for one in (found, *others)}
    replies = JudgeReply.objects.filter(judgement__in=judgements).exclude(content=None)
    places = replies.values_list("pk", "judgement", "judge", "repeat", "swapped")
    order = list(judgements)
    ordered = sorted(places[:MOST], key=lambda one: (order.index(one[1]), *one[2:]))
    metrics = {pk: MetricDefinition.from_json(one.definition) for pk, one in judgements.items()}
    return [
        (pk, _name(judgements[by], metrics[by], judge, repeat, swapped=swapped, own=judgements[by] is found))
        for pk, by, judge, repeat, swapped in ordered
    ]


def _name(
    judgement: Judgement, metric: MetricDefinition, judge: int, repeat: int, *, swapped: bool, own: bool
) -> str:
    """The name of a reply: its judge and, if it is not from this judgement, the other run and metric."""
    known = judge < len(metric.judges)
    name = judgement.source.name if judgement.source else metric.judges[judge].name if known else ""
    parts = [
        *([] if own else [judgement.run.name, judgement.run_metric.name]),
        name + (f" #{repeat + 1}" if repeat else ""),
        _("sides swapped") if swapped else "",
    ]
    return " · ".join(filter(None, parts))


def _words(reply: JudgeReply) -> str:
    """Everything the judge wrote, reasoning first."""
    return "\n\n".join(filter(None, (reply.reasoning, reply.content)))
