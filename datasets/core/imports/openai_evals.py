"""Runs of OpenAI's hosted evals: output items as JSON Lines, an array, or a page of the API."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from datasets.core.imports.chat import answer, chat, said
from datasets.core.imports.columns import guess
from datasets.core.imports.gathering import Gathering, fields, gathered, records
from datasets.core.imports.json_records import first_record
from datasets.core.imports.model import Imported, Note, Options, Place, Source, SourceFile

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
    page = (
        isinstance(record, dict) and record.get("object") == "list" and isinstance(record.get("data"), list)
    )
    return list(record["data"]) if page else [record]


def recognise(files: Sequence[SourceFile]) -> bool:
    firsts = [first_record(file) for file in files]
    return bool(firsts) and all(any(map(_is_item, _items(one))) for one in firsts)


def read(files: Sequence[SourceFile], options: Options) -> Imported:
    return gathered(files, options, _gather, _NOTES)


def _gather(files: Sequence[SourceFile], options: Options, found: Gathering) -> None:
    for file in files:
        for place, record in records(file, options, found):
            for item in _items(record):
                if _is_item(item):
                    _item(found, place, item)
                else:
                    found.leave_out(place, "not_a_record")


def _item(found: Gathering, place: Place, item: dict[str, Any]) -> None:
    data = _data(item["datasource_item"])
    columns = guess(list(data), [data])
    sample = item["sample"] if isinstance(item.get("sample"), dict) else {}
    messages, dropped = chat(
        sample.get("input") or "\n\n".join(said(data[one]).text for one in columns.question)
    )
    for kind in dropped:
        found.leave_out(place, "part_dropped", kind)
    if not any(one["content"].strip() for one in messages):
        found.leave_out(place, "no_question")
        return
    key = [data, messages]
    row = {"id": data.get("id", item.get("datasource_item_id")), "messages": messages, **fields(data, "item")}
    row = {name: value for name, value in row.items() if value is not None}
    reference = data.get(columns.reference or (columns.answer if sample.get("output") else ""))
    found.row(key, row | ({} if reference in (None, "") else {"ref_answer": reference}), place)
    model, given = _answer(sample, data, columns.answer)
    if given is None:
        found.leave_out(place, "no_answer", _error(sample) or model)
        return
    number = found.answer(key, model, given, place)
    for metric, verdict in _verdicts(found, place, item["results"]):
        found.verdict(key, {"model": model, "response": number, "metric": metric} | verdict, place)


def _data(given: Any) -> dict[str, Any]:
    if isinstance(given, dict) and isinstance(given.get("item"), dict):
        return dict(given["item"])
    return dict(given) if isinstance(given, dict) else {"item": given}


def _answer(sample: dict[str, Any], data: dict[str, Any], column: str) -> tuple[str, dict[str, Any] | None]:
    """The model and its answer; uploaded answers are in the item's data."""
    output = sample.get("output")
    model = str(sample.get("model") or data.get("model") or data.get("agent_name") or "model")
    if isinstance(output, list) and output:
        return model, answer(output[-1])[0]
    given = next((data[name] for name in ("sample.output_text", column) if data.get(name) is not None), None)
    return model, None if given is None else answer(given)[0]


def _error(sample: dict[str, Any]) -> str:
    error = sample.get("error")
    return str(error.get("message") or "")[:200] if isinstance(error, dict) else ""


def _verdicts(found: Gathering, place: Place, results: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    for result in results if isinstance(results, list) else [results]:
        if not isinstance(result, dict):
            found.leave_out(place, "no_value")
            continue
        metric = _SUFFIX.sub("", str(result.get("name") or "score")) or "score"
        value = result.get("score") if result.get("score") is not None else result.get("passed")
        grader = result["sample"] if isinstance(result.get("sample"), dict) else {}
        output = grader.get("output")
        words = result.get("reason") or _words(output)
        verdict = {
            "judge": str(grader.get("model") or JUDGE),
            "reasoning": words if isinstance(words, str) else None,
        }
        if isinstance(value, bool | int | float):
            yield metric, verdict | {"value": float(value)}
        else:
            yield metric, verdict | {"value": None, "state": "no_score"}


def _words(output: Any) -> str | None:
    """The grader model's text."""
    last = output[-1] if isinstance(output, list) and output else None
    return said(last.get("content")).text if isinstance(last, dict) else None


SOURCE = Source("openai_evals", recognise, read)
