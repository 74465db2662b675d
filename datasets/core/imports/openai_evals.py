"""Runs of OpenAI's hosted evals: output items as JSON Lines, an array, or a page of the API."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from datasets.core.imports.chat import answer, chat, content_of
from datasets.core.imports.collector import Collector, fields, tool
from datasets.core.imports.columns import guess, looks_of
from datasets.core.imports.json_records import first_record, json_records, list_at, object_at, value_at
from datasets.core.imports.model import MendedRecord, Note, Place, SourceFile

JUDGE = "openai-evals"
_SUFFIX = re.compile(r"[-_ ]+[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$")
_NOTES = (
    Note("messages", "sample.input"),
    Note("model", "sample.model"),
    Note("answer", "sample.output"),
    Note("field", "datasource_item"),
    Note("verdict", "results"),
    Note("left_out", "usage, temperature, top_p, seed"),
)


def _is_item(record: Any) -> bool:
    return isinstance(record, dict) and {"datasource_item", "results"} <= record.keys()


def _items(record: Any) -> list[Any]:
    """The items of an API page, or the single item."""
    is_page = value_at(record, "object") == "list" and isinstance(record.get("data"), list)
    return record["data"] if is_page else [record]


def _holds_items(file: SourceFile) -> bool:
    return any(map(_is_item, _items(first_record(file))))


def _collect(files: Sequence[SourceFile], collector: Collector) -> None:
    for file in files:
        for place, item in collector.objects(_values(file, collector), _is_item):
            _item(collector, place, item)


def _values(file: SourceFile, collector: Collector) -> Iterator[tuple[Place, Any]]:
    """Each value of the file; of a page, its items."""
    outer = collector.key_use(("data",))
    for line, record in json_records(file, collector.options.limits):
        place, items = Place(file.name, line), _items(record)
        if items != [record]:
            outer.record(place, record)
        if isinstance(record, MendedRecord) and items != [record]:
            collector.leave_out(place, record.code, record.detail)
        for item in items:
            yield place, item


def _item(collector: Collector, place: Place, item: dict[str, Any]) -> None:
    data = _data(item["datasource_item"])
    columns = guess(list(data), looks_of([data]))
    sample = object_at(item, "sample")
    messages, dropped = chat(
        sample.get("input") or "\n\n".join(content_of(data[column]).text for column in columns.question)
    )
    collector.leave_out_parts(place, dropped)
    if not any(message["content"].strip() for message in messages):
        collector.leave_out(place, "no_question")
        return
    key = [data, messages]
    row = {"id": data.get("id", item.get("datasource_item_id")), "messages": messages, **fields(data, "item")}
    row = {name: value for name, value in row.items() if value is not None}
    reference = data.get(columns.reference or (columns.answer if sample.get("output") else ""))
    collector.row(key, row, place, reference)
    model, response = _answer(sample, data, columns.answer)
    if response is None:
        error = str(value_at(sample, "error", "message") or "")[:200]
        collector.leave_out(place, "no_answer", error or model)
        return
    for _earlier in list_at(sample, "output")[:-1]:
        collector.leave_out(place, "earlier_answer", model)
    number = collector.answer(key, model, response, place)
    for metric, verdict in _verdicts(collector, place, item["results"]):
        collector.verdict(key, {"model": model, "response": number, "metric": metric} | verdict, place)


def _data(datasource_item: Any) -> dict[str, Any]:
    if not isinstance(datasource_item, dict):
        return {"item": datasource_item}
    return datasource_item["item"] if isinstance(datasource_item.get("item"), dict) else datasource_item


def _answer(sample: dict[str, Any], data: dict[str, Any], column: str) -> tuple[str, dict[str, Any] | None]:
    """The model and its answer; uploaded answers are in the item's data."""
    model = str(sample.get("model") or data.get("model") or data.get("agent_name") or "model")
    if output := list_at(sample, "output"):
        return model, answer(output[-1])[0]
    message = next(
        (data[name] for name in ("sample.output_text", column) if data.get(name) is not None), None
    )
    return model, None if message is None else answer(message)[0]


def _verdicts(collector: Collector, place: Place, results: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    for result in results if isinstance(results, list) else [results]:
        if not isinstance(result, dict):
            collector.leave_out(place, "no_value")
            continue
        metric = _SUFFIX.sub("", str(result.get("name") or "score")) or "score"
        value = result.get("score") if result.get("score") is not None else result.get("passed")
        reasoning = result.get("reason") or _grader_text(result) or None
        verdict = {
            "judge": str(value_at(result, "sample", "model") or JUDGE),
            "reasoning": reasoning if isinstance(reasoning, str) else None,
        }
        if isinstance(value, bool | int | float):
            yield metric, verdict | {"value": float(value)}
        else:
            yield metric, verdict | {"value": None, "state": "no_score"}


def _grader_text(result: dict[str, Any]) -> str:
    """What the grader model wrote, if one was asked."""
    return "".join(
        content_of(value_at(last, "content")).text for last in list_at(result, "sample", "output")[-1:]
    )


SOURCE = tool("openai_evals", _holds_items, _collect, _NOTES)
