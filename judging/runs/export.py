"""Every judgement with what led to it, as records; as JSON Lines (spec: commands, judgements.jsonl) and as tables.

Read in batches in the order of rows: memory holds the ids and one batch, however long the run.
"""

from __future__ import annotations

import csv
import os
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any, cast

from django.db.models import Count, Max

from datasets.core.formats import Format
from datasets.core.variables import reference_in, response_data, row_data
from datasets.models import Candidate
from evalsite.cells import MARK, cell
from judging.core.metric_definition import MetricDefinition
from judging.core.rules.program import Reason
from judging.rule_messages import reason_sentence as rule_sentence
from judging.runs import strict
from judging.runs.counts import overridden_states
from judging.runs.filters import ANYTHING, Filters, matching
from judging.runs.generation_told import generation_of, generation_seen, tries_at
from judging.runs.models import INFER, PEOPLE, Generation, Judgement, JudgeReply, Override, Reading, Run
from judging.runs.overrides import in_force_of

BATCH = 100
RECORD_BYTES = 2 * 2**20  # spec: commands


@dataclass(frozen=True, slots=True)
class Told:
    """A judgement with the replies that belong to it, and its metric."""

    judgement: Judgement
    replies: list[JudgeReply]
    metric: MetricDefinition
    generation: Generation | None = None  # the try at its answer, where a run asked for it
    override: Override | None = None  # the one in force
    people: dict[str, Any] | None = None  # its PEOPLE_COLUMNS, of people's judgements


PEOPLE_COLUMNS = ("other_model", "other_response", "rater", "shown_first", "drawn_with", "adjudicated")
people_columns: list[Callable[[Collection[Judgement]], dict[int, dict[str, Any]]]] = []
"""Gives {judgement: its PEOPLE_COLUMNS} of people's judgements; judging.people adds it (apps.py)."""


def told(run: Run, filters: Filters = ANYTHING, *, texts: bool = False) -> Iterator[Told]:
    """The judgements of `run` that are meant, in the order of rows, candidates, responses, metrics, attempts.

    `texts`: with the texts of rows and responses, which are left where they are otherwise.
    """
    metrics = {one.pk: one for one in run.metrics.all()}
    definitions: dict[tuple[int, int | None], MetricDefinition] = {
        (pk, None): MetricDefinition.from_json(one.definition) for pk, one in metrics.items()
    }
    for reading in Reading.objects.filter(run_metric__run=run):
        definitions[reading.run_metric_id, reading.pk] = MetricDefinition.from_json(reading.definition)
    candidates = Candidate.objects.in_bulk(list(run.run_candidates.values_list("candidate", flat=True)))
    order = ("row__line", "candidate", "response__number", "run_metric__number", "attempt", "position")
    ids = array("q", matching(run, filters).order_by(*order).values_list("pk", flat=True).iterator())
    parts = Judgement.objects.select_related("row", "response")
    deferred = ["row__raw"] if run.kind == INFER else ["row__raw", "response__raw"]
    parts = parts if texts else parts.defer(*deferred)
    for start in range(0, len(ids), BATCH):
        batch = list(ids[start : start + BATCH])
        found = parts.in_bulk(batch)
        replies = _replies([one.asked_by_id or pk for pk, one in found.items()])
        tries = tries_at(found.values()) if run.kind == INFER else {}
        overrides = in_force_of(found.values())
        for judgement in found.values():
            judgement.run_metric = metrics[judgement.run_metric_id]
        people = people_columns[0](found.values()) if run.kind == PEOPLE else {}
        for pk in batch:
            judgement = found[pk]
            judgement.candidate = candidates[judgement.candidate_id]
            asked = replies.get(judgement.asked_by_id or pk, [])
            metric = definitions[judgement.run_metric_id, judgement.reading_id]
            generation = generation_of(judgement, tries.get(judgement.response_id, []))
            yield Told(judgement, asked, metric, generation, overrides.get(pk), people.get(pk))


def _replies(judgements: list[int]) -> dict[int, list[JudgeReply]]:
    """By the attempt that asked: a judgement that was only scored again has none of its own."""
    found: dict[int, list[JudgeReply]] = {}
    order = ("judgement", "judge", "repeat", "swapped")
    for reply in JudgeReply.objects.filter(judgement__in=judgements).order_by(*order):
        found.setdefault(reply.judgement_id, []).append(reply)
    return found


def records(run: Run, filters: Filters = ANYTHING) -> Iterator[dict[str, Any]]:
    """Each judgement that is meant as the record that the specification describes."""
    return (record(one) for one in told(run, filters))


def record(one: Told) -> dict[str, Any]:
    """All keys, whatever happened; `value` is None unless the state is scored. State, value and reason are those in
    force; where a reviewer has overridden them, `override` holds the attempt's own."""
    judgement, judges = one.judgement, one.metric.judges
    verdicts = verdicts_by_place(judgement.verdicts)
    return {
        "line": judgement.row.line,
        "model": judgement.candidate.name,
        "response": judgement.response.number,
        "metric": judgement.run_metric.name,
        "attempt": judgement.attempt,
        "state": judgement.state_in_force,
        "value": _json(judgement.value_in_force or ""),
        "reason": None if judgement.overridden else _why(judgement),
        "preprocess": script_seen(judgement.preprocess),
        "judges": [
            _judge(reply, judges[reply.judge].name, verdicts.get(place_of(reply), {}).get("value"))
            for reply in one.replies
        ],
        "postprocess": _without_changes(script_seen(judgement.postprocess)),
        "rules": [rule_seen(line) for line in rule_lines(judgement.rules)],
        "flags": judgement.flags.split(",") if judgement.flags else [],
        **({"generation": generation_seen(one.generation, judgement)} if one.generation else {}),
        **({"override": _override(one.override, judgement)} if one.override else {}),
        **(one.people or {}),
    }


def _override(override: Override, judgement: Judgement) -> dict[str, Any]:
    return {
        "own": {
            "state": judgement.state,
            "value": _json(judgement.value or ""),
            "reason": _why(judgement),
        },
        "reason": override.reason,
        "by": override.by.username,
        "at": override.at.isoformat(),
    }


def _why(judgement: Judgement) -> str | None:
    return why(judgement.reason, judgement.detail)


Place = tuple[int, int, str]  # judge, repeat, order: first, swapped, or what both come to


def place_of(reply: JudgeReply) -> Place:
    return reply.judge, reply.repeat, "swapped" if reply.swapped else "first"


def verdicts_by_place(text: str) -> dict[Place, dict[str, Any]]:
    """A judgement's `verdicts`, read. Older ones tell no order: it was the first."""
    return {(one["judge"], one["repeat"], one.get("order", "first")): one for one in _json(text) or []}


def why(code: str, detail: str) -> str | None:
    """A code with its words; None for none."""
    return f"{code}: {detail}" if code and detail else code or None


def _json(text: str) -> Any:
    return strict.loads(text) if text else None


def script_seen(text: str) -> dict[str, Any]:
    """What a script did, from a judgement's `preprocess` or `postprocess`; of one that did not run, nothing."""
    kept = _json(text) or {}
    failure = kept.get("failure") or {"code": "", "detail": ""}
    return {
        "result": kept.get("result"),
        "changed": {"data": {}, "response": {}, **(kept.get("changed") or {})},
        "printed": kept.get("printed") or "",
        "error": why(failure["code"], failure["detail"]),
    }


def rule_lines(text: str) -> list[dict[str, Any]]:
    """The lines in a judgement's `rules`; none where no rule program scored, or the answer lacks its format."""
    lines: list[dict[str, Any]] = (_json(text) or {}).get("lines", [])
    return lines


def rule_seen(line: dict[str, Any]) -> dict[str, Any]:
    """A rule line as the record tells it; the reason in the reader's language, a judge's in its own words."""
    reason = rule_sentence(Reason(line["reason"], line["params"]))
    return {"field": line["field"], "function": line["function"], "score": line["score"], "reason": reason}


def _without_changes(seen: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in seen.items() if name != "changed"}


def _judge(reply: JudgeReply, name: str, verdict: Any) -> dict[str, Any]:
    tries = _json(reply.calls) or []
    return {
        "name": name,
        "swapped": reply.swapped,
        "request": _json(reply.request),
        "reply": reply_seen(reply),
        "verdict": verdict,
        "calls": len(tries),
        "tries": tries,
        "seconds": reply.seconds,
        "tokens": {"prompt_tokens": reply.prompt_tokens, "completion_tokens": reply.completion_tokens},
        "error": why(reply.error, reply.detail),
    }


def reply_seen(reply: JudgeReply) -> dict[str, Any] | None:
    """What came back: content, reasoning_content and whatever else; None if nothing did."""
    extra = _json(reply.extra) or {}
    if reply.content is None and reply.reasoning is None and not extra:
        return None
    return {"content": reply.content, "reasoning_content": reply.reasoning, **extra}


def jsonl_lines(run: Run, filters: Filters = ANYTHING) -> Iterator[bytes]:
    """The records as lines of strict JSON in UTF-8, none over RECORD_BYTES."""
    return (strict.dumps(one, RECORD_BYTES - 1) + b"\n" for one in records(run, filters))


def write_jsonl(run: Run, path: Path, filters: Filters = ANYTHING) -> None:
    """Write all records to a file that is there whole or not at all."""
    write_lines(jsonl_lines(run, filters), path)


def write_lines(lines: Iterable[bytes], path: Path) -> None:
    """Write to a draft beside `path` that then takes its place."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with draft.open("wb") as file:
            file.writelines(lines)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


_OF_OVERRIDE = ("own_state", "own_value", "own_reason", "overridden_by", "override_reason")
"""Columns of a run in which a reviewer has overridden something."""


def table_columns(run: Run) -> list[str]:
    """The columns of a table; as many judges as the metric with the most asks for."""
    metrics = [MetricDefinition.from_json(one.definition) for one in run.metrics.all()]
    judges = max((metric.calls for metric in metrics), default=0)
    if any(metric.calls_over(2) > metric.calls for metric in metrics):  # as many as an answer had fields
        counts = JudgeReply.objects.filter(judgement__run=run).values("judgement").annotate(n=Count("pk"))
        judges = max(judges, counts.aggregate(most=Max("n"))["most"] or 0)
    fixed = ["line", "model", "response", "metric", "attempt", "state", "value", "reason", "flags", "seconds"]
    more = [
        *(_OF_OVERRIDE if overridden_states(run) else ()),
        *(PEOPLE_COLUMNS if run.kind == PEOPLE else ()),
    ]
    asked = [
        f"{name}_{n}" for n in range(1, judges + 1) for name in ("judge", "verdict", "reply", "reasoning")
    ]
    return [*fixed, *more, "question", "answer", "reference", *asked]


def table_rows(run: Run, filters: Filters = ANYTHING) -> Iterator[list[str | int | float | None]]:
    """The same judgements as rows of `table_columns`, safe to open in a spreadsheet."""
    for values in table_values(run, filters):
        yield [cell(value) for value in values]


def table_values(run: Run, filters: Filters = ANYTHING) -> Iterator[list[Any]]:
    """The same judgements as rows of `table_columns`, as they are."""
    columns = table_columns(run)
    width, overridden = len(columns), _OF_OVERRIDE[0] in columns
    for one in told(run, filters, texts=True):
        values = list(_row(one, run.version.format, overridden=overridden))[:width]
        yield values + [None] * (width - len(values))


def _row(one: Told, form: str, *, overridden: bool) -> Iterator[Any]:
    kept, judgement = record(one), one.judgement
    yield from (
        kept[name] for name in ("line", "model", "response", "metric", "attempt", "state", "value", "reason")
    )
    yield from (judgement.flags, judgement.seconds)
    if overridden:
        override = kept.get("override") or {}
        yield from (override.get("own", {}).get(name) for name in ("state", "value", "reason"))
        yield from (override.get("by"), override.get("reason"))
    if one.people is not None:
        yield from (one.people[name] for name in PEOPLE_COLUMNS)
    data = data_of(judgement.row.raw, form)
    yield from (data["question"], response_data(judgement.response.raw)["content"], reference_in(data))
    for judge in kept["judges"]:
        reply = judge["reply"] or {}
        yield from (judge["name"], judge["verdict"], reply.get("content"), reply.get("reasoning_content"))


def data_of(raw: str, form: str) -> dict[str, Any]:
    """A row as templates see it; `form` is its version's format."""
    return row_data(raw, cast(Format, form))


def csv_lines(run: Run, filters: Filters = ANYTHING) -> Iterator[bytes]:
    """The table as CSV for spreadsheets."""
    buffer = StringIO()
    writer = csv.writer(buffer)
    yield MARK.encode()
    writer.writerow(table_columns(run))
    for row in table_rows(run, filters):
        writer.writerow(row)
        if buffer.tell() > 2**16:
            yield _taken(buffer)
    yield _taken(buffer)


def _taken(buffer: StringIO) -> bytes:
    text = buffer.getvalue()
    buffer.seek(0)
    buffer.truncate()
    return text.encode()
