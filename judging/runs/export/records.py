"""Judgements with what led to them, one record each (spec: commands, judgements.jsonl).

Read in batches in the order of rows: memory holds the ids and one batch, however long the run.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from datasets.core.formats import Format
from datasets.core.variables import row_data
from datasets.models import Candidate
from datasets.versions.references import NAME as REFERENCE_NAME
from judging.core.metric_definition import MetricDefinition
from judging.core.people.criteria import Criterion
from judging.core.results_file.verdicts import REFERENCE
from judging.core.rules.program import Reason
from judging.rule_messages import reason_sentence as rule_sentence
from judging.runs import json_text
from judging.runs.filters import ANYTHING, Filters, matching
from judging.runs.models import (
    INFER,
    PEOPLE,
    Generation,
    Judgement,
    JudgeReply,
    Override,
    Reading,
    Run,
    RunMetric,
    SourceKind,
)
from judging.runs.overrides import in_force_of
from judging.runs.teamwork.marks import exclusions_among, exclusions_of
from judging.runs.teamwork.models import Mark
from judging.runs.worker.generation import ANSWER_FAILED

BATCH = 100

PEOPLE_COLUMNS = ("other_model", "other_response", "rater", "shown_first", "drawn_with", "adjudicated")
IMPORTED_COLUMNS = (
    "other_model", "other_response", "judge", "rater", "repeat", "shown_first", "drawn_with",
)  # fmt: skip
people_columns: list[Callable[[Collection[Judgement]], dict[int, dict[str, Any]]]] = []
"""Gives {judgement: its PEOPLE_COLUMNS} of people's judgements; judging.people adds it (apps.py)."""


@dataclass(frozen=True, slots=True)
class LoadedJudgement:
    """A judgement with the replies that belong to it, and its metric. `author`: its PEOPLE_COLUMNS or
    IMPORTED_COLUMNS."""

    judgement: Judgement
    replies: list[JudgeReply]
    metric: MetricDefinition
    generation: Generation | None = None  # the try at its answer, where a run asked for it
    override: Override | None = None  # the one in force
    author: dict[str, Any] | None = None
    exclusion: Mark | None = None  # where figures leave it out

    @property
    def compares(self) -> bool:
        """Does its value say which of two answers is better?"""
        if self.judgement.run.by_people:
            return Criterion.from_json(self.judgement.run_metric.definition).compares
        return self.judgement.other_response_id is not None and self.metric.values in ("comparison", "")


def author_columns(run: Run) -> tuple[str, ...]:
    """What records of this run say about who judged, and about second answers."""
    if run.kind == PEOPLE:
        return PEOPLE_COLUMNS
    return IMPORTED_COLUMNS if run.imported else ()


def load(run: Run, filters: Filters = ANYTHING, *, texts: bool = False) -> Iterator[LoadedJudgement]:
    """The judgements of `run` that are meant, in the order of rows, candidates, responses, metrics, attempts.

    `texts`: with the texts of rows and responses, which are left where they are otherwise.
    """
    loader = _JudgementLoader(run, texts=texts)
    order = ("row__line", "candidate", "response__number", "run_metric__number", "attempt", "position")
    ids = array("q", matching(run, filters).order_by(*order).values_list("pk", flat=True).iterator())
    for start in range(0, len(ids), BATCH):
        yield from loader.batch(list(ids[start : start + BATCH]))


class _JudgementLoader:
    """Loads judgements of one run, some at a time."""

    def __init__(self, run: Run, *, texts: bool) -> None:
        self.run = run
        self.metrics = {one.pk: one for one in run.metrics.all()}
        self.definitions = _definitions(self.metrics.values())
        self.excludes = exclusions_of(run).exists()
        taking_part = run.run_candidates.values_list("candidate", flat=True)
        self.candidates = Candidate.objects.select_related("version").in_bulk(list(taking_part))
        parts = Judgement.objects.select_related("row", "response")
        if not run.by_workers:
            parts = parts.select_related("source", "rating", "other_response__candidate__version")
        if not texts:
            parts = parts.defer("row__raw", *(() if run.kind == INFER else ("response__raw",)))
        self.parts = parts

    def batch(self, ids: Sequence[int]) -> Iterator[LoadedJudgement]:
        found = self.parts.in_bulk(ids)
        replies = _replies([one.asked_by_id or pk for pk, one in found.items()])
        tries = generation_tries(found.values()) if self.run.kind == INFER else {}
        overrides = in_force_of(found.values())
        for judgement in found.values():
            judgement.run_metric = self.metrics[judgement.run_metric_id]
        authors = self._authors(found)
        excluded = exclusions_among(found.values()) if self.excludes else {}
        for pk in ids:
            judgement = found[pk]
            judgement.run, judgement.candidate = self.run, self.candidates[judgement.candidate_id]
            yield LoadedJudgement(
                judgement,
                replies.get(judgement.asked_by_id or pk, []),
                self.definitions[judgement.run_metric_id, judgement.reading_id],
                generation_of(judgement, tries.get(judgement.response_id, [])),
                overrides.get(pk),
                authors.get(pk),
                excluded.get((judgement.run_metric_id, judgement.response_id)),
            )

    def _authors(self, found: dict[int, Judgement]) -> dict[int, dict[str, Any]]:
        if self.run.kind == PEOPLE:
            return people_columns[0](found.values())
        return {pk: _imported_columns(one) for pk, one in found.items()} if self.run.imported else {}


def _definitions(metrics: Collection[RunMetric]) -> dict[tuple[int, int | None], MetricDefinition]:
    """{(metric, reading): by what it judges or reads}."""
    found = {(one.pk, None): MetricDefinition.from_json(one.definition) for one in metrics}
    readings = Reading.objects.filter(run_metric__in=[one.pk for one in metrics])
    return found | {
        (one.run_metric_id, one.pk): MetricDefinition.from_json(one.definition) for one in readings
    }


def _imported_columns(judgement: Judgement) -> dict[str, Any]:
    other, source = judgement.other_response, judgement.source
    by_rater = source is not None and source.kind in (SourceKind.RATER, SourceKind.ADJUDICATOR)
    name = source.name if source else None
    return {
        "other_model": model_name(other.candidate) if other else None,
        "other_response": other.number if other else None,
        "judge": None if by_rater else name,
        "rater": name if by_rater else None,
        "repeat": judgement.repeat,
        "shown_first": judgement.shown_first,
        "drawn_with": judgement.drawn_with,
    }


def model_name(candidate: Candidate) -> str:
    """A candidate's name as results files have it: references are kept with the hidden version."""
    is_reference = candidate.name == REFERENCE_NAME and candidate.version.number == 0
    return REFERENCE if is_reference else candidate.name


def _replies(judgements: list[int]) -> dict[int, list[JudgeReply]]:
    """By the attempt that asked: a judgement that was only scored again has none of its own."""
    found: dict[int, list[JudgeReply]] = {}
    order = ("judgement", "judge", "repeat", "swapped")
    for reply in JudgeReply.objects.filter(judgement__in=judgements).order_by(*order):
        found.setdefault(reply.judgement_id, []).append(reply)
    return found


def generation_tries(judgements: Iterable[Judgement]) -> dict[int, list[Generation]]:
    """By response, every try at its answer in order."""
    found: dict[int, list[Generation]] = {}
    responses = {one.response_id for one in judgements}
    for one in Generation.objects.filter(response__in=responses).order_by("response", "attempt"):
        found.setdefault(one.response_id, []).append(one)
    return found


def generation_of(judgement: Judgement, tries: Sequence[Generation]) -> Generation | None:
    """The try that gave the answer, or the one without whose answer the judgement failed."""
    if judgement.finished_at is None:
        return None
    failed = judgement.reason == ANSWER_FAILED
    state = Generation.State.FAILED if failed else Generation.State.ANSWERED
    of_state = [one for one in tries if one.state == state]
    before = [one for one in of_state if not failed or one.finished_at <= judgement.finished_at]
    found = before or of_state
    return found[-1] if found else None


def records(run: Run, filters: Filters = ANYTHING) -> Iterator[dict[str, Any]]:
    """Each judgement that is meant as the record that the specification describes."""
    return (record(one) for one in load(run, filters))


def record(one: LoadedJudgement) -> dict[str, Any]:
    """All keys, whatever happened; `value` is None unless the state is scored. State, value and reason are those in
    force; where a reviewer has overridden them, `override` holds the attempt's own."""
    judgement = one.judgement
    return {
        "line": judgement.row.line,
        "model": model_name(judgement.candidate) if judgement.source else judgement.candidate.name,
        "response": judgement.response.number,
        "metric": judgement.run_metric.name,
        "attempt": judgement.attempt,
        "state": judgement.state_in_force,
        "value": json_text.loads(judgement.value_in_force),
        "reason": None if judgement.overridden else why(judgement.reason, judgement.detail),
        "preprocess": script_record(judgement.preprocess),
        "judges": _judges(one),
        "postprocess": _without_changes(script_record(judgement.postprocess)),
        "rules": [rule_record(line) for line in rule_lines(judgement.rules)],
        "flags": judgement.flags.split(",") if judgement.flags else [],
        **({"generation": generation_record(one.generation, judgement)} if one.generation else {}),
        **({"override": _override_record(one.override, judgement)} if one.override else {}),
        **({"excluded": _exclusion_record(one.exclusion)} if one.exclusion else {}),
        **(one.author or {}),
    }


def _judges(one: LoadedJudgement) -> list[dict[str, Any]]:
    verdicts = verdicts_by_place(one.judgement.verdicts)
    return [
        _judge(reply, judge_name(one.judgement, reply, one.metric), verdicts.get(place_of(reply), {}))
        for reply in one.replies
    ]


def judge_name(judgement: Judgement, reply: JudgeReply, metric: MetricDefinition) -> str:
    """Who gave a reply: the metric's judge model, or who is named with an imported verdict."""
    return judgement.source.name if judgement.source else metric.judges[reply.judge].name


def _override_record(override: Override, judgement: Judgement) -> dict[str, Any]:
    return {
        "own": {
            "state": judgement.state,
            "value": json_text.loads(judgement.value),
            "reason": why(judgement.reason, judgement.detail),
        },
        "reason": override.reason,
        "by": override.by.username,
        "at": override.at.isoformat(),
    }


def _exclusion_record(mark: Mark) -> dict[str, Any]:
    action = mark.action
    return {"reason": action.reason, "by": action.by.username, "at": action.at.isoformat()}


Place = tuple[int, int, str]  # judge, repeat, order: first, swapped, or what both come to


def place_of(reply: JudgeReply) -> Place:
    return reply.judge, reply.repeat, "swapped" if reply.swapped else "first"


def verdicts_by_place(text: str) -> dict[Place, dict[str, Any]]:
    """A judgement's `verdicts`, read. Older ones tell no order: it was the first."""
    return {
        (one["judge"], one["repeat"], one.get("order", "first")): one for one in json_text.loads(text) or []
    }


def why(code: str, detail: str) -> str | None:
    """A code with its words; None for none."""
    return f"{code}: {detail}" if code and detail else code or None


def script_record(text: str) -> dict[str, Any]:
    """What a script did, from a judgement's `preprocess` or `postprocess`; of one that did not run, nothing."""
    kept = json_text.loads(text) or {}
    failure = kept.get("failure") or {"code": "", "detail": ""}
    return {
        "result": kept.get("result"),
        "changed": {"data": {}, "response": {}, **(kept.get("changed") or {})},
        "printed": kept.get("printed") or "",
        "error": why(failure["code"], failure["detail"]),
    }


def rule_lines(text: str) -> list[dict[str, Any]]:
    """The lines in a judgement's `rules`; none where no rule program scored, or the answer lacks its format."""
    lines: list[dict[str, Any]] = (json_text.loads(text) or {}).get("lines", [])
    return lines


def rule_record(line: dict[str, Any]) -> dict[str, Any]:
    """A rule line's record; the reason in the reader's language, a judge's in its own words."""
    reason = rule_sentence(Reason(line["reason"], line["params"]))
    return {"field": line["field"], "function": line["function"], "score": line["score"], "reason": reason}


def _without_changes(script: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in script.items() if name != "changed"}


def _judge(reply: JudgeReply, name: str, verdict: dict[str, Any]) -> dict[str, Any]:
    tries = json_text.loads(reply.calls) or []
    return {
        "name": name,
        "swapped": reply.swapped,
        "request": json_text.loads(reply.request),
        "reply": reply_record(reply),
        "verdict": verdict.get("value"),
        "calls": len(tries),
        "tries": tries,
        "seconds": reply.seconds,
        "tokens": {"prompt_tokens": reply.prompt_tokens, "completion_tokens": reply.completion_tokens},
        "error": why(reply.error, reply.detail),
    }


def reply_record(reply: JudgeReply) -> dict[str, Any] | None:
    """What came back: content, reasoning_content and whatever else; None if nothing did."""
    extra = json_text.loads(reply.extra) or {}
    if reply.content is None and reply.reasoning is None and not extra:
        return None
    return {"content": reply.content, "reasoning_content": reply.reasoning, **extra}


def generation_record(one: Generation, judgement: Judgement) -> dict[str, Any]:
    """How the answer came about; `calls` counts the HTTP tries."""
    tries = json_text.loads(one.calls)
    raw = judgement.response.raw
    return {
        "attempt": one.attempt,
        "state": one.state,
        "request": json_text.loads(one.request),
        "answer": json_text.loads(raw) if raw and one.state == Generation.State.ANSWERED else None,
        "calls": len(tries),
        "tries": tries,
        "seconds": one.seconds,
        "first_token_seconds": one.first_token_seconds,
        "tokens": {"prompt_tokens": one.prompt_tokens, "completion_tokens": one.completion_tokens},
        "finish_reason": one.finish_reason or None,
        "model": one.model or None,
        "error": why(one.error, one.detail),
    }


def data_of(raw: str, form: str) -> dict[str, Any]:
    """A row as templates see it; `form` is its version's format."""
    return row_data(raw, cast(Format, form))
