"""HealthBench as released: conversations with rubrics, or (its meta-evaluation) physicians' verdicts on criteria."""

from collections.abc import Sequence
from itertools import islice
from typing import Any

from datasets.core.imports.chat import chat
from datasets.core.imports.collector import Collector, fields, tool
from datasets.core.imports.json_records import first_record, json_records
from datasets.core.imports.model import Note, Place, SourceFile
from datasets.core.rubric import RUBRIC

METRIC = "checklist"
MODEL = "completion"
"""The labels name neither a metric nor a model."""


def _is_example(record: Any) -> bool:
    return (
        isinstance(record, dict)
        and {"prompt", "prompt_id", "rubrics"} <= record.keys()
        and isinstance(record["prompt"], list)
        and isinstance(record["rubrics"], list | None)
    )


def _is_label(record: Any) -> bool:
    needed = {"prompt", "prompt_id", "completion", "completion_id", "rubric", "binary_labels"}
    return (
        isinstance(record, dict)
        and needed <= record.keys()
        and isinstance(record["rubric"], str)
        and isinstance(record["binary_labels"], list)
    )


def _is_either(record: Any) -> bool:
    return _is_example(record) or _is_label(record)


def _notes(files: Sequence[SourceFile]) -> list[Note]:
    notes = [Note("messages", "prompt"), Note("field", "prompt_id → id")]
    if any(_is_example(first_record(file)) for file in files):
        notes += [Note("field", "rubrics → rubric"), Note("field", "example_tags")]
        notes += [Note("reference", "ideal_completions_data.ideal_completion")]
    if any(_is_label(first_record(file)) for file in files):
        notes += [Note("answer", "completion"), Note("field", "rubric"), Note("field", "category")]
        notes += [Note("verdict", "binary_labels")]
    return notes


def _collect(files: Sequence[SourceFile], collector: Collector) -> None:
    for file in files:
        criteria = _criteria_of_prompts(file, collector)
        for place, record in collector.records(file, _is_either):
            if _is_example(record):
                ideal = record.get("ideal_completions_data")
                about = {"example_tags": record.get("example_tags")}
                about |= ideal if isinstance(ideal, dict) else {}
                reference = about.pop("ideal_completion", None)
                _add_row(collector, place, record, record["rubrics"], about, reference)
            else:
                _add_labels(collector, place, record, criteria.get(str(record["prompt_id"]), []))


def _criteria_of_prompts(file: SourceFile, collector: Collector) -> dict[str, list[str]]:
    """The criteria that occur for each prompt in a file of labels, which may be anywhere in the file."""
    criteria: dict[str, dict[str, None]] = {}
    for _line, record in islice(json_records(file, collector.options.limits), collector.options.first):
        if _is_label(record) and record["rubric"].strip():
            criteria.setdefault(str(record["prompt_id"]), {})[record["rubric"]] = None
    return {prompt: list(texts) for prompt, texts in criteria.items()}


def _add_row(
    collector: Collector,
    place: Place,
    record: dict[str, Any],
    rubric: list[Any] | None,
    about: dict[str, Any],
    reference: Any = None,
) -> bool:
    messages, dropped = chat(record["prompt"])
    if not any(message["content"].strip() for message in messages):
        collector.leave_out(place, "no_question")
        return False
    collector.leave_out_parts(place, dropped)
    custom = {name: value for name, value in about.items() if value is not None}
    row = {"messages": messages, "id": record["prompt_id"], **fields(custom, "example")}
    row |= {} if rubric is None else {RUBRIC: rubric}
    collector.row(record["prompt_id"], row, place, reference)
    return True


def _add_labels(collector: Collector, place: Place, record: dict[str, Any], criteria: Sequence[str]) -> None:
    rubric = [{"criterion": text} for text in criteria]
    if not _add_row(collector, place, record, rubric, {"category": record.get("category")}):
        return
    prompt, physicians = record["prompt_id"], record.get("anonymized_physician_ids")
    response = {"content": str(record["completion"]), "completion_id": record["completion_id"]}
    number = collector.same_answer(prompt, MODEL, response, place)
    if record["rubric"] not in criteria:
        collector.leave_out(place, "no_value", "rubric")
        return
    verdict = {"model": MODEL, "response": number, "metric": METRIC}
    verdict |= {"criterion": str(criteria.index(record["rubric"]) + 1)}
    names = physicians if isinstance(physicians, list) else []
    for at, label in enumerate(record["binary_labels"]):
        if isinstance(label, bool | int) and label in (0, 1):
            rater = str(names[at]) if at < len(names) else f"physician {at + 1}"
            collector.verdict(prompt, verdict | {"value": bool(label), "rater": rater}, place)
        else:
            collector.leave_out(place, "no_value", "binary_labels")


SOURCE = tool("healthbench", lambda file: _is_either(first_record(file)), _collect, _notes)
