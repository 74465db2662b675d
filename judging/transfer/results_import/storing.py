"""Storing verdicts of a results file as judgements of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.db import connection
from django.db.models import F, Model

from datasets.core.kinds import BOTH_BAD, COMPARISON_CODES, turned
from judging.core.metric_definition import MetricDefinition
from judging.core.pairs import ORDERS_DISAGREE, settled_verdict
from judging.core.results_file.verdicts import FileVerdict, canonical
from judging.core.values import SCORED, UNSETTLED, Outcome
from judging.records import json_text
from judging.records.json_text import as_json
from judging.records.models import (
    COUNTERS,
    Judgement,
    JudgeReply,
    Run,
    RunCandidate,
    RunMetric,
    SourceKind,
    VerdictSource,
)
from judging.records.stored_judgement import verdict_in_order
from judging.transfer.results_import.answers import LocatedVerdict, is_turned, other_side
from judging.transfer.results_import.checklists import merge_checklists, stored_criteria, stored_ids

_COLUMNS = (
    *("response_id", "other_response_id", "run_metric_id", "source_id", "repeat", "shown_first"),
    *("state", "value", "detail"),
)
Columns = dict[str, Any]
_BATCH = 500  # judgements in one query


class ImportedVerdicts:
    """Existing and new verdicts of one imported run. Names of metrics and sources are queried once."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.metrics = dict(run.metrics.values_list("name", "pk"))
        self.sources = {(source.kind, source.name): source.pk for source in run.verdict_sources.all()}
        self.candidates = set(run.run_candidates.values_list("candidate", flat=True))

    def stored_verdicts(self, verdicts: Iterable[LocatedVerdict]) -> dict[tuple[Any, ...], str]:
        """{question: stored verdict} for these verdicts' answers."""
        responses = {id for verdict in verdicts for id in (verdict.response, verdict.other) if id is not None}
        if not self.metrics or not responses:
            return {}
        judgements = Judgement.objects.filter(run=self.run, response__in=responses, source__isnull=False)
        stored = dict(
            _stored_verdict(*columns) for columns in judgements.filter(checklist="").values_list(*_COLUMNS)
        )
        return stored | stored_criteria(judgements)

    def question(self, located: LocatedVerdict) -> tuple[Any, ...]:
        """The question that a verdict answers, as a key of `stored_verdicts`."""
        verdict = located.verdict
        answers = (located.other, located.response) if located.turned else (located.response, located.other)
        return (
            *answers,
            self.metrics.get(verdict.metric),
            self.sources.get((verdict.source_kind, verdict.source)),
            verdict.repeat,
            located.shown_first,
            *((verdict.criterion,) if verdict.criterion else ()),
        )

    def add(self, verdicts: Sequence[LocatedVerdict], definitions: Mapping[str, MetricDefinition]) -> None:
        """Append new verdicts. Call in a transaction that holds the run's row."""
        self._add_names(verdicts, definitions)
        about_criteria = [located for located in verdicts if located.verdict.criterion]
        verdicts = [located for located in verdicts if not located.verdict.criterion]
        if about_criteria:
            self._add_checklists(about_criteria)
        if verdicts:
            self._add_verdicts(verdicts)

    def _add_checklists(self, verdicts: Sequence[LocatedVerdict]) -> None:
        """Add verdicts on criteria to the judgements of their answers, which are created with the first of them."""
        keys = [self.question(located)[:-1] for located in verdicts]
        merged = merge_checklists(self.run, keys, verdicts)
        created = [
            self._judgement(located, self.run.total + place) | columns
            for place, (located, columns) in enumerate(merged.created)
        ]
        _insert(Judgement, created)
        for pk, columns in merged.changed:
            Judgement.objects.filter(pk=pk).update(**columns)
        ids = stored_ids(self.run, {located.response for located in verdicts if located.response})
        replies = [
            _reply(ids[key], located.verdict) | {"criterion": merged.numbers[located]}
            for key, located in zip(keys, verdicts, strict=True)
            if _has_reply(located.verdict)
        ]
        _insert(JudgeReply, replies)
        file_verdicts = [located.verdict for located in verdicts]
        Run.objects.filter(pk=self.run.pk).update(
            total=F("total") + len(created),
            **{counter: F(counter) + merged.states[state] for state, counter in COUNTERS.items()},
            prompt_tokens=F("prompt_tokens") + sum(verdict.prompt_tokens or 0 for verdict in file_verdicts),
            completion_tokens=F("completion_tokens")
            + sum(verdict.completion_tokens or 0 for verdict in file_verdicts),
            revision=F("revision") + 1,
        )
        self.run.refresh_from_db(fields=["total", "revision"])

    def _add_verdicts(self, verdicts: Sequence[LocatedVerdict]) -> None:
        start = self.run.total
        _insert(
            Judgement, [self._judgement(verdict, start + place) for place, verdict in enumerate(verdicts)]
        )
        replied = {
            start + place: located.verdict
            for place, located in enumerate(verdicts)
            if _has_reply(located.verdict)
        }
        if replied:
            ends = (start, start + len(verdicts) - 1)
            inserted = Judgement.objects.filter(run=self.run, position__range=ends).values_list(
                "position", "pk"
            )
            judgement_ids = dict(inserted)
            _insert(
                JudgeReply,
                [_reply(judgement_ids[position], verdict) for position, verdict in replied.items()],
            )
        self._count(verdicts)

    def _add_names(
        self, verdicts: Sequence[LocatedVerdict], definitions: Mapping[str, MetricDefinition]
    ) -> None:
        for name in dict.fromkeys(located.verdict.metric for located in verdicts):
            if name not in self.metrics:
                text = definitions[name].to_json()
                number = len(self.metrics)
                metric = RunMetric.objects.create(run=self.run, number=number, name=name, definition=text)
                self.metrics[name] = metric.pk
        for kind, name in dict.fromkeys(
            (located.verdict.source_kind, located.verdict.source) for located in verdicts
        ):
            if (kind, name) not in self.sources:
                source = VerdictSource.objects.create(run=self.run, kind=kind, name=name)
                self.sources[kind, name] = source.pk
        for located in verdicts:
            for candidate in (located.candidate, located.other_candidate):
                if candidate is not None and candidate not in self.candidates:
                    RunCandidate.objects.create(run=self.run, candidate_id=candidate)
                    self.candidates.add(candidate)

    def _judgement(self, located: LocatedVerdict, position: int) -> Columns:
        verdict = located.verdict
        outcome = Outcome(verdict.state, verdict.value)
        return {
            "run_id": self.run.pk,
            "position": position,
            "run_metric_id": self.metrics[verdict.metric],
            "row_id": located.row,
            "candidate_id": located.candidate,
            "response_id": located.response,
            "other_response_id": located.other,
            "source_id": self.sources[verdict.source_kind, verdict.source],
            "repeat": verdict.repeat,
            "shown_first": verdict.shown_first,
            "drawn_with": verdict.drawn_with,
            "state": verdict.state,
            "value": outcome.value_json,
            "score": outcome.score,
            "reason": verdict.reason,
            "detail": verdict.detail,
            "verdicts": _verdicts_json(verdict) if _has_reply(verdict) else "",
            "seconds": verdict.seconds,
            "finished_at": verdict.at,
        }

    def _count(self, verdicts: Sequence[LocatedVerdict]) -> None:
        states = Counter(located.verdict.state for located in verdicts)
        file_verdicts = [located.verdict for located in verdicts]
        Run.objects.filter(pk=self.run.pk).update(
            total=F("total") + len(verdicts),
            **{counter: F(counter) + states[state] for state, counter in COUNTERS.items()},
            prompt_tokens=F("prompt_tokens") + sum(verdict.prompt_tokens or 0 for verdict in file_verdicts),
            completion_tokens=F("completion_tokens")
            + sum(verdict.completion_tokens or 0 for verdict in file_verdicts),
            revision=F("revision") + 1,
        )
        self.run.refresh_from_db(fields=["total", "revision"])


def _stored_verdict(
    response: int,
    other: int | None,
    metric: int,
    source: int,
    repeat: int,
    first: int | None,
    *said: Any,
) -> tuple[tuple[Any, ...], str]:
    """The question of a stored verdict, as in `ImportedVerdicts.question`, and the verdict in canonical form."""
    if other is None or not is_turned(response, other):
        return (response, other, metric, source, repeat, first), _canonical(*said)
    return (other, response, metric, source, repeat, other_side(first)), _canonical(*said, of_turned=True)


def _canonical(state: str, value: str | None, detail: str, *, of_turned: bool = False) -> str:
    state, value = verdict_in_order(state, value, detail)
    if state != SCORED or not value:
        return str(state)
    stored = json_text.loads(value)
    return canonical(turned(stored) if of_turned else stored)


def settle_orders(run: Run) -> None:
    """Make both judgements of a pair on which a judge's two orders disagree unsettled; each keeps its verdict as
    `detail`. Call in a transaction that holds the run's row."""
    said: dict[tuple[Any, ...], tuple[int, str]] = {}
    disagreeing: dict[str, list[int]] = {}
    judgements = Judgement.objects.filter(
        run=run,
        source__kind=SourceKind.JUDGE,
        state=SCORED,
        shown_first__isnull=False,
        candidate__version__number__gt=0,  # no references
        other_response__candidate__version__number__gt=0,
    )
    values = {}
    for pk, *columns in judgements.values_list("pk", *_COLUMNS).iterator():
        question, value = _stored_comparison(*columns)
        values[pk] = columns[_COLUMNS.index("value")]
        other_pk, other_value = said.pop(question, (0, ""))
        if not other_pk:
            said[question] = pk, value
        elif settled_verdict(other_value, value) is None:
            for half in (other_pk, pk):
                disagreeing.setdefault(values[half], []).append(half)
    for stored, ids in disagreeing.items():
        for start in range(0, len(ids), _BATCH):
            Judgement.objects.filter(pk__in=ids[start : start + _BATCH]).update(
                state=UNSETTLED,
                value=None,
                score=None,
                reason=ORDERS_DISAGREE,
                detail=json_text.loads(stored),
            )
    count = sum(map(len, disagreeing.values()))
    Run.objects.filter(pk=run.pk).update(scored=F("scored") - count, unsettled=F("unsettled") + count)


def unsettled_of(run: Run) -> int:
    """How many comparisons of candidates are unsettled: imported as such, or a judge's two orders that disagree."""
    halves = Judgement.objects.filter(
        run=run, state=UNSETTLED, shown_first__isnull=False, detail__in=(*COMPARISON_CODES, BOTH_BAD)
    )
    return run.unsettled - halves.count() // 2


def _stored_comparison(*columns: Any) -> tuple[tuple[Any, ...], str]:
    """The question of a stored verdict, without which answer was shown first, and the verdict."""
    (*question, _first), said = _stored_verdict(*columns)
    return tuple(question), json_text.loads(said)


def _has_reply(verdict: FileVerdict) -> bool:
    tokens = verdict.prompt_tokens is not None or verdict.completion_tokens is not None
    return bool(verdict.reasoning) or tokens or verdict.cost is not None


def _verdicts_json(verdict: FileVerdict) -> str:
    """The `verdicts` JSON for an imported reply, in the same form as for judges called by a run."""
    return as_json([{"judge": 0, "repeat": 0, "value": verdict.value, "reason": verdict.reason}])


def _reply(judgement: int, verdict: FileVerdict) -> Columns:
    return {
        "judgement_id": judgement,
        "judge": 0,
        "request": "{}",
        "content": verdict.reasoning or None,
        "extra": "" if verdict.cost is None else as_json({"cost": verdict.cost}),
        "calls": "[]",
        "prompt_tokens": verdict.prompt_tokens,
        "completion_tokens": verdict.completion_tokens,
        "seconds": verdict.seconds or 0.0,
    }


def _insert(model: type[Model], rows: Sequence[Columns]) -> None:
    """Insert rows with plain SQL, in a third of the time of bulk_create. Missing columns get their defaults."""
    fields = [field for field in model._meta.concrete_fields if not (field.primary_key or field.generated)]
    usual = {field.attname: field.get_default() for field in fields}
    names = ", ".join(str(field.column) for field in fields)
    places = ", ".join(["%s"] * len(fields))
    statement = f"INSERT INTO {model._meta.db_table} ({names}) VALUES ({places})"  # noqa: S608 - names of our own
    with connection.cursor() as cursor:
        cursor.executemany(statement, [list((usual | row).values()) for row in rows])
