"""promptfoo: output of `promptfoo eval -o` and `promptfoo export` as JSON, JSON Lines, YAML or CSV.

Its HTML report and XML are recognised only to suggest a supported export.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from datasets.core.imports.chat import answer, chat
from datasets.core.imports.collector import Collector, fields, plain_document, tool
from datasets.core.imports.json_records import (
    beginning,
    decoded,
    first_record,
    held_keys,
    list_at,
    object_at,
    value_at,
    value_of,
)
from datasets.core.imports.key_use import count_unread
from datasets.core.imports.model import Note, NotUsable, Place, SourceFile
from datasets.core.imports.promptfoo_table import is_table, results, table_notes
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


_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_LIST = msgspec.json.Decoder(list[msgspec.Raw])


def _is_file(file: SourceFile) -> bool:
    return _is_lines(file) or _is_export(file) or _is_yaml(file) or _is_report(file) or is_table(file)


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
    with file.upload() as upload:
        return upload.other_kind() in ("html", "xml") and _REPORT.search(next(upload.chunks())) is not None


def _notes(files: Sequence[SourceFile]) -> Sequence[Note]:
    """What the parts of the files become. Raises NotUsable for a report."""
    report = next((file for file in files if _is_report(file)), None)
    if report is not None:
        raise NotUsable("promptfoo_report", file=report.name)
    return table_notes(files[0]) if is_table(files[0]) else _NOTES


def _collect(files: Sequence[SourceFile], collector: Collector) -> None:
    for file in files:
        lines = _is_lines(file)
        records = collector.records(file) if lines else collector.objects(_values(file, collector))
        for place, result in records:
            _result(collector, place, result)


def _values(file: SourceFile, collector: Collector) -> Iterator[tuple[Place, Any]]:
    """The results in a CSV or YAML file or a single JSON object."""
    limits = collector.options.limits
    if is_table(file):
        yield from results(file, limits)
        return
    values = _yaml_results(file, collector) if _is_yaml(file) else _results(file, collector)
    for number, value in enumerate(values, 1):
        yield Place(file.name, number), value


def _yaml_results(file: SourceFile, collector: Collector) -> Iterator[Any]:
    outer = collector.key_use()

    def beside(name: str) -> None:
        outer.count(Place(file.name), [name])

    return yaml_records(file, collector.options.limits, "results", beside)


def _results(file: SourceFile, collector: Collector) -> Iterator[Any]:
    """The results of a JSON document, beside or within other keys, which are listed."""
    outer = collector.key_use(("results", "results.results"))
    parts = decoded(plain_document(file, collector), _OBJECT, file)
    outer.count(Place(file.name), held_keys(parts))
    results = parts.get("results", msgspec.Raw(b"[]"))
    if bytes(memoryview(results)[:1]) == b"{":
        parts = decoded(results, _OBJECT, file)
        outer.count(Place(file.name), (f"results.{name}" for name in held_keys(parts)))
        results = parts.get("results", msgspec.Raw(b"[]"))
    return (value_of(raw) for raw in decoded(results, _LIST, file))


def _result(collector: Collector, place: Place, result: dict[str, Any]) -> None:
    prompt = result.get("prompt")
    messages, dropped = chat(prompt.get("raw", prompt) if isinstance(prompt, dict) else prompt)
    if not messages:
        collector.leave_out(place, "no_question")
        return
    test = object_at(result, "testCase")
    of_test = test.get("vars")
    variables = result.get("vars") or of_test
    if of_test != variables:
        count_unread(of_test)
    key = [messages, variables, dict.get(test, "assert")]
    row = {"messages": messages, **fields(variables, "vars")}
    described = test.get("description")
    collector.row(key, row | ({"description": described} if described else {}), place)
    model, output = _model(result.get("provider")), _output(result)
    collector.leave_out_parts(place, dropped)
    if output is None:
        error = result.get("error") or value_at(result, "response", "error")
        collector.leave_out(place, "no_answer", str(error or model)[:200])
        return
    number = collector.answer(key, model, answer(output)[0], place)
    _verdict(collector, place, key, {"model": model, "response": number}, result.get("gradingResult"))


def _model(provider: Any) -> str:
    """A provider's label or, without one, its id."""
    if isinstance(provider, dict):
        provider = provider.get("label") or provider.get("id")
    return str(provider or "model")


def _output(result: dict[str, Any]) -> Any:
    response = result.get("response")
    output = response.get("output") if isinstance(response, dict) else response
    return output if output is None or isinstance(output, str) else json.dumps(output, ensure_ascii=False)


def _verdict(collector: Collector, place: Place, key: object, about: dict[str, Any], grading: Any) -> None:
    """Import one verdict per answer; the results of its assertions go into the reasoning."""
    score = value_at(grading, "score")
    if not isinstance(score, int | float):
        collector.leave_out(place, "no_value", METRIC)
        return
    lines = [str(grading.get("reason") or "")]
    for part in list_at(grading, "componentResults"):
        if isinstance(part, dict):
            kind = value_at(part, "assertion", "type") or "assertion"
            passed = "pass" if part.get("pass") else "fail"
            lines.append(f"- {kind}: {passed}, {part.get('score')}. {part.get('reason') or ''}".strip())
    verdict = {
        "metric": METRIC,
        "value": float(score),
        "judge": JUDGE,
        "reasoning": "\n".join(lines).strip() or None,
    }
    collector.verdict(key, about | verdict, place)


SOURCE = tool("promptfoo", _is_file, _collect, _notes)
