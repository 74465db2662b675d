"""Argilla: JSON records; responses become human verdicts, suggestions a judge's verdicts.

2.x and 1.x exports nest the parts of a record. Data sets published from either are flat: 2.x has `quality.responses`,
`quality.responses.users`, … next to the fields, 1.x has `quality`, `quality-suggestion`, `quality-suggestion-metadata`.
"""

import json
import re
from collections.abc import Iterator, Sequence
from itertools import combinations, zip_longest
from typing import Any

from datasets.core.imports.annotated_tasks import (
    Task,
    columns_of,
    import_task,
    is_comment,
    looks_of_tasks,
    task_notes,
    verdict_value,
)
from datasets.core.imports.collector import Collector, tool
from datasets.core.imports.columns import Look
from datasets.core.imports.json_records import (
    first_record,
    first_records,
    json_records,
    list_at,
    object_at,
    value_at,
)
from datasets.core.imports.key_use import held_as
from datasets.core.imports.model import Note, Place, SourceFile
from datasets.core.limits import Limits

_NOTES = (
    Note("field", "metadata"),
    Note("verdict", "responses"),
    Note("left_out", "vectors, status, scores of suggestions"),
)
_OF_FLAT = ("id", "status", "_server_id", "external_id", "inserted_at", "updated_at")
_OF_QUESTION = re.compile(r"\.(?:responses|suggestion)\.(?:users|status|score|agent)$")
Reply = tuple[dict[str, Any], str, Any]
"""(its author, name of the question, value)"""


def _is_record(record: Any) -> bool:
    return (
        isinstance(record, dict)
        and isinstance(record.get("fields"), dict)
        and isinstance(record.get("responses"), dict | list)
    )


def _is_any(record: Any) -> bool:
    return _is_record(record) or (isinstance(record, dict) and bool(_is_flat(record) or _older(record)))


def _is_flat(record: dict[str, Any]) -> bool:
    return "_server_id" in record and "id" in record and "fields" not in record


def _older(record: dict[str, Any]) -> list[str]:
    """The questions of a flat 1.x record."""
    end = "-suggestion-metadata"
    named = (name.removesuffix(end) for name in record if name.endswith(end))
    return [name for name in named if name in record and f"{name}-suggestion" in record]


def _nested(record: dict[str, Any]) -> dict[str, Any]:
    """Nest the parts of a record. A flat one does not separate fields from metadata; all are treated as fields."""
    if _is_record(record):
        return record
    return _nested_older(record, _older(record)) if _older(record) else _nested_flat(record)


def _nested_flat(record: dict[str, Any]) -> dict[str, Any]:
    fields, responses, suggestions = {}, {}, {}
    for name in record:
        if name.endswith(".responses"):
            users, states = list_at(record, f"{name}.users"), list_at(record, f"{name}.status")
            responses[name.removesuffix(".responses")] = [
                {"value": value, "user_id": user, "status": state}
                for value, user, state in zip_longest(list_at(record, name), users, states)
            ]
        elif name.endswith(".suggestion"):
            agent = record.get(f"{name}.agent")
            suggestions[name.removesuffix(".suggestion")] = {"value": record[name], "agent": agent}
        elif name not in _OF_FLAT and not _OF_QUESTION.search(name):
            fields[name] = record[name]
    return {"id": record["id"], "fields": fields, "responses": responses, "suggestions": suggestions}


def _nested_older(record: dict[str, Any], questions: list[str]) -> dict[str, Any]:
    apart = {"external_id", "metadata", "vectors"}
    apart |= {f"{name}{end}" for name in questions for end in ("", "-suggestion", "-suggestion-metadata")}
    suggestions = {
        name: {
            "value": record[f"{name}-suggestion"],
            "agent": value_at(record, f"{name}-suggestion-metadata", "agent"),
        }
        for name in questions
    }
    return {
        "id": record.get("external_id"),
        "fields": {name: record[name] for name in record if name not in apart},
        "metadata": _read(record.get("metadata")),
        "responses": {name: _by_record(record[name]) for name in questions},
        "suggestions": suggestions,
    }


def _by_record(value: Any) -> list[Any]:
    """A list of objects; also converts an object of lists, as written by the `datasets` library."""
    if isinstance(value, dict):
        lists = [held if isinstance(held, list) else [] for held in dict.values(value)]
        return [value | dict(zip(value, items, strict=True)) for items in zip_longest(*lists)]
    return value if isinstance(value, list) else []


def _read(value: Any) -> Any:
    """Parse 1.x metadata, which is JSON in a string."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return None


def _looks(files: Sequence[SourceFile], limits: Limits) -> dict[str, Look]:
    """What the fields of all records hold."""
    records = (record for file in files for _line, record in json_records(file, limits))
    return looks_of_tasks(_nested(record)["fields"] for record in records if _is_any(record))


def _notes(files: Sequence[SourceFile]) -> list[Note]:
    prefix = "fields" if any(_is_record(record) for file in files for record in first_records(file)) else ""
    return [*task_notes(prefix, _looks(files, Limits())), *_NOTES]


def _collect(files: Sequence[SourceFile], collector: Collector) -> None:
    for file in files:
        columns = columns_of(_looks([file], collector.options.limits))
        for place, raw in collector.records(file, _is_any):
            record = _nested(raw)
            name = next(
                (record[field] for field in ("id", "external_id") if record.get(field) is not None), None
            )
            task = import_task(
                collector, place, name, record["fields"], columns, object_at(record, "metadata")
            )
            if task is not None:
                _verdicts(
                    collector, place, task, [*_responses(collector, place, record), *_suggestions(record)]
                )


def _responses(collector: Collector, place: Place, record: dict[str, Any]) -> Iterator[Reply]:
    responses = record["responses"]
    if isinstance(responses, dict):
        for question, replies in held_as(list, responses):
            for reply in replies:
                yield from _response(collector, place, reply, {question: reply})
        return
    for reply in responses:
        yield from _response(collector, place, reply, object_at(reply, "values"))


def _response(collector: Collector, place: Place, reply: Any, values: dict[str, Any]) -> Iterator[Reply]:
    """Yield the values of a submitted response; drafts and discarded ones are skipped."""
    status = reply.get("status") if isinstance(reply, dict) else "broken"
    if status not in (None, "submitted"):
        collector.leave_out(place, "cancelled", str(status))
        return
    for question, value in values.items():
        value = value.get("value") if isinstance(value, dict) else value
        yield {"rater": str(reply.get("user_id") or "annotator")}, question, value


def _suggestions(record: dict[str, Any]) -> Iterator[Reply]:
    suggestions = record.get("suggestions")
    if isinstance(suggestions, list):
        suggestions = {
            str(suggestion.get("question_name")): suggestion
            for suggestion in suggestions
            if isinstance(suggestion, dict)
        }
    for question, suggestion in held_as(dict, suggestions) if isinstance(suggestions, dict) else ():
        if suggestion.get("value") is not None:
            yield {"judge": str(suggestion.get("agent") or "suggestion")}, question, suggestion["value"]


def _verdicts(collector: Collector, place: Place, task: Task, replies: Sequence[Reply]) -> None:
    comments: dict[str, str] = {}
    for author, question, value in replies:
        if is_comment(question, value):
            comments[str(author)] = "\n".join(filter(None, [comments.get(str(author)), value]))
    judged = [reply for reply in replies if not is_comment(reply[1], reply[2])]
    for author, question, answer in judged:
        verdicts = list(_about(task, question, answer))
        if not verdicts:
            collector.leave_out(place, "answer_not_known", question)
        for about, value in verdicts:
            if value is None:
                collector.leave_out(place, "no_value", question)
            else:
                verdict = {"metric": question, "value": value, "reasoning": comments.get(str(author))}
                collector.verdict(task.key, author | about | verdict, place)
    for _author in comments.keys() - {str(author) for author, _question, _value in judged}:
        collector.leave_out(place, "no_value", "comment")


def _about(task: Task, question: str, value: Any) -> Iterator[tuple[dict[str, Any], Any]]:
    """Yield (answers concerned, value); a ranking yields a comparison of each pair of its answers."""
    ranks = _ranks(value, task)
    sides = [(answer, ranks[field]) for field, answer in task.answers.items() if field in ranks]
    for ((model, number), first), ((other, other_number), second) in combinations(sides, 2):
        pair = {"model": model, "response": number, "other_model": other, "other_response": other_number}
        yield pair, "A=B" if first == second else "A>B" if first < second else "B>A"
    about = task.about(question)
    if about and not ranks:
        yield {"model": about[0], "response": about[1]}, verdict_value(value)


def _ranks(value: Any, task: Task) -> dict[str, int]:
    """{option: rank} of a ranking; in 2.x it is a list of the options, best first."""
    if (
        isinstance(value, list)
        and len(value) > 1
        and {str(option) for option in value} == task.answers.keys()
    ):
        return {str(option): rank for rank, option in enumerate(value, 1)}
    if not isinstance(value, list) or not all(
        isinstance(option, dict) and "rank" in option for option in value
    ):
        return {}
    ranks = {str(option.get("value")): option["rank"] for option in value}
    return ranks if all(isinstance(rank, int) for rank in ranks.values()) else {}


SOURCE = tool("argilla", lambda file: _is_any(first_record(file)), _collect, _notes)
