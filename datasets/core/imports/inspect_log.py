"""Inspect: `.eval` logs (a zip with one file per sample) and `.json` logs."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import islice
from typing import Any

import msgspec

from datasets.core.imports.archives import Archive, is_archive_with
from datasets.core.imports.chat import answer, chat
from datasets.core.imports.collector import Collector, fields, plain_document, tool
from datasets.core.imports.json_records import (
    UNDECODED,
    beginning,
    decoded,
    held_keys,
    list_at,
    object_at,
    plain_json,
    single,
    value_at,
)
from datasets.core.imports.key_use import KeyUse
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


class _Log(msgspec.Struct):
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
_KNOWN = frozenset(_Sample.__struct_fields__) - {"error"}
_KEYS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_PARTS = ("input", "target", "metadata", "output", "scores", "score", "error")
"""The fields of a sample that hold objects."""


def _is_log(file: SourceFile) -> bool:
    start = beginning(file)
    if start.startswith(b"{"):
        return b'"eval"' in start and b'"task"' in start and b'"status"' in start
    return is_archive_with(file, *_HEADERS)


def _collect(files: Sequence[SourceFile], collector: Collector) -> None:
    before: dict[str, int] = {}  # highest epoch of each model in the logs so far
    options = collector.options
    for file in files:
        use = collector.key_use(_KNOWN)
        if beginning(file).startswith(b"{"):
            text = plain_document(file, collector)
            header, log = _header(text, file, collector), decoded(text, _LOG, file)
            _samples(
                collector, use, header, islice(_of_log(log, file, collector, use), options.first), before
            )
            continue
        with closing(Archive(file, options.limits)) as archive:
            name = next((name for name in _HEADERS if name in archive.names), _HEADERS[0])
            header = _header(plain_json(archive.read(name))[0], file, collector)
            samples = islice(_of_archive(archive, file, collector, use), options.first)
            _samples(collector, use, header, samples, before)


def _header(text: bytes, file: SourceFile, collector: Collector) -> _Header:
    """The start of a log; its keys and those of the whole log that are not read will be listed."""
    place, outer = Place(file.name), collector.key_use(("eval", "results", "samples"))
    header = decoded(text, _HEADER, file)
    outer.count(place, held_keys(_KEYS.decode(text)))
    return _Header(outer.part(place, "eval", header.eval), outer.part(place, "results", header.results))


def _samples(
    collector: Collector,
    use: KeyUse,
    header: _Header,
    samples: Iterator[tuple[Place, _Sample]],
    before: dict[str, int],
) -> None:
    log_model, judges, first = str(header.eval.get("model") or ""), _judges(header), dict(before)
    for place, sample in samples:
        if nests_deeper([sample.choices, *(getattr(sample, name) for name in _PARTS)]):
            collector.leave_out(place, "too_deep")
            continue
        _note_keys(use, place, sample)
        model = (
            log_model if log_model not in _NO_MODEL else str((sample.output or {}).get("model") or "model")
        )
        before[model] = max(before.get(model, 0), first.get(model, 0) + sample.epoch)
        _import_sample(collector, place, sample, model, first.get(model, 0), judges)


def _of_archive(
    archive: Archive, file: SourceFile, collector: Collector, use: KeyUse
) -> Iterator[tuple[Place, _Sample]]:
    names = [name for name in archive.names if name.startswith("samples/") and name.endswith(".json")]
    others = sorted({*archive.names} - {*names, *_HEADERS})
    collector.key_use().count(Place(file.name), others)
    for number, name in enumerate(names, 1):
        place = Place(file.name, number)
        try:
            text, constants = plain_json(archive.read(name))
            sample = decoded(text, _SAMPLE, file)
            use.count(place, held_keys(_KEYS.decode(text)))
            if constants:
                collector.leave_out(place, "nan", constants)
            yield place, sample
        except NotUsable as error:
            collector.leave_out(place, error.code, name)


def _of_log(
    log: _Log, file: SourceFile, collector: Collector, use: KeyUse
) -> Iterator[tuple[Place, _Sample]]:
    for number, value in enumerate(log.samples or [], 1):
        place = Place(file.name, number)
        try:
            sample = msgspec.convert(value, _SAMPLE.type)
        except UNDECODED:
            collector.leave_out(place, "not_a_record")
            continue
        use.record(place, value)
        yield place, sample


def _judges(header: _Header) -> dict[str, str]:
    """{scorer: grader model}, as far as the log contains it."""
    grader = value_at(header.eval, "model_roles", "grader")
    judges = {}
    for score in list_at(header.results, "scores"):
        params = object_at(score, "params")
        judge = params.get("grader_model") or params.get("model") or grader
        judge = judge.get("model") if isinstance(judge, dict) else judge
        if isinstance(judge, str) and judge:
            judges[str(value_at(score, "name"))] = judge
    return judges


def _import_sample(
    collector: Collector, place: Place, sample: _Sample, model: str, first: int, judges: dict[str, str]
) -> None:
    messages, dropped = chat(sample.input)
    if not messages:
        collector.leave_out(place, "no_question")
        return
    key = [sample.id, messages]
    row = {"id": sample.id, "messages": messages, **fields(sample.metadata, "metadata")}
    row |= {"choices": sample.choices} if isinstance(sample.choices, list) else {}
    collector.row(key, row, place, reference=single(sample.target))
    collector.leave_out_parts(place, dropped)
    number = (first + sample.epoch) * _MOST_CHOICES
    _answers(collector, place, key, sample, model, number)
    if collector.has_answer(key, model):
        for name, score in _scores(sample):
            about = {"model": model, "response": number, **_author(score, judges.get(name, JUDGE))}
            for verdict in _verdicts(collector, place, name, score):
                collector.verdict(key, about | verdict, place)


def _answers(
    collector: Collector, place: Place, key: object, sample: _Sample, model: str, number: int
) -> None:
    """Import the answers of one epoch."""
    epoch = {"epoch": sample.epoch} if sample.epoch > 1 else {}
    choices = list_at(sample.output, "choices")[:_MOST_CHOICES]
    for index, choice in enumerate(choices):
        response, dropped = answer(value_at(choice, "message"))
        collector.leave_out_parts(place, dropped)
        collector.answer(key, model, response | epoch, place, number + index)
    if not choices:
        error = sample.error.get("message") if isinstance(sample.error, dict) else sample.error
        collector.leave_out(place, "no_answer", str(error or model)[:200])


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


def _verdicts(collector: Collector, place: Place, name: str, score: Any) -> Iterator[dict[str, Any]]:
    """Yield metric, value and reasoning of a score, once per value if it has several."""
    fields = score if isinstance(score, dict) and "value" in score else {"value": score}
    value, reasoning = fields["value"], fields.get("explanation")
    if not reasoning and isinstance(answered := fields.get("answer"), str):
        reasoning = f"answer: {answered}"
    values = value if isinstance(value, dict) else {"": value}
    for part, part_value in values.items():
        metric = f"{name}.{part}" if part else name
        verdict = {"metric": metric, "reasoning": reasoning if isinstance(reasoning, str) else None}
        if isinstance(part_value, str) and part_value in LETTERS:
            yield verdict | {"value": LETTERS[part_value]}
        elif isinstance(part_value, bool | int | float | str) and part_value != "":
            yield verdict | {"value": float(part_value) if isinstance(part_value, bool) else part_value}
        elif part_value is None:
            yield verdict | {"value": None, "state": "no_score"}
        else:
            collector.leave_out(place, "no_value", metric)


def _note_keys(use: KeyUse, place: Place, sample: _Sample) -> None:
    """Let the parts of a sample note which of their keys are read, with their attachments in place."""
    for name in _PARTS:
        setattr(sample, name, use.part(place, name, _attached(getattr(sample, name), sample.attachments)))


def _attached(value: Any, attachments: dict[str, str]) -> Any:
    """Replace references to attachments with their text."""
    if isinstance(value, str):
        mark = next((prefix for prefix in _REFERENCES if value.startswith(prefix)), "")
        return attachments.get(value[len(mark) :], value) if mark else value
    if isinstance(value, list):
        return [_attached(part, attachments) for part in value]
    if isinstance(value, dict):
        return {name: _attached(part, attachments) for name, part in value.items()}
    return value


SOURCE = tool("inspect", _is_log, _collect, _NOTES)
