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
    value_said,
)
from datasets.core.imports.gathering import Gathering, gathered, records
from datasets.core.imports.json_records import first_record, first_records
from datasets.core.imports.model import Imported, Note, Options, Place, Source, SourceFile

_NOTES = (
    Note("field", "metadata"),
    Note("verdict", "responses"),
    Note("left_out", "vectors, status, scores of suggestions"),
)
_OF_FLAT = ("id", "status", "_server_id", "external_id", "inserted_at", "updated_at")
_OF_QUESTION = re.compile(r"\.(?:responses|suggestion)\.(?:users|status|score|agent)$")
Said = tuple[dict[str, Any], str, Any]
"""(who said it, name of the question, value)"""


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
            users = _listed(record.get(f"{name}.users"))
            status = _listed(record.get(f"{name}.status"))
            responses[name.removesuffix(".responses")] = [
                {"value": one, "user_id": user, "status": state}
                for one, user, state in zip_longest(_listed(value), users, status)
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
    suggestions = {}
    for name in questions:
        about = record[f"{name}-suggestion-metadata"]
        agent = about.get("agent") if isinstance(about, dict) else None
        suggestions[name] = {"value": record[f"{name}-suggestion"], "agent": agent}
    return {
        "id": record.get("external_id"),
        "fields": {name: value for name, value in record.items() if name not in apart},
        "metadata": _read(record.get("metadata")),
        "responses": {name: _by_record(record[name]) for name in questions},
        "suggestions": suggestions,
    }


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _by_record(value: Any) -> list[Any]:
    """A list of objects; also converts an object of lists, as written by the `datasets` library."""
    if isinstance(value, dict):
        lists = {name: _listed(held) for name, held in value.items()}
        return [dict(zip(lists, held, strict=True)) for held in zip_longest(*lists.values())]
    return _listed(value)


def _read(value: Any) -> Any:
    """Parse 1.x metadata, which is JSON in a string."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return None


def recognise(files: Sequence[SourceFile]) -> bool:
    return bool(files) and all(_is_any(first_record(file)) for file in files)


def read(files: Sequence[SourceFile], options: Options) -> Imported:
    first = [one for file in files for one in first_records(file) if _is_any(one)]
    tasks = [_nested(one)["fields"] for one in first]
    prefix = "fields" if any(map(_is_record, first)) else ""
    return gathered(files, options, _gather, [*task_notes(prefix, tasks), *_NOTES])


def _gather(files: Sequence[SourceFile], options: Options, found: Gathering) -> None:
    for file in files:
        columns = columns_of([_nested(one)["fields"] for one in first_records(file) if _is_any(one)])
        for place, given in records(file, options, found, _is_any):
            record = _nested(given)
            name = next((record[one] for one in ("id", "external_id") if record.get(one) is not None), None)
            metadata = record["metadata"] if isinstance(record.get("metadata"), dict) else {}
            task = take_task(found, place, name, record["fields"], columns, metadata)
            if task is not None:
                _verdicts(found, place, task, [*_responses(found, place, record), *_suggestions(record)])


def _responses(found: Gathering, place: Place, record: dict[str, Any]) -> Iterator[Said]:
    given = record["responses"]
    if isinstance(given, dict):
        for question, answers in given.items():
            for one in answers if isinstance(answers, list) else []:
                yield from _response(found, place, one, {question: one})
        return
    for one in given:
        values = one.get("values") if isinstance(one, dict) else None
        yield from _response(found, place, one, values if isinstance(values, dict) else {})


def _response(found: Gathering, place: Place, one: Any, values: dict[str, Any]) -> Iterator[Said]:
    """Yield the values of a submitted response; drafts and discarded ones are skipped."""
    status = one.get("status") if isinstance(one, dict) else "broken"
    if status not in (None, "submitted"):
        found.leave_out(place, "cancelled", str(status))
        return
    for question, value in values.items():
        said = value.get("value") if isinstance(value, dict) else value
        yield {"rater": str(one.get("user_id") or "annotator")}, question, said


def _suggestions(record: dict[str, Any]) -> Iterator[Said]:
    given = record.get("suggestions")
    if isinstance(given, list):
        given = {str(one.get("question_name")): one for one in given if isinstance(one, dict)}
    for question, one in given.items() if isinstance(given, dict) else ():
        if isinstance(one, dict) and one.get("value") is not None:
            yield {"judge": str(one.get("agent") or "suggestion")}, str(question), one["value"]


def _verdicts(found: Gathering, place: Place, task: Task, given: Sequence[Said]) -> None:
    words: dict[str, str] = {}
    for who, question, value in given:
        if is_comment(question, value):
            words[str(who)] = "\n".join(filter(None, [words.get(str(who)), value]))
    for who, question, value in given:
        if is_comment(question, value):
            continue
        found_about = list(_about(task, question, value))
        if not found_about:
            found.leave_out(place, "answer_not_known", question)
        for about, said in found_about:
            if said is None:
                found.leave_out(place, "no_value", question)
            else:
                record = who | about | {"metric": question, "value": said, "reasoning": words.get(str(who))}
                found.verdict(task.key, record, place)
    spoken = {str(who) for who, question, value in given if not is_comment(question, value)}
    for _who in words.keys() - spoken:
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
        yield {"model": about[0], "response": about[1]}, value_said(value)


def _ranks(value: Any, task: Task) -> dict[str, int]:
    """{option: rank} of a ranking; in 2.x it is a list of the options, best first."""
    if isinstance(value, list) and len(value) > 1 and {str(one) for one in value} == task.answers.keys():
        return {str(one): rank for rank, one in enumerate(value, 1)}
    if not isinstance(value, list) or not all(isinstance(one, dict) and "rank" in one for one in value):
        return {}
    ranks = {str(one.get("value")): one["rank"] for one in value}
    return ranks if all(isinstance(rank, int) for rank in ranks.values()) else {}


SOURCE = Source("argilla", recognise, read)
