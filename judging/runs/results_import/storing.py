"""Verdicts of a results file as judgements of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.db.models import Count, F

from judging.core.metric_definition import MetricDefinition
from judging.core.results_file.verdicts import Kind, Verdict, canonical
from judging.core.values import ERROR, NO_SCORE, SCORED, UNPARSED, Outcome
from judging.runs.export import json_export
from judging.runs.json_storage import as_json
from judging.runs.models import (
    Judgement,
    JudgeReply,
    Run,
    RunCandidate,
    RunMetric,
    SourceKind,
    VerdictSource,
)
from judging.runs.results_import.answers import Found

_COLUMNS = (
    *("response_id", "other_response_id", "run_metric_id", "source_id", "repeat", "shown_first"),
    *("state", "value"),
)
_BATCH = 500


def definition_of(name: str, kind: Kind | None, scale: Sequence[float] | None) -> MetricDefinition:
    """An imported metric as a run freezes it."""
    low, high = scale or (1, 10)
    return MetricDefinition(
        name=name, min_score=low, max_score=high, scale_declared=scale is not None, values=kind or ""
    )


class ImportedVerdicts:
    """The verdicts of one imported run: those that are there, and new ones. Its names are asked for once."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.metrics = dict(run.metrics.values_list("name", "pk"))
        self.sources = {(one.kind, one.name): one.pk for one in run.verdict_sources.all()}
        self.candidates = set(run.run_candidates.values_list("candidate", flat=True))

    def said(self, found: Iterable[Found]) -> dict[tuple[Any, ...], str]:
        """{question: what is said already} about these verdicts' answers."""
        responses = {one.response for one in found if one.response is not None}
        if not self.metrics or not responses:
            return {}
        known = Judgement.objects.filter(run=self.run, response__in=responses, source__isnull=False)
        said = known.values_list(*_COLUMNS)
        return {tuple(question): _said(state, value) for *question, state, value in said}

    def question(self, one: Found) -> tuple[Any, ...]:
        """What a verdict answers, as `said` names it."""
        verdict = one.verdict
        return (
            one.response,
            one.other,
            self.metrics.get(verdict.metric),
            self.sources.get((verdict.source_kind, verdict.source)),
            verdict.repeat,
            verdict.shown_first,
        )

    def add(self, found: Sequence[Found], definitions: Mapping[str, MetricDefinition]) -> None:
        """Store new verdicts behind those that are there. Call in a transaction that holds the run's row."""
        self._add_names(found, definitions)
        start = self.run.total
        judgements = [self._judgement(one, start + place) for place, one in enumerate(found)]
        Judgement.objects.bulk_create(judgements, batch_size=_BATCH)
        replies = [
            _reply(judgement, one.verdict)
            for judgement, one in zip(judgements, found, strict=True)
            if _has_reply(one.verdict)
        ]
        JudgeReply.objects.bulk_create(replies, batch_size=_BATCH)
        self._count(found)

    def _add_names(self, found: Sequence[Found], definitions: Mapping[str, MetricDefinition]) -> None:
        for name in dict.fromkeys(one.verdict.metric for one in found):
            if name not in self.metrics:
                text = definitions[name].to_json()
                number = len(self.metrics)
                made = RunMetric.objects.create(run=self.run, number=number, name=name, definition=text)
                self.metrics[name] = made.pk
        for kind, name in dict.fromkeys((one.verdict.source_kind, one.verdict.source) for one in found):
            if (kind, name) not in self.sources:
                source = VerdictSource.objects.create(run=self.run, kind=kind, name=name)
                self.sources[kind, name] = source.pk
        for one in found:
            for candidate in (one.candidate, one.other_candidate):
                if candidate is not None and candidate not in self.candidates:
                    RunCandidate.objects.create(run=self.run, candidate_id=candidate)
                    self.candidates.add(candidate)

    def _judgement(self, one: Found, position: int) -> Judgement:
        verdict = one.verdict
        assert one.candidate is not None
        assert one.response is not None
        outcome = Outcome(verdict.state, verdict.value)
        return Judgement(
            run=self.run,
            position=position,
            run_metric_id=self.metrics[verdict.metric],
            row_id=one.row,
            candidate_id=one.candidate,
            response_id=one.response,
            other_response_id=one.other,
            source_id=self.sources[verdict.source_kind, verdict.source],
            repeat=verdict.repeat,
            shown_first=verdict.shown_first,
            drawn_with=verdict.drawn_with,
            state=verdict.state,
            value=outcome.value_json,
            score=outcome.score,
            reason=verdict.reason,
            detail=verdict.detail,
            verdicts=_verdicts_json(verdict),
            seconds=verdict.seconds,
            finished_at=verdict.at,
        )

    def _count(self, found: Sequence[Found]) -> None:
        states = Counter(one.verdict.state for one in found)
        said = [one.verdict for one in found]
        Run.objects.filter(pk=self.run.pk).update(
            total=F("total") + len(found),
            scored=F("scored") + states[SCORED],
            no_score=F("no_score") + states[NO_SCORE],
            unparsed=F("unparsed") + states[UNPARSED],
            errors=F("errors") + states[ERROR],
            prompt_tokens=F("prompt_tokens") + sum(one.prompt_tokens or 0 for one in said),
            completion_tokens=F("completion_tokens") + sum(one.completion_tokens or 0 for one in said),
            revision=F("revision") + 1,
        )
        self.run.refresh_from_db(fields=["total", "revision"])


def rows_counted(run: Run) -> int:
    """How many rows its judgements are about."""
    counted = run.judgements.aggregate(rows=Count("row", distinct=True))["rows"]
    return int(counted or 0)


def people_counted(run: Run) -> int:
    """How many of its verdicts are people's."""
    return run.judgements.filter(
        current=True, source__kind__in=(SourceKind.RATER, SourceKind.ADJUDICATOR)
    ).count()


def _said(state: str, value: str | None) -> str:
    return canonical(json_export.loads(value)) if state == SCORED and value else state


def _has_reply(verdict: Verdict) -> bool:
    tokens = verdict.prompt_tokens is not None or verdict.completion_tokens is not None
    return bool(verdict.reasoning) or tokens or verdict.cost is not None


def _verdicts_json(verdict: Verdict) -> str:
    """What its reply says, where it has one, in the shape of a judge's that was asked here."""
    if not _has_reply(verdict):
        return ""
    return as_json([{"judge": 0, "repeat": 0, "value": verdict.value, "reason": verdict.reason}])


def _reply(judgement: Judgement, verdict: Verdict) -> JudgeReply:
    return JudgeReply(
        judgement=judgement,
        judge=0,
        request="{}",
        content=verdict.reasoning or None,
        extra="" if verdict.cost is None else as_json({"cost": verdict.cost}),
        calls="[]",
        prompt_tokens=verdict.prompt_tokens,
        completion_tokens=verdict.completion_tokens,
        seconds=verdict.seconds or 0.0,
    )
