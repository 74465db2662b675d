"""lm-evaluation-harness: `samples_*.jsonl`, with the run's `results_*.json` for the model's name."""

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import msgspec

from datasets.core.imports.chat import chat
from datasets.core.imports.collector import Collector, fields, tool
from datasets.core.imports.json_records import beginning, decoded, document, first_record
from datasets.core.imports.key_use import count_unread
from datasets.core.imports.model import Note, NotUsable, Place, SourceFile

JUDGE = "lm-evaluation-harness"
UNNAMED = "model"
"""The model name if no results file contains it."""
_KNOWN = ("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics")
_HASHES = ("doc_hash", "prompt_hash", "target_hash")
_STAMP = re.compile(r"\d{4}-\d{2}-\d{2}T[\d:.-]*\d")
_NOTES = (
    Note("messages", "arguments"),
    Note("reference", "target"),
    Note("answer", "resps"),
    Note("field", "doc"),
    Note("verdict", "metrics"),
    Note("left_out", "gen_kwargs, resps (likelihoods), doc_hash, prompt_hash, target_hash"),
)
_OBJECT = msgspec.json.Decoder(dict[str, Any])


def _is_sample(record: Any) -> bool:
    return isinstance(record, dict) and {"doc_id", "doc", "resps"} <= record.keys()


def _is_samples(file: SourceFile) -> bool:
    return _is_sample(first_record(file))


def _is_results(file: SourceFile) -> bool:
    start = beginning(file)
    return start.startswith(b"{") and b'"results"' in start and b'"doc_id"' not in start


def _collect(files: Sequence[SourceFile], collector: Collector) -> None:
    samples = [file for file in files if _is_samples(file)]
    names = _model_names([file for file in files if file not in samples], collector)
    stamps = sorted({_stamp(file) for file in samples})
    for file in samples:
        unnamed = UNNAMED if len(stamps) < 2 else f"{UNNAMED} {stamps.index(_stamp(file)) + 1}"
        named = next(iter(names.values())) if len(names) == 1 else names.get(_stamp(file))
        for place, record in collector.records(file, _is_sample):
            _sample(collector, place, record, named or unnamed)


def _stamp(file: SourceFile) -> str:
    """The timestamp in a file name, shared by the samples and results of a run."""
    match = _STAMP.search(file.name)
    return match[0] if match else ""


def _model_names(results: Sequence[SourceFile], collector: Collector) -> dict[str, str]:
    """{timestamp of the run: model name}."""
    names, limits = {}, collector.options.limits
    for file in results:
        with suppress(NotUsable):
            run = collector.key_use().record(Place(file.name), decoded(document(file, limits), _OBJECT, file))
            name = run.get("model_name") or run.get("model_source")
            if isinstance(name, str) and name.strip():
                names[_stamp(file)] = name
    return names


def _sample(collector: Collector, place: Place, record: dict[str, Any], model: str) -> None:
    requests = _requests(record.get("arguments"))
    messages, dropped = chat(requests[0][0]) if requests else ([], [])
    if not messages:
        collector.leave_out(place, "no_question")
        return
    collector.leave_out_parts(place, dropped)
    key = [record["doc_id"], messages]
    doc = record["doc"] if isinstance(record["doc"], dict) else {"doc": record["doc"]}
    row = {"id": doc.get("id", record["doc_id"]), "messages": messages, **fields(doc, "doc")}
    collector.row(key, row | {"doc_id": record["doc_id"]}, place, reference=record.get("target"))
    texts = _answers(record["resps"], requests)
    if not texts:
        collector.leave_out(place, "no_answer", model)
        return
    for number, text in enumerate(texts, 1):
        collector.answer(key, model, {"content": text}, place, number)
    _verdicts(collector, place, record, key, model)


def _requests(arguments: Any) -> list[tuple[Any, str]]:
    """(context, continuation) of each request; the continuation is '' for generation tasks."""
    listed = arguments
    if isinstance(arguments, dict):
        listed = [arguments[name] for name in arguments if isinstance(dict.get(arguments, name), list | dict)]
    requests = []
    for request in listed if isinstance(listed, list) else []:
        parts = [request[name] for name in list(request)[:2]] if isinstance(request, dict) else request
        if isinstance(parts, list) and parts:
            context = parts[0][0] if isinstance(parts[0], list) and len(parts[0]) == 1 else parts[0]
            follows = parts[1] if len(parts) > 1 and isinstance(parts[1], str) else ""
            requests.append((context, follows))
            count_unread(parts[1:])  # the parameters of generation tasks
    return requests


def _answers(resps: Any, requests: list[tuple[Any, str]]) -> list[str]:
    """The generated texts, or for multiple choice the most likely choice."""
    if not isinstance(resps, list) or not resps or not isinstance(resps[0], list) or not resps[0]:
        return []
    if all(isinstance(text, str) for text in resps[0]):
        return [str(text) for text in resps[0]]
    likely = [_likelihood(response) for response in resps]
    if len(likely) != len(requests) or None in likely:
        return []
    best = max(range(len(likely)), key=lambda index: likely[index] or 0.0)
    return [requests[best][1].strip()] if requests[best][1].strip() else []


def _likelihood(response: Any) -> float | None:
    """The number in `[[-1.5, false]]`, whose parts may be strings."""
    try:
        return float(_innermost(response))
    except (TypeError, ValueError):
        return None


def _verdicts(collector: Collector, place: Place, record: dict[str, Any], key: object, model: str) -> None:
    by = record.get("filter")
    chosen = by if isinstance(by, str) and by != "none" else ""
    text = _innermost(record.get("filtered_resps"))
    listed = record.get("metrics")
    names = listed if isinstance(listed, list) else [key for key in record if key not in (*_KNOWN, *_HASHES)]
    for name in (str(name) for name in names):
        value = record.get(name)
        if not isinstance(value, int | float):
            collector.leave_out(place, "no_number", name)
            continue
        about = {"model": model, "response": 1, "metric": f"{name},{chosen}" if chosen else name}
        reasoning = f"{chosen}: {text if isinstance(text, str) else ''}" if chosen else None
        collector.verdict(key, about | {"value": float(value), "judge": JUDGE, "reasoning": reasoning}, place)


def _innermost(value: Any) -> Any:
    """The first item of lists within lists: in `["4"]`, or for repeated answers in `[["4"]]`."""
    while isinstance(value, list) and value:
        value = value[0]
    return value


SOURCE = tool("lm_eval", _is_samples, _collect, _NOTES, beside=_is_results)
