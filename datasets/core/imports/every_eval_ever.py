"""Every Eval Ever: one JSON line per sample (instance-level schema 0.2), with or without the aggregate file."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from datasets.core.imports.chat import chat
from datasets.core.imports.collector import Collector, fields, tool
from datasets.core.imports.json_records import beginning, first_record, list_at, object_at, single
from datasets.core.imports.model import Note, Place, SourceFile
from datasets.core.variables import EARLIER

JUDGE = "every_eval_ever"
_NOTES = (
    Note("question", "input.raw"),
    Note("reference", "input.reference"),
    Note("model", "model_id"),
    Note("answer", "output.raw, messages"),
    Note("field", "input.choices, metadata"),
    Note("verdict", "evaluation.score"),
    Note("left_out", "formatted, token_usage, performance, sample_hash"),
)
_NEEDED = {"model_id", "evaluation_name", "sample_id", "input", "evaluation"}


def _is_sample(record: Any) -> bool:
    return isinstance(record, dict) and record.keys() >= _NEEDED and isinstance(record["input"], dict)


def _is_samples(file: SourceFile) -> bool:
    return _is_sample(first_record(file))


def _is_aggregate(file: SourceFile) -> bool:
    start = beginning(file)
    return start.startswith(b"{") and b'"evaluation_results"' in start and b'"sample_id"' not in start


def _collect(files: Sequence[SourceFile], found: Collector) -> None:
    seen: dict[int, set[int]] = defaultdict(set)
    for file in files:
        if not _is_samples(file):
            found.leave_out(Place(file.name), "aggregate")
            continue
        for place, record in found.records(file, _is_sample):
            _sample(found, place, record, seen)


def _sample(found: Collector, place: Place, record: dict[str, Any], seen: dict[int, set[int]]) -> None:
    given, model = record["input"], str(record["model_id"])
    asked, answers = _conversation(record)
    if not any(one["content"].strip() for one in asked):
        found.leave_out(place, "no_question")
        return
    name, metric = str(record["sample_id"]), str(record["evaluation_name"])
    key = [name, asked]
    about, author = _metadata(object_at(record, "metadata"))
    row = {"id": name, "messages": asked, **fields(about, "metadata")}
    row |= {"choices": given["choices"]} if given.get("choices") else {}
    found.row(key, row, place, reference=single(given.get("reference")))
    media = (one for one in list_at(record, "output", "media") if isinstance(one, dict))
    found.leave_out_parts(place, (str(one.get("media_type") or "media") for one in media))
    if not answers:
        found.leave_out(place, "no_answer", str(record.get("error") or model)[:200])
        return
    # Records of the same result concern different answers; records of different results share answers.
    taken = seen[
        hash((name, str(given.get("raw")), model, str(record.get("evaluation_result_id") or metric)))
    ]
    numbers = [found.same_answer(key, model, one, place, taken) for one in answers]
    taken.update(numbers)
    verdict = {"model": model, "response": numbers[0], "metric": metric, **author}
    _verdict(found, place, key, verdict, record, len(answers))


def _metadata(given: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The sample's metadata, and the parts of it that name the author of the score and the reasoning."""
    author = {
        name: given[name] for name in ("judge", "rater", "reasoning") if isinstance(given.get(name), str)
    }
    if not author.keys() & {"judge", "rater"}:
        author["judge"] = JUDGE
    return {name: value for name, value in given.items() if name not in author}, author


def _conversation(record: dict[str, Any]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The prompt and the answers: the outputs of a single turn, or the last answer of a transcript."""
    prompt = chat(str(record["input"].get("raw") or ""))[0]
    transcript, _dropped = chat(record.get("messages"))
    spoken = [index for index, one in enumerate(transcript) if one["role"] == "assistant"]
    if not spoken:
        texts = [text for text in list_at(record, "output", "raw") if isinstance(text, str)]
        traces = list_at(record, "output", "reasoning_trace")
        return prompt, [_response(text, trace) for text, trace in zip_longest(texts, traces[: len(texts)])]
    before, last = transcript[: spoken[-1]], transcript[spoken[-1]]
    asked = [one for one in before if one["role"] in ("system", "user")]
    response = {"content": last["content"], "transcript": record["messages"]}
    users = [index for index, one in enumerate(before) if one["role"] == "user"]
    earlier = before[: users[-1]] if users else []
    own = {EARLIER: earlier} if any(one["role"] == "assistant" for one in earlier) else {}
    return asked or prompt, [response | own]


def _response(text: str, trace: Any) -> dict[str, Any]:
    return {"content": text, **({"reasoning_content": trace} if isinstance(trace, str) and trace else {})}


def _verdict(
    found: Collector, place: Place, key: object, about: dict[str, Any], record: dict[str, Any], answers: int
) -> None:
    given = object_at(record, "evaluation")
    value = given.get("score") if given.get("score") is not None else given.get("is_correct")
    if not isinstance(value, bool | int | float):
        found.leave_out(place, "no_value", about["metric"])
    elif answers > 1:
        found.leave_out(place, "one_score_of_several", about["metric"])
    else:
        found.verdict(key, {"reasoning": _extracted(record), **about, "value": float(value)}, place)


def _extracted(record: dict[str, Any]) -> str | None:
    """How the answer was extracted, if the file contains it."""
    lines = [
        f"{one.get('extraction_method')}: {one.get('extracted_value')}"
        for one in list_at(record, "answer_attribution")
        if isinstance(one, dict)
    ]
    return "\n".join(lines) or None


SOURCE = tool("every_eval_ever", _is_samples, _collect, _NOTES, beside=_is_aggregate)
