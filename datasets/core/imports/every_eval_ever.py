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


def _collect(files: Sequence[SourceFile], collector: Collector) -> None:
    seen: dict[int, set[int]] = defaultdict(set)
    for file in files:
        if not _is_samples(file):
            collector.leave_out(Place(file.name), "aggregate")
            continue
        for place, record in collector.records(file, _is_sample):
            _sample(collector, place, record, seen)


def _sample(collector: Collector, place: Place, record: dict[str, Any], seen: dict[int, set[int]]) -> None:
    sample_input, model = record["input"], str(record["model_id"])
    messages, answers = _conversation(record)
    if not any(message["content"].strip() for message in messages):
        collector.leave_out(place, "no_question")
        return
    name, metric = str(record["sample_id"]), str(record["evaluation_name"])
    key = [name, messages]
    about, author = _metadata(object_at(record, "metadata"))
    row = {"id": name, "messages": messages, **fields(about, "metadata")}
    row |= {"choices": sample_input["choices"]} if sample_input.get("choices") else {}
    collector.row(key, row, place, reference=single(sample_input.get("reference")))
    media = (part for part in list_at(record, "output", "media") if isinstance(part, dict))
    collector.leave_out_parts(place, (str(part.get("media_type") or "media") for part in media))
    if not answers:
        collector.leave_out(place, "no_answer", str(record.get("error") or model)[:200])
        return
    # Records of the same result concern different answers; records of different results share answers.
    taken = seen[
        hash((name, str(sample_input.get("raw")), model, str(record.get("evaluation_result_id") or metric)))
    ]
    numbers = [collector.same_answer(key, model, response, place, taken) for response in answers]
    taken.update(numbers)
    verdict = {"model": model, "response": numbers[0], "metric": metric, **author}
    _verdict(collector, place, key, verdict, record, len(answers))


def _metadata(metadata: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The sample's metadata, and the parts of it that name the author of the score and the reasoning."""
    author = {
        name: metadata[name]
        for name in ("judge", "rater", "reasoning")
        if isinstance(metadata.get(name), str)
    }
    if not author.keys() & {"judge", "rater"}:
        author["judge"] = JUDGE
    return {name: value for name, value in metadata.items() if name not in author}, author


def _conversation(record: dict[str, Any]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The prompt and the answers: the outputs of a single turn, or the last answer of a transcript."""
    prompt = chat(str(record["input"].get("raw") or ""))[0]
    transcript, _dropped = chat(record.get("messages"))
    spoken = [index for index, message in enumerate(transcript) if message["role"] == "assistant"]
    if not spoken:
        texts = [text for text in list_at(record, "output", "raw") if isinstance(text, str)]
        traces = list_at(record, "output", "reasoning_trace")
        return prompt, [_response(text, trace) for text, trace in zip_longest(texts, traces[: len(texts)])]
    before, last = transcript[: spoken[-1]], transcript[spoken[-1]]
    messages = [message for message in before if message["role"] in ("system", "user")]
    response = {"content": last["content"], "transcript": record["messages"]}
    users = [index for index, message in enumerate(before) if message["role"] == "user"]
    earlier = before[: users[-1]] if users else []
    own = {EARLIER: earlier} if any(message["role"] == "assistant" for message in earlier) else {}
    return messages or prompt, [response | own]


def _response(text: str, trace: Any) -> dict[str, Any]:
    return {"content": text, **({"reasoning_content": trace} if isinstance(trace, str) and trace else {})}


def _verdict(
    collector: Collector,
    place: Place,
    key: object,
    about: dict[str, Any],
    record: dict[str, Any],
    answers: int,
) -> None:
    evaluation = object_at(record, "evaluation")
    value = evaluation.get("score") if evaluation.get("score") is not None else evaluation.get("is_correct")
    if not isinstance(value, bool | int | float):
        collector.leave_out(place, "no_value", about["metric"])
    elif answers > 1:
        collector.leave_out(place, "one_score_of_several", about["metric"])
    else:
        collector.verdict(key, {"reasoning": _extracted(record), **about, "value": float(value)}, place)


def _extracted(record: dict[str, Any]) -> str | None:
    """How the answer was extracted, if the file contains it."""
    lines = [
        f"{attribution.get('extraction_method')}: {attribution.get('extracted_value')}"
        for attribution in list_at(record, "answer_attribution")
        if isinstance(attribution, dict)
    ]
    return "\n".join(lines) or None


SOURCE = tool("every_eval_ever", _is_samples, _collect, _NOTES, beside=_is_aggregate)
