"""lm-evaluation-harness: `samples_*.jsonl`, with the run's `results_*.json` for the model's name."""

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import msgspec

from datasets.core.imports.chat import chat
from datasets.core.imports.collector import Collector, fields, tool
from datasets.core.imports.json_records import beginning, decoded, document, first_record
from datasets.core.imports.model import Note, NotUsable, Place, SourceFile
from datasets.core.limits import Limits

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
    Note("left_out", "gen_kwargs, doc_hash, prompt_hash, target_hash"),
)
_OBJECT = msgspec.json.Decoder(dict[str, Any])


def _is_sample(record: Any) -> bool:
    return isinstance(record, dict) and {"doc_id", "doc", "resps"} <= record.keys()


def _is_samples(file: SourceFile) -> bool:
    return _is_sample(first_record(file))


def _is_results(file: SourceFile) -> bool:
    start = beginning(file)
    return start.startswith(b"{") and b'"results"' in start and b'"doc_id"' not in start


def _collect(files: Sequence[SourceFile], found: Collector) -> None:
    samples = [file for file in files if _is_samples(file)]
    names = _model_names([file for file in files if file not in samples], found.options.limits)
    stamps = sorted({_stamp(file) for file in samples})
    for file in samples:
        unnamed = UNNAMED if len(stamps) < 2 else f"{UNNAMED} {stamps.index(_stamp(file)) + 1}"
        named = next(iter(names.values())) if len(names) == 1 else names.get(_stamp(file))
        for place, record in found.records(file, _is_sample):
            _sample(found, place, record, named or unnamed)


def _stamp(file: SourceFile) -> str:
    """The timestamp in a file name, shared by the samples and results of a run."""
    found = _STAMP.search(file.name)
    return found[0] if found else ""


def _model_names(results: Sequence[SourceFile], limits: Limits) -> dict[str, str]:
    """{timestamp of the run: model name}."""
    names = {}
    for file in results:
        with suppress(NotUsable):
            given = decoded(document(file, limits), _OBJECT, file)
            name = given.get("model_name") or given.get("model_source")
            if isinstance(name, str) and name.strip():
                names[_stamp(file)] = name
    return names


def _sample(found: Collector, place: Place, record: dict[str, Any], model: str) -> None:
    requests = _requests(record.get("arguments"))
    messages, dropped = chat(requests[0][0]) if requests else ([], [])
    if not messages:
        found.leave_out(place, "no_question")
        return
    found.leave_out_parts(place, dropped)
    key = [record["doc_id"], messages]
    doc = record["doc"] if isinstance(record["doc"], dict) else {"doc": record["doc"]}
    row = {"id": doc.get("id", record["doc_id"]), "messages": messages, **fields(doc, "doc")}
    found.row(key, row | {"doc_id": record["doc_id"]}, place, reference=record.get("target"))
    texts = _answers(record["resps"], requests)
    if not texts:
        found.leave_out(place, "no_answer", model)
        return
    for number, text in enumerate(texts, 1):
        found.answer(key, model, {"content": text}, place, number)
    _verdicts(found, place, record, key, model)


def _requests(given: Any) -> list[tuple[Any, str]]:
    """(context, continuation) of each request; the continuation is '' for generation tasks."""
    listed = list(given.values()) if isinstance(given, dict) else given
    found = []
    for one in listed if isinstance(listed, list) else []:
        parts = list(one.values()) if isinstance(one, dict) else one
        if isinstance(parts, list) and parts:
            context = parts[0][0] if isinstance(parts[0], list) and len(parts[0]) == 1 else parts[0]
            follows = parts[1] if len(parts) > 1 and isinstance(parts[1], str) else ""
            found.append((context, follows))
    return found


def _answers(resps: Any, requests: list[tuple[Any, str]]) -> list[str]:
    """The generated texts, or for multiple choice the most likely choice."""
    if not isinstance(resps, list) or not resps or not isinstance(resps[0], list) or not resps[0]:
        return []
    if all(isinstance(text, str) for text in resps[0]):
        return [str(text) for text in resps[0]]
    likely = [_likelihood(one) for one in resps]
    if len(likely) != len(requests) or None in likely:
        return []
    best = max(range(len(likely)), key=lambda index: likely[index] or 0.0)
    return [requests[best][1].strip()] if requests[best][1].strip() else []


def _likelihood(one: Any) -> float | None:
    """The number in `[[-1.5, false]]`, whose parts may be strings."""
    try:
        return float(_innermost(one))
    except (TypeError, ValueError):
        return None


def _verdicts(found: Collector, place: Place, record: dict[str, Any], key: object, model: str) -> None:
    by = record.get("filter")
    chosen = by if isinstance(by, str) and by != "none" else ""
    text = _innermost(record.get("filtered_resps"))
    listed = record.get("metrics")
    names = listed if isinstance(listed, list) else [one for one in record if one not in (*_KNOWN, *_HASHES)]
    for name in (str(name) for name in names):
        value = record.get(name)
        if not isinstance(value, int | float):
            found.leave_out(place, "no_number", name)
            continue
        about = {"model": model, "response": 1, "metric": f"{name},{chosen}" if chosen else name}
        reasoning = f"{chosen}: {text if isinstance(text, str) else ''}" if chosen else None
        found.verdict(key, about | {"value": float(value), "judge": JUDGE, "reasoning": reasoning}, place)


def _innermost(value: Any) -> Any:
    """The first item of lists within lists: in `["4"]`, or for repeated answers in `[["4"]]`."""
    while isinstance(value, list) and value:
        value = value[0]
    return value


SOURCE = tool("lm_eval", _is_samples, _collect, _NOTES, beside=_is_results)
