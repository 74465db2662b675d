"""Trying a parser on stored replies: new results next to the stored ones."""

from __future__ import annotations

from dataclasses import dataclass

from datasets.core.kinds import turned
from datasets.models import Response
from judging.core.replies import Parser, turned_back
from judging.core.values import Value
from judging.filters.conditions import BY_METRICS
from judging.messages import reason_sentence, verdict_text
from judging.metrics.editor.try_prompt import read_replies
from judging.metrics.models import Metric
from judging.records import json_text
from judging.records.models import Judgement, JudgementState, JudgeReply, RunMetric
from judging.records.stored_judgement import place_of, verdicts_by_place

MOST = 20
_RUNS_LOOKED_AT = 5
_END_SHOWN = 110  # characters of a reply, about two lines: verdicts are at its end
_UNREAD = (JudgementState.UNPARSED,)
_READ = (JudgementState.SCORED, JudgementState.NO_SCORE, JudgementState.UNSETTLED)


@dataclass(frozen=True, slots=True)
class TriedReply:
    """The end of a reply, the value parsed `then` and the value parsed `now` ('' if none, with the reason in
    `why_not`).

    `repeat` counts from 0. Verdicts on `swapped` sides are turned back in both values.
    """

    judgement: Judgement
    repeat: int
    swapped: bool
    end: str
    then: str
    now: str
    why_not: str
    evidence: str

    @property
    def changes(self) -> bool:
        return self.then != self.now


class RunReplies:
    """Replies in runs for the metric editor. Implements judging.metrics.editor.scripts.ReplyHistory."""

    def newest_reply(self, metric_id: int, response: Response | None) -> str | None:
        judged = Judgement.objects.filter(BY_METRICS, response=response)
        newest = judged.filter(run_metric__metric_version__metric=metric_id).order_by("-pk").first()
        if newest is None:
            return None
        replies = JudgeReply.objects.filter(judgement=newest.replies_from_id or newest.pk).exclude(
            content=None
        )
        return (
            replies.order_by("judge", "repeat", "swapped", "criterion")
            .values_list("content", flat=True)
            .first()
        )

    def try_on_newest_runs(self, metric: Metric, judge: int, parser: Parser) -> list[TriedReply]:
        """Try the parser on replies in the metric's newest runs, unparsed ones first."""
        newest = RunMetric.objects.filter(metric_version__metric=metric).select_related("run").order_by("-pk")
        pairs: list[tuple[Judgement, JudgeReply]] = []
        for run_metric in newest[:_RUNS_LOOKED_AT]:
            if len(pairs) < MOST:
                pairs += _replies(run_metric, judge, MOST - len(pairs))
        return _try_parser(pairs, parser)


def try_on_run(run_metric: RunMetric, judge: int, parser: Parser) -> list[TriedReply]:
    """Try the parser on replies of one run."""
    return _try_parser(_replies(run_metric, judge, MOST), parser)


def _replies(run_metric: RunMetric, judge: int, most: int) -> list[tuple[Judgement, JudgeReply]]:
    """All repeats and orders of as many judgements as fit into `most` replies, but at least of the first one."""
    by_source = {
        judgement.replies_from_id or judgement.pk: judgement for judgement in _judgements(run_metric, most)
    }
    replies: dict[int, list[JudgeReply]] = {}
    judge_replies = JudgeReply.objects.filter(judgement__in=by_source, judge=judge).exclude(content=None)
    for reply in judge_replies.order_by("repeat", "swapped", "criterion"):
        replies.setdefault(reply.judgement_id, []).append(reply)
    pairs: list[tuple[Judgement, JudgeReply]] = []
    for pk, judgement in by_source.items():
        own_replies = replies.get(pk, [])
        if pairs and len(pairs) + len(own_replies) > most:
            break
        pairs += [(judgement, reply) for reply in own_replies]
    return pairs


def _judgements(run_metric: RunMetric, most: int) -> list[Judgement]:
    """Up to `most` judgements, up to half of them unparsed."""
    current = Judgement.objects.filter(run=run_metric.run_id, run_metric=run_metric, current=True)
    current = current.select_related("row", "candidate", "run").defer("row__raw")
    unread = list(current.filter(state__in=_UNREAD)[: max(1, most // 2)])
    return [*unread, *current.filter(state__in=_READ)[: most - len(unread)]]


def _try_parser(pairs: list[tuple[Judgement, JudgeReply]], parser: Parser) -> list[TriedReply]:
    read = read_replies(parser, [(reply.content or "", _finish_reason(reply)) for _, reply in pairs])
    return [
        TriedReply(
            judgement,
            reply.repeat,
            reply.swapped,
            _end_of(reply.content or ""),
            verdict_text(verdicts_by_place(judgement.verdicts).get(place_of(reply), {}).get("value")),
            verdict_text(_as_first(parsed.value, reply.swapped)),
            reason_sentence(parsed.reason) if parsed.reason else "",
            parsed.evidence,
        )
        for (judgement, reply), parsed in zip(pairs, read, strict=True)
    ]


def _finish_reason(reply: JudgeReply) -> str | None:
    extra = json_text.loads(reply.extra) if reply.extra else {}
    return extra.get("finish_reason")


def _end_of(content: str) -> str:
    end = " ".join(content[-10 * _END_SHOWN :].split())
    return end if len(end) <= _END_SHOWN and len(content) <= 10 * _END_SHOWN else f"… {end[-_END_SHOWN:]}"


def _as_first(value: Value | None, swapped: bool) -> Value | None:
    """The verdict relative to the first order, as in `pipeline.read_verdicts`."""
    if not swapped or isinstance(value, bool):
        return value
    return turned_back(value) if isinstance(value, int) else turned(value)


RUN_REPLIES = RunReplies()
