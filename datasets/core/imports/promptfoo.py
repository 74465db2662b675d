"""promptfoo: output of `promptfoo eval -o` and `promptfoo export` as JSON, JSON Lines, YAML or CSV.

Its HTML report and XML are recognised only to suggest a supported export.
"""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import islice
from typing import Any

import msgspec

from datasets.core.imports.chat import answer, chat
from datasets.core.imports.documents import beginning, decoded, document, is_deep, value_of
from datasets.core.imports.gathering import Gathering, fields, gathered, records
from datasets.core.imports.json_records import BrokenJson, first_record
from datasets.core.imports.model import Imported, Note, NotUsable, Options, Place, Source, SourceFile
from datasets.core.imports.promptfoo_table import is_table, notes, results
from datasets.core.imports.tables import BrokenRecord
from datasets.core.imports.yaml_records import yaml_records

JUDGE, METRIC = "promptfoo", "score"
_WRAPPED = re.compile(rb'"results"\s*:\s*\{\s*"(?:version|timestamp|results|stats)"')
_OF_RESULT = (b'"gradingResult"', b'"namedScores"', b'"vars"')
_YAML = re.compile(rb"(?:\A|\n)results:[ ]*\r?\n[ ]+(?:version|timestamp|prompts|results|stats|- \w+):")
_REPORT = re.compile(
    rb"<promptfoo>|aria-label=\"Promptfoo\"|<title>\s*Eval Output|<th[^>]*>\s*\[[^\]<]+\] [^<]*</th>"
)
_OF_LINE = {"promptIdx", "testIdx", "testCase", "provider", "prompt"}
_NOTES = (
    Note("messages", "prompt.raw"),
    Note("model", "provider"),
    Note("answer", "response.output"),
    Note("field", "vars"),
    Note("verdict", "gradingResult.score"),
    Note("left_out", "pass, namedScores, cost, latencyMs, tokenUsage, metadata"),
)


class _Results(msgspec.Struct):
    results: list[msgspec.Raw]


class _Wrapped(msgspec.Struct):
    results: _Results


def recognise(files: Sequence[SourceFile]) -> bool:
    return bool(files) and all(
        _is_lines(file) or _is_export(file) or _is_yaml(file) or _is_report(file) or is_table(file)
        for file in files
    )


def _is_lines(file: SourceFile) -> bool:
    first = first_record(file)
    return isinstance(first, dict) and first.keys() >= _OF_LINE


def _is_export(file: SourceFile) -> bool:
    start = beginning(file)
    if not start.startswith(b"{") or b'"results"' not in start:
        return False
    return _WRAPPED.search(start) is not None or all(mark in start for mark in _OF_RESULT[1:])


def _is_yaml(file: SourceFile) -> bool:
    return _YAML.search(beginning(file)) is not None


def _is_report(file: SourceFile) -> bool:
    """Whether the file is promptfoo's HTML or XML output."""
    with closing(file.upload()) as upload:
        return upload.other_kind() in ("html", "xml") and _REPORT.search(next(upload.chunks())) is not None


def read(files: Sequence[SourceFile], options: Options) -> Imported:
    report = next((file for file in files if _is_report(file)), None)
    if report is not None:
        raise NotUsable("promptfoo_report", file=report.name)
    return gathered(files, options, _gather, notes(files[0]) if is_table(files[0]) else _NOTES)


def _gather(files: Sequence[SourceFile], options: Options, found: Gathering) -> None:
    for file in files:
        for place, result in _given(file, options, found):
            _result(found, place, result)


def _given(file: SourceFile, options: Options, found: Gathering) -> Iterator[tuple[Place, dict[str, Any]]]:
    if _is_lines(file):
        yield from records(file, options, found)
        return
    for place, value in islice(_values(file, options), options.first):
        if isinstance(value, BrokenRecord | BrokenJson):
            found.leave_out(place, value.code)
        elif not isinstance(value, dict):
            found.leave_out(place, "not_a_record")
        elif is_deep(value):
            found.leave_out(place, "too_deep")
        else:
            yield place, value


def _values(file: SourceFile, options: Options) -> Iterator[tuple[Place, Any]]:
    """The results in a CSV or YAML file or a single JSON object."""
    if is_table(file):
        yield from results(file, options)
    elif _is_yaml(file):
        for number, value in enumerate(yaml_records(file, options.limits, "results"), 1):
            yield Place(file.name, number), value
    else:
        for number, raw in enumerate(_results(file, options), 1):
            yield Place(file.name, number), value_of(raw)


def _results(file: SourceFile, options: Options) -> Iterator[msgspec.Raw]:
    text = document(file, options.limits)
    try:
        yield from decoded(text, _Results, file).results
    except NotUsable:
        yield from decoded(text, _Wrapped, file).results.results


def _result(found: Gathering, place: Place, result: dict[str, Any]) -> None:
    prompt = result.get("prompt")
    messages, dropped = chat(prompt.get("raw", prompt) if isinstance(prompt, dict) else prompt)
    if not messages:
        found.leave_out(place, "no_question")
        return
    test = result["testCase"] if isinstance(result.get("testCase"), dict) else {}
    given = result.get("vars") or test.get("vars")
    key = [messages, given, test.get("assert")]
    row = {"messages": messages, **fields(given, "vars")}
    described = test.get("description")
    found.row(key, row | ({"description": described} if described else {}), place)
    model, output = _model(result.get("provider")), _output(result)
    for kind in dropped:
        found.leave_out(place, "part_dropped", kind)
    if output is None:
        response = result.get("response")
        error = result.get("error") or (response.get("error") if isinstance(response, dict) else None)
        found.leave_out(place, "no_answer", str(error or model)[:200])
        return
    number = found.answer(key, model, answer(output)[0], place)
    _verdict(found, place, key, {"model": model, "response": number}, result.get("gradingResult"))


def _model(provider: Any) -> str:
    """A provider's label or, without one, its id."""
    if isinstance(provider, dict):
        provider = provider.get("label") or provider.get("id")
    return str(provider or "model")


def _output(result: dict[str, Any]) -> Any:
    response = result.get("response")
    output = response.get("output") if isinstance(response, dict) else response
    return output if output is None or isinstance(output, str) else json.dumps(output, ensure_ascii=False)


def _verdict(found: Gathering, place: Place, key: object, about: dict[str, Any], grading: Any) -> None:
    """Import one verdict per answer; the results of its assertions go into the reasoning."""
    score = grading.get("score") if isinstance(grading, dict) else None
    if not isinstance(score, int | float):
        found.leave_out(place, "no_value", METRIC)
        return
    lines = [str(grading.get("reason") or "")]
    parts = grading.get("componentResults")
    for part in parts if isinstance(parts, list) else []:
        if isinstance(part, dict):
            asserted = part.get("assertion")
            kind = asserted.get("type") if isinstance(asserted, dict) else None
            passed = "pass" if part.get("pass") else "fail"
            lines.append(
                f"- {kind or 'assertion'}: {passed}, {part.get('score')}. {part.get('reason') or ''}".strip()
            )
    said = {
        "metric": METRIC,
        "value": float(score),
        "judge": JUDGE,
        "reasoning": "\n".join(lines).strip() or None,
    }
    found.verdict(key, about | said, place)


SOURCE = Source("promptfoo", recognise, read)
