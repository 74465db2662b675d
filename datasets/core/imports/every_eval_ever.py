"""Every Eval Ever: one JSON line per sample (instance-level schema 0.2), with or without the aggregate file."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from datasets.core.imports.chat import chat
from datasets.core.imports.documents import beginning
from datasets.core.imports.gathering import Gathering, fields, gathered, records
from datasets.core.imports.json_records import first_record
from datasets.core.imports.model import Imported, Note, Options, Place, Source, SourceFile
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


def _is_aggregate(file: SourceFile) -> bool:
    start = beginning(file)
    return start.startswith(b"{") and b'"evaluation_results"' in start and b'"sample_id"' not in start


def recognise(files: Sequence[SourceFile]) -> bool:
    samples = [file for file in files if _is_sample(first_record(file))]
    return bool(samples) and all(file in samples or _is_aggregate(file) for file in files)


def read(files: Sequence[SourceFile], options: Options) -> Imported:
    return gathered(files, options, _gather, _NOTES)


def _gather(files: Sequence[SourceFile], options: Options, found: Gathering) -> None:
    seen: dict[int, set[int]] = defaultdict(set)
    for file in files:
        if not _is_sample(first_record(file)):
            found.leave_out(Place(file.name), "aggregate")
            continue
        for place, record in records(file, options, found, _is_sample):
            _sample(found, place, record, seen)


def _sample(found: Gathering, place: Place, record: dict[str, Any], seen: dict[int, set[int]]) -> None:
    given, model = record["input"], str(record["model_id"])
    asked, answers = _conversation(record)
    if not any(one["content"].strip() for one in asked):
        found.leave_out(place, "no_question")
        return
    name, metric = str(record["sample_id"]), str(record["evaluation_name"])
    key = [name, asked]
    references = given.get("reference")
    reference = references[0] if isinstance(references, list) and len(references) == 1 else references
    about, author = _metadata(record.get("metadata"))
    row = {"id": name, "messages": asked, **fields(about, "metadata")}
    row |= {} if reference in (None, "", []) else {"ref_answer": reference}
    found.row(key, row | ({"choices": given["choices"]} if given.get("choices") else {}), place)
    for kind in _media(record.get("output")):
        found.leave_out(place, "part_dropped", kind)
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


def _metadata(given: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The sample's metadata, and the parts of it that name the author of the score and the reasoning."""
    given = given if isinstance(given, dict) else {}
    author = {
        name: given[name] for name in ("judge", "rater", "reasoning") if isinstance(given.get(name), str)
    }
    if not author.keys() & {"judge", "rater"}:
        author["judge"] = JUDGE
    return {name: value for name, value in given.items() if name not in author}, author


def _conversation(record: dict[str, Any]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The prompt and the answers: the outputs of a single turn, or the last answer of a transcript."""
    given, output = record["input"], record.get("output")
    transcript, _dropped = chat(record.get("messages"))
    spoken = [index for index, one in enumerate(transcript) if one["role"] == "assistant"]
    if not spoken:
        raw = output.get("raw") if isinstance(output, dict) else None
        traces = output.get("reasoning_trace") if isinstance(output, dict) else None
        texts = [text for text in raw if isinstance(text, str)] if isinstance(raw, list) else []
        return chat(str(given.get("raw") or ""))[0], [
            _response(text, traces, at) for at, text in enumerate(texts)
        ]
    before, last = transcript[: spoken[-1]], transcript[spoken[-1]]
    asked = [one for one in before if one["role"] in ("system", "user")]
    response = {"content": last["content"], "transcript": record["messages"]}
    users = [index for index, one in enumerate(before) if one["role"] == "user"]
    earlier = before[: users[-1]] if users else []
    own = {EARLIER: earlier} if any(one["role"] == "assistant" for one in earlier) else {}
    return asked or chat(str(given.get("raw") or ""))[0], [response | own]


def _media(output: Any) -> list[str]:
    """The kinds of non-text output."""
    media = output.get("media") if isinstance(output, dict) else None
    given = media if isinstance(media, list) else []
    return [str(one.get("media_type") or "media") for one in given if isinstance(one, dict)]


def _response(text: str, traces: Any, at: int) -> dict[str, Any]:
    trace = traces[at] if isinstance(traces, list) and at < len(traces) else None
    return {"content": text, **({"reasoning_content": trace} if isinstance(trace, str) and trace else {})}


def _verdict(
    found: Gathering, place: Place, key: object, about: dict[str, Any], record: dict[str, Any], answers: int
) -> None:
    given = record["evaluation"] if isinstance(record["evaluation"], dict) else {}
    value = given.get("score") if given.get("score") is not None else given.get("is_correct")
    if not isinstance(value, bool | int | float):
        found.leave_out(place, "no_value", about["metric"])
    elif answers > 1:
        found.leave_out(place, "one_score_of_several", about["metric"])
    else:
        reasons = {"reasoning": _extracted(record)}
        found.verdict(key, reasons | about | {"value": float(value)}, place)


def _extracted(record: dict[str, Any]) -> str | None:
    """How the answer was extracted, if the file contains it."""
    given = record.get("answer_attribution")
    lines = [
        f"{one.get('extraction_method')}: {one.get('extracted_value')}"
        for one in (given if isinstance(given, list) else [])
        if isinstance(one, dict)
    ]
    return "\n".join(lines) or None


SOURCE = Source("every_eval_ever", recognise, read)
