"""Label Studio JSON and JSON-MIN exports; annotations become human verdicts, predictions a judge's verdicts.

A JSON-MIN record is flat and contains one annotation: the task's data, its `id`, the results by their names in the
labelling configuration, then the annotator. It is read as a task with that one annotation. Chats of annotators with a
model are in their annotations: each becomes a row, its last reply the answer.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
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

_COMPARISONS = {"left": "A>B", "right": "B>A"}
_VALUES = ("rating", "number", "choices")
_NOTES = (
    Note("verdict", "annotations"),
    Note("left_out", "project, drafts, meta"),
)
_ABOUT = ("annotator", "annotation_id", "created_at", "updated_at", "lead_time")
"""The fields that end every JSON-MIN record, optionally with `agreement`."""
_KINDS = {
    "rating": "rating",
    "number": "number",
    "choices": "choices",
    "text": "textarea",
    "selected": "pairwise",
}
"""Result type by the key of its value, as JSON-MIN does not name the type."""


def _is_task(record: Any) -> bool:
    return (
        isinstance(record, dict)
        and isinstance(record.get("data"), dict)
        and isinstance(record.get("annotations", record.get("completions")), list)
    )


def _is_minimal(record: Any) -> bool:
    return isinstance(record, dict) and "id" in record and record.keys() >= set(_ABOUT)


def _is_either(record: Any) -> bool:
    return _is_task(record) or _is_minimal(record)


def recognise(files: Sequence[SourceFile]) -> bool:
    return bool(files) and all(_is_either(first_record(file)) for file in files)


def read(files: Sequence[SourceFile], options: Options) -> Imported:
    first = [one for file in files for one in first_records(file) if _is_either(one)]
    minimal = _MinimalExport(first)
    tasks = [chat for one in first for chat in _chats(minimal.task(one))]
    notes = minimal.notes() if minimal.names else list(_NOTES)
    prefix = "data" if any(map(_is_task, first)) else ""
    return gathered(files, options, _gather, [*task_notes(prefix, [one["data"] for one in tasks]), *notes])


def _gather(files: Sequence[SourceFile], options: Options, found: Gathering) -> None:
    for file in files:
        first = [one for one in first_records(file) if _is_either(one)]
        minimal, times = _MinimalExport(first), _Times()
        columns = columns_of([chat["data"] for one in first for chat in _chats(minimal.task(one))])
        for place, given in records(file, options, found, _is_either):
            for record in _chats(minimal.task(given)):
                task = take_task(found, place, record.get("id"), record["data"], columns, {})
                if task is not None:
                    _annotations(found, place, task, record, times.of(record.get("id")))


def _chats(task: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the task itself, or one copy for each annotation that contains a chat."""
    annotations = task.get("annotations") or task.get("completions") or ()
    held = [(one, messages) for one in annotations if (messages := _chat_messages(one))]
    if not held:
        yield task
    for annotation, messages in held:
        replied = messages[-1].get("role") == "assistant"
        data = {**task["data"], "chat": messages[:-1] if replied else messages}
        if replied:
            data["response"] = messages[-1].get("content")
        results = [one for one in annotation["result"] if _chat_message(one) is None]
        yield {**task, "data": data, "annotations": [{**annotation, "result": results}]}


def _chat_messages(annotation: Any) -> list[dict[str, Any]]:
    results = annotation.get("result") if isinstance(annotation, dict) else None
    found = map(_chat_message, results if isinstance(results, list) else [])
    return [one for one in found if one is not None]


def _chat_message(result: Any) -> dict[str, Any] | None:
    value = result.get("value") if isinstance(result, dict) else None
    message = value.get("chatmessage") if isinstance(value, dict) else None
    return message if isinstance(message, dict) else None


class _Times:
    """Counts each person's annotations of a task; records of the same task are adjacent."""

    def __init__(self) -> None:
        self._task: object = None
        self._counts: Counter[str] = Counter()

    def of(self, task: object) -> Counter[str]:
        if task is None or task != self._task:
            self._task, self._counts = task, Counter()
        return self._counts


class _MinimalExport:
    """Determines from the first records which JSON-MIN fields are results, and which of these are comments.

    Results are between `id` and `annotator`. If `id` comes first, as it does when the data also has one, only results
    other than plain text can be distinguished from data.
    """

    def __init__(self, first: Sequence[dict[str, Any]]) -> None:
        records = [one for one in first if _is_minimal(one) and not _is_task(one)]
        held = {
            name: [one[name] for one in records if name in one] for one in records for name in _between(one)
        }
        self.names = tuple(held)
        self._comments = {
            name for name, values in held.items() if any(is_comment(name, value) for value in values)
        }

    def notes(self) -> list[Note]:
        said = [Note("comment" if name in self._comments else "verdict", name) for name in self.names]
        return [*said, Note("left_out", "annotation_id, updated_at")]

    def task(self, record: dict[str, Any]) -> dict[str, Any]:
        """Convert the record to a task, unless it is one."""
        if _is_task(record):
            return record
        said = dict.fromkeys([*self.names, *_between(record)])
        beside = {"id", "agreement", "history", *_ABOUT}
        results = [one for name in said if name in record for one in self._results(name, record[name])]
        annotation = {
            **{"completed_by": record["annotator"], "result": results},
            **{name: record[name] for name in ("created_at", "lead_time")},
        }
        return {
            "id": record["id"],
            "data": {
                name: value for name, value in record.items() if name not in said and name not in beside
            },
            "annotations": [annotation] if results else [],
        }

    def _results(self, name: str, said: Any) -> Iterator[dict[str, Any]]:
        for one in said if isinstance(said, list) else [said]:
            value = one
            if isinstance(one, str):
                value = {"text": [one]} if name in self._comments else {"choices": [one]}
            elif not isinstance(one, dict):
                value = {}
            kind = next((_KINDS[key] for key in value if key in _KINDS and not _is_span(value)), "region")
            yield {"from_name": name, "to_name": "", "type": kind, "value": value}


def _is_span(value: dict[str, Any]) -> bool:
    """Whether the value marks a span of text; the text of a span is not a comment."""
    return "start" in value or "end" in value


def _between(record: dict[str, Any]) -> Sequence[str]:
    names = list(record)
    start, end = names.index("id"), names.index("annotator")
    if start:
        return names[start + 1 : end]
    return [name for name in names[1:end] if _is_said(record[name])]


def _is_said(value: Any) -> bool:
    given = value if isinstance(value, list) else [value]
    return bool(given) and all(isinstance(one, dict) and one.keys() & _KINDS.keys() for one in given)


def _annotations(
    found: Gathering, place: Place, task: Task, record: dict[str, Any], times: Counter[str]
) -> None:
    for one in record.get("annotations") or record.get("completions") or ():
        if not isinstance(one, dict) or one.get("was_cancelled"):
            found.leave_out(place, "cancelled")
            continue
        rater = _rater(one)
        times[rater] += 1
        about = {
            "rater": rater,
            "repeat": times[rater],
            "at": one.get("created_at"),
            "seconds": _seconds(one),
        }
        _results(found, place, task, one.get("result"), about)
    predictions = record.get("predictions")
    for one in predictions if isinstance(predictions, list) else []:
        if isinstance(one, dict):
            judge = {"judge": str(one.get("model_version") or "prediction")}
            _results(found, place, task, one.get("result"), judge)


def _rater(annotation: dict[str, Any]) -> str:
    """An annotator's address or name, or else the number."""
    by = annotation.get("completed_by", annotation.get("created_username"))
    if isinstance(by, dict):
        by = by.get("email") or by.get("username") or by.get("id")
    return by if isinstance(by, str) and by else f"annotator {by}" if by is not None else "annotator"


def _seconds(annotation: dict[str, Any]) -> float | None:
    given = annotation.get("lead_time")
    return given if isinstance(given, int | float) and given >= 0 else None


def _results(found: Gathering, place: Place, task: Task, results: Any, about: dict[str, Any]) -> None:
    """Import each result as a verdict; text results become the reasoning of all of them."""
    given = [one for one in results if isinstance(one, dict)] if isinstance(results, list) else []
    words = "\n".join(_texts(given)) or None
    for one in given:
        kind, name = str(one.get("type")), str(one.get("from_name") or "score")
        if kind == "textarea":
            if len(given) == 1:
                found.leave_out(place, "no_value", name)
            continue
        answers, value = _said(task, one)
        if not answers:
            found.leave_out(place, "answer_not_known", name)
        elif value is None:
            found.leave_out(place, "no_value", f"{name} ({kind})")
        else:
            said = about | answers | {"metric": name, "value": value, "reasoning": words}
            found.verdict(task.key, said, place)


def _texts(results: Sequence[dict[str, Any]]) -> Iterator[str]:
    for one in results:
        value = one.get("value")
        texts = value.get("text") if one.get("type") == "textarea" and isinstance(value, dict) else None
        yield from [text for text in (texts if isinstance(texts, list) else [texts]) if isinstance(text, str)]


def _said(task: Task, result: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    """The answers that a result is about (empty if unknown) and its value."""
    value = result["value"] if isinstance(result.get("value"), dict) else {}
    if result.get("type") == "pairwise":
        sides = list(task.answers.values())
        if len(sides) != 2:
            return {}, None
        (model, number), (other, second) = sides
        pair = {"model": model, "response": number, "other_model": other, "other_response": second}
        return pair | {"shown_first": 1}, _COMPARISONS.get(str(value.get("selected")))
    about = task.about(str(result.get("to_name")), str(result.get("from_name")))
    said = next((value_said(value[one]) for one in _VALUES if one in value), None)
    return ({"model": about[0], "response": about[1]} if about else {}), said


SOURCE = Source("label_studio", recognise, read)
