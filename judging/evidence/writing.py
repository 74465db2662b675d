"""Write a run's evidence file. What the report is computed from stands in it as JSON: the table of verdicts and ratings
(`verdicts`, `ratings`), checklists, scales and counts (settings.json); besides, what led to the verdicts, and the lines
from which another installation imports them (`results`)."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.utils import translation

import evalsite
from datasets.core.variables import response_data
from datasets.models import Row
from judging.core.metric_definition import JudgeModel, MetricDefinition
from judging.core.statistics.carried_over import OpenedTest
from judging.core.statistics.frame import PEOPLE, ScaledMetric
from judging.evidence.comparing import same_figure
from judging.evidence.container import EvidenceWriter
from judging.filters.judgement_filter import ANYTHING
from judging.people.selectors import evaluations_of
from judging.records import json_text
from judging.records.definitions import definitions_now
from judging.records.models import JudgeReply, Run
from judging.records.stored_judgement import reply_record
from judging.reports import selectors
from judging.reports.figures import ReportInputs, report_inputs
from judging.reports.frames import answers_of, measured_rows, references_of
from judging.reports.services import report_document
from judging.reports.version_orders import means_under_versions
from judging.transfer.export.records import LoadedJudgement, load, model_name
from judging.transfer.export.results import ResultLine, results_of
from judging.trust.report_figures import LicensedTest, figures_of_test, licensed_tests

if TYPE_CHECKING:
    from pandas import DataFrame

LANGUAGE = "en"  # of the sentences in report.json
_ADDRESS = re.compile(r"\b[a-z][a-z0-9+.-]{1,20}://\S+", re.IGNORECASE)
_HIDDEN = re.compile(r"header|api[_-]?key|authorization|secret|password|url|endpoint", re.IGNORECASE)


class StillOpen(Exception):
    """The run has not ended, or people still rate it or its answers; the message names what is open."""


def write_evidence(
    run: Run, path: Path, *, hashes_only: bool, key: Ed25519PrivateKey | None, host_names: bool = False
) -> None:
    """Write the evidence file of a run: complete, or none. `hashes_only`: rows, answers and requests as SHA-256 only;
    `host_names`: with the hosts of the judges' endpoints. Raises StillOpen, or OSError."""
    for evaluation in evaluations_of(run):
        if not evaluation.run.complete:
            raise StillOpen(
                f"Evaluation “{evaluation.run.name}” is still open. Evidence can be written once it is closed."
            )
    if not run.complete:
        raise StillOpen(f"Run “{run.name}” has not ended yet. Evidence can be written once it has.")
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with draft.open("wb") as stream:
            writer = EvidenceWriter(stream, evalsite.__version__)
            _add_members(writer, run, hashes_only=hashes_only, host_names=host_names)
            writer.finish(key)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _add_members(writer: EvidenceWriter, run: Run, *, hashes_only: bool, host_names: bool) -> None:
    definitions = definitions_now(run)
    scales = selectors.with_choices(
        run, {pk: selectors.scaled(definition) for pk, definition in definitions.items()}
    )
    inputs = report_inputs(run, definitions, scales)
    rows = list(frame_rows(inputs.judgements))
    writer.add_lines("results", _results(run, rows))
    writer.add_lines("verdicts", (row for row in rows if row["source"] not in PEOPLE))
    writer.add_lines("ratings", (row for row in rows if row["source"] in PEOPLE))
    checklists = ((metric, each) for metric, every in inputs.checklists.items() for each in every)
    writer.add_lines(
        "checklists",
        ({"metric": metric, "checklist": msgspec.to_builtins(each)} for metric, each in checklists),
    )
    frozen: list[dict[str, Any]] = []
    judgements = (judgement_record(loaded, frozen, hashes_only=hashes_only) for loaded in load(run))
    writer.add_lines("judgements", judgements)
    writer.add_lines("rows", _rows(run, hashes_only=hashes_only))
    answers = (_answer_record(*answer, hashes_only=hashes_only) for answer in _answers(run, scales.values()))
    writer.add_lines("answers", answers)
    with translation.override(LANGUAGE):
        document = report_document(run)
    settings = _settings(run, inputs, definitions, frozen, hashes_only=hashes_only)
    settings["licences"] = [
        _licence(licensed, document["licences"])
        for licensed in licensed_tests(run, definitions, scales, with_criteria=True)
    ]
    if host_names:
        settings["hosts"] = _hosts(definitions.values())
    writer.add_json("settings.json", settings)
    writer.add_json("report.json", document)


def frame_rows(frame: DataFrame) -> Iterator[dict[str, Any]]:
    """The table of verdicts as records. Clusters get numbers, because their names are texts of the data."""
    columns = frame.assign(cluster=frame["cluster"].cat.codes)
    for row in columns.astype(object).to_dict("records"):
        yield {
            **{name: _or_none(row[name]) for name in _COLUMNS},
            "value": _value(row),
            "cluster": None if row["cluster"] < 0 else f"c{row['cluster']}",
        }


_COLUMNS = (
    "metric", "candidate", "row", "response", "state", "by", "source", "other", "other_response", "repeat", "order",
    "main", "shown_first", "drawn_with", "draw", "known_to", "stratum", "seconds",
)  # fmt: skip


def _or_none(value: Any) -> Any:
    return None if value != value else value  # NaN is not equal to itself


def _value(row: Mapping[Any, Any]) -> Any:
    kind = _or_none(row["kind"])
    if kind is None:
        return None
    if kind == "category":
        return row["label"]
    return bool(row["value"]) if kind == "bool" else row["value"]


def judgement_record(
    loaded: LoadedJudgement, frozen: list[dict[str, Any]], *, hashes_only: bool
) -> dict[str, Any]:
    """A judgement with its requests and raw replies. `frozen`: definitions without connections, to which the one that
    it was read with is added; `definition` is its number there."""
    judgement = loaded.judgement
    definition = definition_without_connections(loaded.metric)
    if definition not in frozen:
        frozen.append(definition)
    other = judgement.other_response
    scripts = json_text.loads(judgement.scripts) or []
    return {
        "metric": judgement.run_metric.name,
        "definition": frozen.index(definition),
        "candidate": model_name(judgement.candidate) if judgement.source else judgement.candidate.name,
        "row": judgement.row.line,
        "response": judgement.response.number,
        "other": model_name(other.candidate) if other else None,
        "other_response": other.number if other else 0,
        "attempt": judgement.attempt,
        "state": judgement.state,
        "value": json_text.loads(judgement.value),
        "reason": judgement.reason,
        "detail": without_addresses(judgement.detail),
        "overridden": json_text.loads(judgement.override_value) if judgement.overridden else None,
        "excluded": loaded.exclusion is not None,
        "flags": judgement.flags.split(",") if judgement.flags else [],
        "verdicts": json_text.loads(judgement.verdicts) or [],
        "scripts": [{"result": script.get("result")} for script in scripts] if hashes_only else scripts,
        "replies": [_reply(reply, hashes_only=hashes_only) for reply in loaded.replies],
    }


def _reply(reply: JudgeReply, *, hashes_only: bool) -> dict[str, Any]:
    request = without_secrets(json_text.loads(reply.request))
    return {
        "judge": reply.judge,
        "repeat": reply.repeat,
        "swapped": reply.swapped,
        "criterion": reply.criterion,
        **({"request_sha256": sha256_of(request)} if hashes_only else {"request": request}),
        "reply": reply_record(reply),
        "error": reply.error,
        "detail": without_addresses(reply.detail),
    }


def definition_without_connections(definition: MetricDefinition) -> dict[str, Any]:
    judges = tuple(_without_connection(judge) for judge in definition.judges)
    document: dict[str, Any] = json.loads(msgspec.structs.replace(definition, judges=judges).to_json())
    return document


def _without_connection(judge: JudgeModel) -> JudgeModel:
    params = without_secrets(judge.params)
    return msgspec.structs.replace(judge, endpoint=None, url="", api_key_env="", params=params)


def without_secrets(value: Any) -> Any:
    """The JSON value without members whose names say that they hold keys, headers or addresses of endpoints."""
    if not isinstance(value, dict):
        return value
    return {
        name: without_secrets(member)
        for name, member in value.items()
        if name in ("messages", "input", "contents") or not _HIDDEN.search(name)
    }


def without_addresses(text: str) -> str:
    """The text of an error with every address replaced by an ellipsis."""
    return _ADDRESS.sub("…", text)


def sha256_of(document: Any) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def _rows(run: Run, *, hashes_only: bool) -> Iterator[dict[str, Any]]:
    rows = Row.objects.filter(version=run.version_id, valid=True).order_by("line")
    for line, raw in rows.values_list("line", "raw").iterator(1000):
        fields = json_text.loads(raw)
        yield {"row": line, "sha256": sha256_of(fields)} if hashes_only else {"row": line, "fields": fields}


def _answers(run: Run, metrics: Iterable[ScaledMetric]) -> Iterator[tuple[str, int, int, dict[str, Any]]]:
    """(candidate, row, response, the response) of the run's answers, then of references if they are compared."""
    candidates = selectors.candidates_of(run)
    for name, line, number, raw in answers_of(run, list(candidates)):
        yield name, line, number, response_data(raw)
    for name, line, number, text in references_of(run, candidates, metrics):
        yield name, line, number, {"content": text}


def _answer_record(
    candidate: str, row: int, response: int, data: Mapping[str, Any], *, hashes_only: bool
) -> dict[str, Any]:
    """`text` is what figures are computed from; `more`: the other fields of the response that hold something."""
    answer = {"candidate": candidate, "row": row, "response": response}
    text = str(data["content"])
    if hashes_only:
        return answer | {"sha256": sha256_of(text)}
    more = {name: value for name, value in data.items() if name != "content" and value is not None}
    return answer | {"text": text} | ({"more": more} if more else {})


def _results(run: Run, rows: Iterable[Mapping[str, Any]]) -> Iterator[ResultLine]:
    """The verdicts that the report counts as lines of a results file, by which another installation imports them."""
    counted = {_answer_of(row) for row in rows}
    for each in [run, *(evaluation.run for evaluation in evaluations_of(run) if evaluation.run_id != run.pk)]:
        for line in results_of(each, ANYTHING):
            by_people = "rater" in line
            about = tuple(line[name] or 0 for name in _OF_LINE)
            if (by_people, *about) in counted:
                fields = {name: value for name, value in line.items() if value is not None or name == "value"}
                yield without_addresses_in(fields)


_OF_LINE = ("metric", "model", "line", "response", "other_model", "other_response")


def _answer_of(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Whether people spoke, and about which answers under which metric, as `_OF_LINE` of a results line."""
    names = ("metric", "candidate", "row", "response", "other", "other_response")
    return (row["source"] in PEOPLE, *(row[name] or 0 for name in names))


def without_addresses_in(line: ResultLine) -> ResultLine:
    """The line of a results file whose reason, if it is an error's, names no addresses."""
    return line | {"reason": without_addresses(line["reason"])} if line.get("reason") else line


def _settings(
    run: Run,
    inputs: ReportInputs,
    definitions: dict[int, MetricDefinition],
    frozen: list[dict[str, Any]],
    *,
    hashes_only: bool,
) -> dict[str, Any]:
    """The run's settings, and what a report needs besides verdicts, ratings and licences."""
    frame = inputs.judgements
    return {
        "run": run.name,
        "kind": run.kind,
        "by_workers": run.by_workers,
        "dataset": run.version.dataset.name,
        "version": run.version.number,
        "format": run.version.format,
        "rows": run.rows,
        "sample_size": run.sample_size,
        "seed": run.seed,
        "hashes_only": hashes_only,
        "metrics": [
            {
                "definition": definition_without_connections(definition),
                "choices": scale.choices,
            }
            for definition, scale in zip(definitions.values(), inputs.metrics, strict=True)
        ],
        "definitions": frozen,
        "candidates": [str(name) for name in frame["candidate"].cat.categories],
        "order": list(selectors.candidates_of(run).values()),
        "measured_rows": measured_rows(run),
        "sealed": inputs.with_sealed is not None,
        "gold": inputs.gold,
        "overridden": _counts(inputs.overridden),
        "flagged": [[*names, *flagged] for names, flagged in inputs.flagged.items()],
        "versions": means_under_versions(run),
    }


def _licence(licensed: LicensedTest, entries: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """A licence's test: what its figures, and means corrected with it, are computed from. `values`, and `criteria` of a
    checklist: of each answer, or criterion, the number of its row, the judge's value and people's. `kept`: the figures
    of the report's entry that the test does not give again: computed by an earlier version, or of criteria that were
    judged again since."""
    kept = not_given_again(licensed, entries)
    return {
        "metric": licensed.metric.name,
        "judge": licensed.judge,
        "kind": licensed.kind,
        "opening": licensed.opening,
        "state": licensed.state,
        "labels": licensed.labels,
        "thresholds": asdict(licensed.thresholds),
        "values": _values_of(licensed.test),
        "criteria": _values_of(licensed.criteria) if licensed.criteria else [],
        "kept": kept,
    }


def _values_of(test: OpenedTest) -> list[list[float]]:
    columns = (test.units.tolist(), test.judge.tolist(), test.people.tolist())
    return [list(values) for values in zip(*columns, strict=True)]


def not_given_again(licensed: LicensedTest, entries: Iterable[Mapping[str, Any]]) -> list[str]:
    """The names of the figures in the report's entry that the licence's test does not give again."""
    (entry,) = (entry for entry in entries if entry["metric"] == licensed.metric.name)
    figures = figures_of_test(licensed)
    return [name for name, value in figures.items() if not same_figure(value, entry[name])]


def _hosts(definitions: Iterable[MetricDefinition]) -> list[dict[str, str]]:
    """The host of each judge's endpoint, without scheme, port and path."""
    return [
        {"metric": definition.name, "judge": judge.name, "host": urlsplit(judge.url).hostname or ""}
        for definition in definitions
        for judge in definition.judges
    ]


def _counts(counter: Counter[tuple[str, str]]) -> list[list[Any]]:
    return [[candidate, metric, count] for (candidate, metric), count in sorted(counter.items())]
