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
    is_comment,
    take_task,
    task_notes,
    verdict_value,
)
from datasets.core.imports.collector import Collector, tool
from datasets.core.imports.json_records import first_record, first_records, list_at, object_at, value_at
from datasets.core.imports.model import Note, Place, SourceFile

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
    for name, value in record.items():
        if name.endswith(".responses"):
            users, states = list_at(record, f"{name}.users"), list_at(record, f"{name}.status")
            responses[name.removesuffix(".responses")] = [
                {"value": one, "user_id": user, "status": state}
                for one, user, state in zip_longest(list_at(record, name), users, states)
            ]
        elif name.endswith(".suggestion"):
            agent = record.get(f"{name}.agent")
            suggestions[name.removesuffix(".suggestion")] = {"value": value, "agent": agent}
        elif name not in _OF_FLAT and not _OF_QUESTION.search(name):
            fields[name] = value
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
        "fields": {name: value for name, value in record.items() if name not in apart},
        "metadata": _read(record.get("metadata")),
        "responses": {name: _by_record(record[name]) for name in questions},
        "suggestions": suggestions,
    }


def _by_record(value: Any) -> list[Any]:
    """A list of objects; also converts an object of lists, as written by the `datasets` library."""
    if isinstance(value, dict):
        lists = [list_at(value, name) for name in value]
        return [dict(zip(value, items, strict=True)) for items in zip_longest(*lists)]
    return value if isinstance(value, list) else []


def _read(value: Any) -> Any:
    """Parse 1.x metadata, which is JSON in a string."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return None


def _notes(files: Sequence[SourceFile]) -> list[Note]:
    first = [one for file in files for one in first_records(file) if _is_any(one)]
    tasks = [_nested(one)["fields"] for one in first]
    return [*task_notes("fields" if any(map(_is_record, first)) else "", tasks), *_NOTES]


def _collect(files: Sequence[SourceFile], found: Collector) -> None:
    for file in files:
        columns = columns_of([_nested(one)["fields"] for one in first_records(file) if _is_any(one)])
        for place, given in found.records(file, _is_any):
            record = _nested(given)
            name = next((record[one] for one in ("id", "external_id") if record.get(one) is not None), None)
            task = take_task(found, place, name, record["fields"], columns, object_at(record, "metadata"))
            if task is not None:
                _verdicts(found, place, task, [*_responses(found, place, record), *_suggestions(record)])


def _responses(found: Collector, place: Place, record: dict[str, Any]) -> Iterator[Reply]:
    given = record["responses"]
    if isinstance(given, dict):
        for question in given:
            for one in list_at(given, question):
                yield from _response(found, place, one, {question: one})
        return
    for one in given:
        yield from _response(found, place, one, object_at(one, "values"))


def _response(found: Collector, place: Place, one: Any, values: dict[str, Any]) -> Iterator[Reply]:
    """Yield the values of a submitted response; drafts and discarded ones are skipped."""
    status = one.get("status") if isinstance(one, dict) else "broken"
    if status not in (None, "submitted"):
        found.leave_out(place, "cancelled", str(status))
        return
    for question, value in values.items():
        value = value.get("value") if isinstance(value, dict) else value
        yield {"rater": str(one.get("user_id") or "annotator")}, question, value


def _suggestions(record: dict[str, Any]) -> Iterator[Reply]:
    given = record.get("suggestions")
    if isinstance(given, list):
        given = {str(one.get("question_name")): one for one in given if isinstance(one, dict)}
    for question, one in given.items() if isinstance(given, dict) else ():
        if isinstance(one, dict) and one.get("value") is not None:
            yield {"judge": str(one.get("agent") or "suggestion")}, str(question), one["value"]


def _verdicts(found: Collector, place: Place, task: Task, given: Sequence[Reply]) -> None:
    comments: dict[str, str] = {}
    for author, question, value in given:
        if is_comment(question, value):
            comments[str(author)] = "\n".join(filter(None, [comments.get(str(author)), value]))
    judged = [one for one in given if not is_comment(one[1], one[2])]
    for author, question, answer in judged:
        verdicts = list(_about(task, question, answer))
        if not verdicts:
            found.leave_out(place, "answer_not_known", question)
        for about, value in verdicts:
            if value is None:
                found.leave_out(place, "no_value", question)
            else:
                verdict = {"metric": question, "value": value, "reasoning": comments.get(str(author))}
                found.verdict(task.key, author | about | verdict, place)
    for _author in comments.keys() - {str(author) for author, _question, _value in judged}:
        found.leave_out(place, "no_value", "comment")


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
    if isinstance(value, list) and len(value) > 1 and {str(one) for one in value} == task.answers.keys():
        return {str(one): rank for rank, one in enumerate(value, 1)}
    if not isinstance(value, list) or not all(isinstance(one, dict) and "rank" in one for one in value):
        return {}
    ranks = {str(one.get("value")): one["rank"] for one in value}
    return ranks if all(isinstance(rank, int) for rank in ranks.values()) else {}


SOURCE = tool("argilla", lambda file: _is_any(first_record(file)), _collect, _notes)
