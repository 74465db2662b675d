"""Inspect: `.eval` logs (a zip with one file per sample) and `.json` logs."""

import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import islice
from typing import Any

import msgspec

from datasets.core.imports.archives import Archive, is_archive_with
from datasets.core.imports.chat import answer, chat
from datasets.core.imports.collector import Collector, fields, tool
from datasets.core.imports.json_records import (
    UNDECODED,
    Kind,
    beginning,
    document,
    list_at,
    object_at,
    single,
    value_at,
)
from datasets.core.imports.model import Note, NotUsable, Place, SourceFile
from datasets.core.json_errors import nests_deeper

JUDGE = "inspect"
LETTERS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
"""Inspect's correct, partial, incorrect and no answer, with the values its accuracy uses."""
_HEADERS = ("header.json", "_journal/start.json")
_MOST_CHOICES = 1_000
_NO_MODEL = ("", "none", "none/none")
"""Names used for the evaluated model when the samples name their own."""
_REFERENCES = ("attachment://", "tc://")
_NOTES = (
    Note("messages", "input"),
    Note("reference", "target"),
    Note("model", "eval.model"),
    Note("answer", "output.choices"),
    Note("field", "choices, metadata"),
    Note("verdict", "scores"),
    Note("left_out", "messages, events, store, usage, plan"),
)


class _Header(msgspec.Struct):
    eval: dict[str, Any] = {}
    results: dict[str, Any] | None = None


class _Log(_Header):
    samples: list[Any] | None = None


class _Sample(msgspec.Struct):
    id: Any = None
    epoch: int = 1
    input: Any = None
    target: Any = None
    choices: Any = None
    metadata: Any = None
    output: dict[str, Any] | None = None
    scores: dict[str, Any] | None = None
    score: Any = None
    error: Any = None
    attachments: dict[str, str] = {}


_HEADER = msgspec.json.Decoder(_Header)
_LOG = msgspec.json.Decoder(_Log)
_SAMPLE = msgspec.json.Decoder(_Sample)


def _is_log(file: SourceFile) -> bool:
    start = beginning(file)
    if start.startswith(b"{"):
        return b'"eval"' in start and b'"task"' in start and b'"status"' in start
    return is_archive_with(file, *_HEADERS)


def _collect(files: Sequence[SourceFile], found: Collector) -> None:
    before: dict[str, int] = {}  # highest epoch of each model in the logs so far
    options = found.options
    for file in files:
        if beginning(file).startswith(b"{"):
            log = _decoded(document(file, options.limits), _LOG, file)
            _samples(found, log, islice(_of_log(log, file, found), options.first), before)
            continue
        with closing(Archive(file, options.limits)) as archive:
            name = next((name for name in _HEADERS if name in archive.names), _HEADERS[0])
            header = _decoded(archive.read(name), _HEADER, file)
            _samples(found, header, islice(_of_archive(archive, file, found), options.first), before)


def _samples(
    found: Collector, header: _Header, samples: Iterator[tuple[Place, _Sample]], before: dict[str, int]
) -> None:
    given, judges, first = str(header.eval.get("model") or ""), _judges(header), dict(before)
    for place, sample in samples:
        model = given if given not in _NO_MODEL else str((sample.output or {}).get("model") or "model")
        before[model] = max(before.get(model, 0), first.get(model, 0) + sample.epoch)
        _take(found, place, sample, model, first.get(model, 0), judges)


def _of_archive(archive: Archive, file: SourceFile, found: Collector) -> Iterator[tuple[Place, _Sample]]:
    names = [name for name in archive.names if name.startswith("samples/") and name.endswith(".json")]
    for number, name in enumerate(names, 1):
        place = Place(file.name, number)
        try:
            yield place, _decoded(archive.read(name), _SAMPLE, file)
        except NotUsable as error:
            found.leave_out(place, error.code, name)


def _of_log(log: _Log, file: SourceFile, found: Collector) -> Iterator[tuple[Place, _Sample]]:
    for number, one in enumerate(log.samples or [], 1):
        place = Place(file.name, number)
        try:
            yield place, msgspec.convert(one, _SAMPLE.type)
        except UNDECODED:
            found.leave_out(place, "not_a_record")


def _decoded(text: bytes, decoder: msgspec.json.Decoder[Kind], file: SourceFile) -> Kind:
    """Decode JSON that may contain NaN, as Inspect writes it. Raises NotUsable."""
    try:
        return decoder.decode(text)
    except UNDECODED:
        pass
    try:
        return msgspec.convert(msgspec.json.decode(_without_nan(text)), decoder.type)
    except UNDECODED:
        raise NotUsable("json_broken", file=file.name) from None


def _without_nan(text: bytes) -> bytes:
    def nothing(_name: str) -> None:
        return None

    return msgspec.json.encode(json.loads(text, parse_constant=nothing))


def _judges(header: _Header) -> dict[str, str]:
    """{scorer: grader model}, as far as the log contains it."""
    grader = value_at(header.eval, "model_roles", "grader")
    found = {}
    for one in list_at(header.results, "scores"):
        params = object_at(one, "params")
        judge = params.get("grader_model") or params.get("model") or grader
        judge = judge.get("model") if isinstance(judge, dict) else judge
        if isinstance(judge, str) and judge:
            found[str(value_at(one, "name"))] = judge
    return found


def _take(
    found: Collector, place: Place, sample: _Sample, model: str, first: int, judges: dict[str, str]
) -> None:
    if nests_deeper(
        [sample.input, sample.metadata, sample.output, sample.scores, sample.target, sample.choices]
    ):
        found.leave_out(place, "too_deep")
        return
    messages, dropped = chat(_attached(sample.input, sample.attachments))
    if not messages:
        found.leave_out(place, "no_question")
        return
    key = [sample.id, messages]
    row = {"id": sample.id, "messages": messages, **fields(sample.metadata, "metadata")}
    row |= {"choices": sample.choices} if isinstance(sample.choices, list) else {}
    found.row(key, row, place, reference=_attached(single(sample.target), sample.attachments))
    found.leave_out_parts(place, dropped)
    number = (first + sample.epoch) * _MOST_CHOICES
    _answers(found, place, key, sample, model, number)
    if found.has_answer(key, model):
        for name, score in _scores(sample):
            about = {"model": model, "response": number, **_author(score, judges.get(name, JUDGE))}
            for verdict in _verdicts(found, place, name, score):
                found.verdict(key, about | verdict, place)


def _answers(found: Collector, place: Place, key: object, sample: _Sample, model: str, number: int) -> None:
    """Import the answers of one epoch."""
    epoch = {"epoch": sample.epoch} if sample.epoch > 1 else {}
    choices = list_at(sample.output, "choices")[:_MOST_CHOICES]
    for index, choice in enumerate(choices):
        response, dropped = answer(_attached(value_at(choice, "message"), sample.attachments))
        found.leave_out_parts(place, dropped)
        found.answer(key, model, response | epoch, place, number + index)
    if not choices:
        error = sample.error.get("message") if isinstance(sample.error, dict) else sample.error
        found.leave_out(place, "no_answer", str(error or model)[:200])


def _author(score: Any, judge: str) -> dict[str, str]:
    """The author of a score: as named in its metadata, else the log's grader."""
    named = object_at(score, "metadata")
    for kind in ("rater", "judge"):
        if isinstance(named.get(kind), str) and named[kind].strip():
            return {kind: named[kind]}
    return {"judge": judge}


def _scores(sample: _Sample) -> list[tuple[str, Any]]:
    """The scores by name; old logs have a single unnamed one."""
    if sample.scores is None and sample.score is not None:
        return [("score", sample.score)]
    return list((sample.scores or {}).items())


def _verdicts(found: Collector, place: Place, name: str, score: Any) -> Iterator[dict[str, Any]]:
    """Yield metric, value and reasoning of a score, once per value if it has several."""
    given = score if isinstance(score, dict) and "value" in score else {"value": score}
    value, answered = given["value"], given.get("answer")
    reasoning = given.get("explanation") or (f"answer: {answered}" if isinstance(answered, str) else None)
    values = value if isinstance(value, dict) else {"": value}
    for part, one in values.items():
        metric = f"{name}.{part}" if part else name
        verdict = {"metric": metric, "reasoning": reasoning if isinstance(reasoning, str) else None}
        if isinstance(one, str) and one in LETTERS:
            yield verdict | {"value": LETTERS[one]}
        elif isinstance(one, bool | int | float | str) and one != "":
            yield verdict | {"value": float(one) if isinstance(one, bool) else one}
        elif one is None:
            yield verdict | {"value": None, "state": "no_score"}
        else:
            found.leave_out(place, "no_value", metric)


def _attached(given: Any, attachments: dict[str, str]) -> Any:
    """Replace references to attachments with their text."""
    if isinstance(given, str):
        mark = next((one for one in _REFERENCES if given.startswith(one)), "")
        return attachments.get(given[len(mark) :], given) if mark else given
    if isinstance(given, list):
        return [_attached(one, attachments) for one in given]
    if isinstance(given, dict):
        return {name: _attached(one, attachments) for name, one in given.items()}
    return given


SOURCE = tool("inspect", _is_log, _collect, _NOTES)
