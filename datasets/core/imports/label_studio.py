"""Label Studio JSON and JSON-MIN exports; annotations become human verdicts, predictions a judge's verdicts.

A JSON-MIN record is flat and contains one annotation: the task's data, its `id`, the results by their names in the
labelling configuration, then the annotator. It is read as a task with that one annotation. Chats of annotators with a
model are in their annotations: each becomes a row, its last reply the answer.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
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
from datasets.core.imports.model import Note, Place, SourceFile
from datasets.core.limits import Limits

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


def _records(files: Sequence[SourceFile], limits: Limits) -> Iterator[dict[str, Any]]:
    for file in files:
        yield from (record for _line, record in json_records(file, limits) if _is_either(record))


def _shape(files: Sequence[SourceFile], limits: Limits) -> tuple["_MinimalExport", dict[str, Look]]:
    """How to read JSON-MIN records of the files, and what the data of all their tasks hold."""
    minimal = _MinimalExport(_records(files, limits))
    tasks = (task["data"] for record in _records(files, limits) for task in _chats(minimal.task(record)))
    return minimal, looks_of_tasks(tasks)


def _notes(files: Sequence[SourceFile]) -> list[Note]:
    minimal, looks = _shape(files, Limits())
    prefix = "data" if any(_is_task(record) for file in files for record in first_records(file)) else ""
    return [*task_notes(prefix, looks), *(minimal.notes() if minimal.names else _NOTES)]


def _collect(files: Sequence[SourceFile], collector: Collector) -> None:
    for file in files:
        minimal, looks = _shape([file], collector.options.limits)
        columns = columns_of(looks)
        last: object = None
        times: Counter[str] = Counter()  # each person's annotations of a task, whose records are adjacent
        for place, raw in collector.records(file, _is_either):
            for record in _chats(minimal.task(raw)):
                name = record.get("id")
                task = import_task(collector, place, name, record["data"], columns, {})
                if task is None:
                    continue
                if name is None or name != last:
                    last, times = name, Counter()
                _annotations(collector, place, task, record, times)


def _chats(task: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the task itself, or one copy for each annotation that contains a chat."""
    annotations = task.get("annotations") or task.get("completions") or ()
    held = [(annotation, messages) for annotation in annotations if (messages := _chat_messages(annotation))]
    if not held:
        yield task
    for annotation, messages in held:
        replied = messages[-1].get("role") == "assistant"
        data = {**task["data"], "chat": messages[:-1] if replied else messages}
        if replied:
            data["response"] = messages[-1].get("content")
        results = [result for result in annotation["result"] if _chat_message(result) is None]
        yield task | {"data": data, "annotations": [annotation | {"result": results}]}


def _chat_messages(annotation: Any) -> list[dict[str, Any]]:
    messages = map(_chat_message, list_at(annotation, "result"))
    return [message for message in messages if message is not None]


def _chat_message(result: Any) -> dict[str, Any] | None:
    message = value_at(result, "value", "chatmessage")
    return message if isinstance(message, dict) else None


class _MinimalExport:
    """Determines from all records which JSON-MIN fields are results, and which of these are comments.

    Results are between `id` and `annotator`. If `id` comes first, as it does when the data also has one, only results
    other than plain text can be distinguished from data.
    """

    def __init__(self, records: Iterable[dict[str, Any]]) -> None:
        names: dict[str, None] = {}
        self._comments: set[str] = set()
        for record in records:
            if _is_minimal(record) and not _is_task(record):
                for name in _between(record):
                    names[name] = None
                    if is_comment(name, record[name]):
                        self._comments.add(name)
        self.names = tuple(names)

    def notes(self) -> list[Note]:
        notes = [Note("comment" if name in self._comments else "verdict", name) for name in self.names]
        return [*notes, Note("left_out", "annotation_id, updated_at")]

    def task(self, record: dict[str, Any]) -> dict[str, Any]:
        """Convert the record to a task, unless it is one."""
        if _is_task(record):
            return record
        names = dict.fromkeys([*self.names, *_between(record)])
        no_data = {"id", "agreement", "history", *_ABOUT, *names}
        results = [result for name in names if name in record for result in self._results(name, record[name])]
        annotation = {
            **{"completed_by": record["annotator"], "result": results},
            **{name: record[name] for name in ("created_at", "lead_time")},
        }
        return {
            "id": record["id"],
            "data": {name: record[name] for name in record if name not in no_data},
            "annotations": [annotation] if results else [],
        }

    def _results(self, name: str, values: Any) -> Iterator[dict[str, Any]]:
        for entry in values if isinstance(values, list) else [values]:
            value = entry
            if isinstance(entry, str):
                value = {"text": [entry]} if name in self._comments else {"choices": [entry]}
            elif not isinstance(entry, dict):
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
    return [name for name in names[1:end] if _is_result(record[name])]


def _is_result(value: Any) -> bool:
    results = value if isinstance(value, list) else [value]
    return bool(results) and all(
        isinstance(result, dict) and result.keys() & _KINDS.keys() for result in results
    )


def _annotations(
    collector: Collector, place: Place, task: Task, record: dict[str, Any], times: Counter[str]
) -> None:
    for annotation in record.get("annotations") or record.get("completions") or ():
        if not isinstance(annotation, dict) or annotation.get("was_cancelled"):
            collector.leave_out(place, "cancelled")
            continue
        rater = _rater(annotation)
        times[rater] += 1
        seconds = annotation.get("lead_time")
        about = {
            "rater": rater,
            "repeat": times[rater],
            "at": annotation.get("created_at"),
            "seconds": seconds if isinstance(seconds, int | float) and seconds >= 0 else None,
        }
        _results(collector, place, task, annotation, about)
    for prediction in list_at(record, "predictions"):
        if isinstance(prediction, dict):
            judge = {"judge": str(prediction.get("model_version") or "prediction")}
            _results(collector, place, task, prediction, judge)


def _rater(annotation: dict[str, Any]) -> str:
    """An annotator's address or name, or else the number."""
    by = annotation.get("completed_by", annotation.get("created_username"))
    if isinstance(by, dict):
        by = by.get("email") or by.get("username") or by.get("id")
    return by if isinstance(by, str) and by else f"annotator {by}" if by is not None else "annotator"


def _results(
    collector: Collector, place: Place, task: Task, annotation: dict[str, Any], about: dict[str, Any]
) -> None:
    """Import each result as a verdict; text results become the reasoning of all of them."""
    results = [result for result in list_at(annotation, "result") if isinstance(result, dict)]
    reasoning = "\n".join(_texts(results)) or None
    for result in results:
        kind, name = str(result.get("type")), str(result.get("from_name") or "score")
        if kind == "textarea":
            if len(results) == 1:
                collector.leave_out(place, "no_value", name)
            continue
        answers, value = _verdict(task, result)
        if not answers:
            collector.leave_out(place, "answer_not_known", name)
        elif value is None:
            collector.leave_out(place, "no_value", f"{name} ({kind})")
        else:
            verdict = {"metric": name, "value": value, "reasoning": reasoning}
            collector.verdict(task.key, about | answers | verdict, place)


def _texts(results: Sequence[dict[str, Any]]) -> Iterator[str]:
    for result in results:
        texts = value_at(result, "value", "text") if result.get("type") == "textarea" else None
        yield from [text for text in (texts if isinstance(texts, list) else [texts]) if isinstance(text, str)]


def _verdict(task: Task, result: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    """The answers that a result is about (empty if unknown) and its value."""
    value = object_at(result, "value")
    if result.get("type") == "pairwise":
        sides = list(task.answers.values())
        if len(sides) != 2:
            return {}, None
        (model, number), (other, second) = sides
        pair = {"model": model, "response": number, "other_model": other, "other_response": second}
        return pair | {"shown_first": 1}, _COMPARISONS.get(str(value.get("selected")))
    about = task.about(str(result.get("to_name")), str(result.get("from_name")))
    verdict = next((verdict_value(value[key]) for key in _VALUES if key in value), None)
    return ({"model": about[0], "response": about[1]} if about else {}), verdict


SOURCE = tool("label_studio", lambda file: _is_either(first_record(file)), _collect, _notes)
