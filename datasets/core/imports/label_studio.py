"""Label Studio: the JSON export of a project, its annotations as people's verdicts and predictions as a judge's."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from datasets.core.imports.annotated_tasks import Task, columns_of, take_task, task_notes, value_said
from datasets.core.imports.gathering import Gathering, gathered, records
from datasets.core.imports.json_records import first_record, first_records
from datasets.core.imports.model import Imported, Note, Options, Place, Source, SourceFile

_COMPARISONS = {"left": "A>B", "right": "B>A"}
_VALUES = ("rating", "number", "choices")
_NOTES = (
    Note("verdict", "annotations"),
    Note("left_out", "project, drafts, meta"),
)


def _is_task(record: Any) -> bool:
    return (
        isinstance(record, dict)
        and isinstance(record.get("data"), dict)
        and isinstance(record.get("annotations", record.get("completions")), list)
    )


def recognise(files: Sequence[SourceFile]) -> bool:
    return bool(files) and all(_is_task(first_record(file)) for file in files)


def read(files: Sequence[SourceFile], options: Options) -> Imported:
    tasks = [one["data"] for file in files for one in first_records(file) if _is_task(one)]
    return gathered(files, options, _gather, [*task_notes("data", tasks), *_NOTES])


def _gather(files: Sequence[SourceFile], options: Options, found: Gathering) -> None:
    for file in files:
        columns = columns_of([one["data"] for one in first_records(file) if _is_task(one)])
        for place, record in records(file, options, found, _is_task):
            task = take_task(found, place, record.get("id"), record["data"], columns, {})
            if task is not None:
                _annotations(found, place, task, record)


def _annotations(found: Gathering, place: Place, task: Task, record: dict[str, Any]) -> None:
    times: Counter[str] = Counter()
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
    """An annotator's address or name, else the number."""
    by = annotation.get("completed_by", annotation.get("created_username"))
    if isinstance(by, dict):
        by = by.get("email") or by.get("username") or by.get("id")
    return by if isinstance(by, str) and by else f"annotator {by}" if by is not None else "annotator"


def _seconds(annotation: dict[str, Any]) -> float | None:
    given = annotation.get("lead_time")
    return given if isinstance(given, int | float) and given >= 0 else None


def _results(found: Gathering, place: Place, task: Task, results: Any, about: dict[str, Any]) -> None:
    """Each result as a verdict; texts are what was said with all of them."""
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
    """Which answers a result is about, none where that is not known, and its value."""
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
