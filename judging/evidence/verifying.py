"""Verify an evidence file without the database: hashes, signature, and the report computed again.

Nothing in the file is executed: scripts' results, rule programs' values and what a regular expression found are taken
as they are stored. Replies to parsers of evalsite are read anew.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from django.utils import translation

import evalsite
from datasets.core.kinds import CHECKLIST, PASS_FAIL
from datasets.core.rubric import Rubric
from judging.core.checklists import conclude_checklist, rubric_of
from judging.core.metric_definition import MetricDefinition
from judging.core.pipeline import combine_verdicts, outcome_of_kind, read_verdicts
from judging.core.replies import Parsed, Parser, ParserError, make_parser
from judging.core.results import Failure, JudgeCall, Verdict
from judging.core.statistics.carried_over import OpenedTest
from judging.core.statistics.checklists import AnswerChecklist
from judging.core.statistics.frame import PEOPLE, ScaledMetric, VerdictRow, ordered, verdict_frame
from judging.core.statistics.judges import Flagged, answer_features
from judging.core.statistics.uses import Thresholds
from judging.core.values import ERROR, NOT_RUN, SCORED
from judging.evidence.comparing import Difference, compared
from judging.evidence.container import Evidence
from judging.evidence.writing import LANGUAGE
from judging.reports.checklists import with_least
from judging.reports.figures import ReportInputs, build_document
from judging.reports.selectors import scaled
from judging.reports.services import shown_figures
from judging.reports.version_orders import with_version_orders
from judging.trust.report_figures import LicensedTest, add_corrected, figures_of_test

if TYPE_CHECKING:
    from pandas import DataFrame

MOST_DIFFERENCES = 1000
FILE = "file"  # the place of the difference if nothing could be computed
STYLE = ("style", "style_rating")
_VERDICT, _CHECKLIST = msgspec.json.Decoder(Verdict), msgspec.json.Decoder(AnswerChecklist)
Settings = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Verification:
    """What `verify --json` prints, and sentences for readers (`notes`). `signed_by_given_key`: None without a key."""

    intact: bool
    signed: bool
    key: str | None
    signed_by_given_key: bool | None
    recomputed: bool
    version: str
    differences: list[Difference]
    notes: list[str]
    wrong_signature: bool

    @property
    def passed(self) -> bool:
        return (
            self.intact
            and self.recomputed
            and not self.wrong_signature
            and self.signed_by_given_key is not False
        )

    def document(self) -> dict[str, Any]:
        return {
            "intact": self.intact,
            "signed": self.signed,
            "key": self.key,
            "signed_by_given_key": self.signed_by_given_key,
            "recomputed": self.recomputed,
            "version": self.version,
            "differences": [msgspec.to_builtins(difference) for difference in self.differences],
        }


def verify(evidence: Evidence, key: bytes | None = None) -> Verification:
    """Verify an evidence file. `key`: the raw public key that should have signed it. Raises NotUsable if a member
    exceeds the limits."""
    evidence.check()
    signature = evidence.signature()
    broken = [Difference(name, *hashes) for name, hashes in sorted(evidence.broken.items())]
    differences, notes = _recomputed(evidence)
    if evidence.version != evalsite.__version__:
        notes.append(f"Written by version {evidence.version}, computed again by {evalsite.__version__}.")
    return Verification(
        intact=not evidence.broken,
        signed=signature.valid,
        key=signature.key,
        signed_by_given_key=None if key is None else signature.valid and signature.public == key,
        recomputed=not differences,
        version=evidence.version,
        differences=[*broken, *differences][:MOST_DIFFERENCES],
        notes=notes,
        wrong_signature=signature.present and not signature.valid,
    )


def _recomputed(evidence: Evidence) -> tuple[list[Difference], list[str]]:
    """The differences between the report inside and the one computed from the file, and what was not computed."""
    try:
        settings, report = evidence.document("settings.json"), evidence.document("report.json")
        rows = list(evidence.lines("verdicts")) + list(evidence.lines("ratings"))
        computed, left_out = recomputed_report(evidence, settings, report, rows)
        inside = {name: report[name] for name in computed}
        if "versions" not in settings:
            inside["ranking"] = without_versions(report["ranking"])
        if settings["hashes_only"]:
            computed, inside = without_style(computed), without_style(inside)
        differences = [
            *judgement_differences(
                settings, evidence.lines("judgements"), rows, _stored_checklists(evidence)
            ),
            *compared(json.loads(json.dumps(computed)), inside),
        ]
    except (
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        RecursionError,
        msgspec.MsgspecError,
    ) as error:
        return [
            Difference(FILE, None, f"cannot be computed again: {error} ({type(error).__name__})"[:300])
        ], []
    return differences, _notes(settings, left_out, report)


def _notes(settings: Settings, left_out: Iterable[str], report: Mapping[str, Any]) -> list[str]:
    notes = []
    definitions = [MetricDefinition.from_json(json.dumps(each)) for each in settings["definitions"]]
    if any(definition.scripts or definition.rules for definition in definitions):
        notes.append("Results of scripts and rule programs were taken as stored.")
    parsers = [judge.parse for definition in definitions for judge in definition.judges]
    if any(isinstance(parser, dict) and "regex" in parser for parser in parsers):
        notes.append("What regular expressions found in replies was taken as stored.")
    if settings["hashes_only"] and any(definition.gives == CHECKLIST for definition in definitions):
        notes.append(
            "Values of checklists were taken as stored: only hashes of their rubrics are in the file."
        )
    if report["licences"]:
        notes.append("The states and dates of licences were taken as stored; they count nowhere else.")
    for licence in settings.get("licences", ()):
        if kept := _kept(licence):
            notes.append(f"Taken as stored in the licence of {licence['metric']}: {', '.join(kept)}.")
    if any("version" in order for ranking in report["ranking"] for order in ranking["orders"]):
        notes.append("Means under other versions of a metric come from other runs and were taken as stored.")
    return notes + [f"Not recomputable from this file: {name}." for name in left_out]


# --- the report ------------------------------------------------------------------------------------------------


def recomputed_report(
    evidence: Evidence, settings: Settings, inside: Mapping[str, Any], rows: list[dict[str, Any]]
) -> tuple[dict[str, Any], list[str]]:
    """The figures computed from the file, and the names of those that cannot be. What a licence says besides the
    figures of its test, such as its state, is taken from the report inside; in older files, which lack the tests, all
    of it."""
    scales = [_scaled(metric) for metric in settings["metrics"]]
    checklists = _checklists(evidence)
    metrics = with_least(scales, checklists)
    inputs = ReportInputs(
        judgements=ordered(_frame(rows, metrics, settings["candidates"])).drop(columns="unit"),
        metrics=metrics,
        checklists=checklists,
        rows=settings["rows"],
        features=None if settings["hashes_only"] else _features(evidence, settings["measured_rows"]),
        overridden=Counter({(name, metric): count for name, metric, count in settings["overridden"]}),
        gold=settings["gold"],
        flagged={(metric, name): Flagged(*rest) for metric, name, *rest in settings["flagged"]},
    )

    licensed = [_licensed_test(each, scales) for each in settings.get("licences", ())]

    def add_licences(document: dict[str, Any]) -> None:
        document["licences"] = inside["licences"]
        if "licences" in settings:
            figures = {each.metric.name: _given_again(each, settings) for each in licensed}
            nothing = {"state": "none", "use": None}
            document["licences"] = [
                entry | figures.get(entry.get("metric"), nothing) for entry in inside["licences"]
            ]
            for each in licensed:
                add_corrected(document, each, inputs.judgements)
            return
        carried = [entry for entry in inside["corrected"] if entry["source"] == "licence"]
        names = {entry["metric"] for entry in carried}
        document["corrected"] += carried
        document["corrected_pairs"] += [pair for pair in inside["corrected_pairs"] if pair["metric"] in names]

    document = build_document(inputs, add_licences)
    with translation.override(LANGUAGE):
        figures = shown_figures(document, scales)
    if "versions" in settings:
        figures["ranking"] = with_version_orders(figures["ranking"], settings["versions"])
    figures |= {name: settings[name] for name in ("run", "dataset", "version")}
    left_out = [
        *(["length", "style"] if settings["hashes_only"] else []),
        *(["raters"] if settings["sealed"] else []),
    ]
    return {name: value for name, value in figures.items() if name not in left_out}, left_out


def _given_again(licensed: LicensedTest, settings: Settings) -> dict[str, Any]:
    """The figures that the licence's test gives, without those that are taken as stored."""
    (licence,) = (each for each in settings["licences"] if each["metric"] == licensed.metric.name)
    kept = _kept(licence)
    return {name: value for name, value in figures_of_test(licensed).items() if name not in kept}


def _kept(licence: Mapping[str, Any]) -> list[str]:
    """The figures of a licence that are taken as stored; in older files, which lack the criteria of checklists, all
    that these give."""
    kept: list[str] = licence.get("kept", ["use"])
    return kept if licence["kind"] != CHECKLIST or licence.get("criteria") else ["figures"]


def _licensed_test(licence: Mapping[str, Any], metrics: Iterable[ScaledMetric]) -> LicensedTest:
    by_name = {metric.name: metric for metric in metrics}
    criteria = licence.get("criteria")
    return LicensedTest(
        metric=by_name[licence["metric"]],
        judge=licence["judge"],
        kind=licence["kind"],
        opening=licence["opening"],
        state=licence["state"],
        labels=licence["labels"],
        test=_opened_test(licence["values"], passes=licence["kind"] == PASS_FAIL),
        thresholds=Thresholds(**licence.get("thresholds", {})),
        criteria=_opened_test(criteria, passes=True) if criteria else None,
    )


def _opened_test(values: Sequence[Sequence[float]], *, passes: bool) -> OpenedTest:
    units, judge, people = np.array(values, dtype=np.float64).reshape(-1, 3).T
    return OpenedTest(judge, people, units.astype(np.int64), passes=passes)


def without_style(value: Any) -> Any:
    """The figures without those that are controlled for the style of answers, which need their texts."""
    if isinstance(value, dict):
        return {name: without_style(each) for name, each in value.items() if name not in STYLE}
    return [without_style(each) for each in value] if isinstance(value, list | tuple) else value


def without_versions(rankings: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The rankings without the orders under other versions of a metric, which come from other runs."""
    return [
        {**ranking, "orders": [order for order in ranking["orders"] if "version" not in order]}
        for ranking in rankings
    ]


def _scaled(metric: Mapping[str, Any]) -> ScaledMetric:
    choices = metric["choices"]
    definition = MetricDefinition.from_json(json.dumps(metric["definition"]))
    return replace(scaled(definition), choices=None if choices is None else tuple(choices))


def _checklists(evidence: Evidence) -> dict[str, list[AnswerChecklist]]:
    checklists = defaultdict[str, list[AnswerChecklist]](list)
    for record in evidence.lines("checklists"):
        checklists[record["metric"]].append(msgspec.convert(record["checklist"], _CHECKLIST.type))
    return checklists


def _frame(rows: Iterable[Mapping[str, Any]], metrics: list[ScaledMetric], names: list[str]) -> DataFrame:
    by_name = {metric.name: metric for metric in metrics}
    return verdict_frame(map(_verdict_row, rows), by_name, {name: name for name in names})


def _verdict_row(row: Mapping[str, Any]) -> VerdictRow:
    value = row["value"]
    numbers = {name: math.nan if row[name] is None else row[name] for name in ("drawn_with", "seconds")}
    text = None if value is None else json.dumps(value)
    return VerdictRow(**{**row, **numbers, "value": text})


def _features(evidence: Evidence, every: int) -> DataFrame:
    answers = evidence.lines("answers")
    return answer_features(
        (answer["candidate"], answer["row"], answer["response"], answer["text"])
        for answer in answers
        if answer["row"] % every == 0
    )


# --- replies ---------------------------------------------------------------------------------------------------


class _Reading:
    """Reads replies by evalsite's own parsers, and by nothing else."""

    def __init__(self, parsers: list[Parser]) -> None:
        self._parsers = parsers

    async def read(self, judge: int, content: str, finish_reason: str | None) -> Parsed:
        return self._parsers[judge].read(content, finish_reason)


def _reading(definition: MetricDefinition) -> _Reading | None:
    """What reads the metric's replies; None if something of its own would run."""
    if definition.rules or not definition.judges:
        return None
    try:
        parsers = [make_parser(judge.parse, definition.reading_of(judge)) for judge in definition.judges]
    except ParserError:
        return None
    return None if any(parser.sandbox_script for parser in parsers) else _Reading(parsers)


@dataclass(frozen=True, slots=True)
class _Checklists:
    """What is needed to conclude checklists again: the rows' `rubrics`, none where only hashes are there, and what the
    file says that became of their criteria: {answer: {id: met}}."""

    rubrics: Mapping[int, Rubric]
    stored: Mapping[tuple[Any, ...], Mapping[str, bool | None]]


def _stored_checklists(evidence: Evidence) -> _Checklists:
    stored = {
        (metric, each.candidate, each.row, each.response): {
            criterion.id: criterion.met for criterion in each.criteria
        }
        for metric, every in _checklists(evidence).items()
        for each in every
        if not each.by_people
    }
    rows = evidence.lines("rows") if stored else ()
    rubrics = ((row["row"], rubric_of(row["fields"])) for row in rows if "fields" in row)
    return _Checklists({line: rubric for line, rubric in rubrics if rubric is not None}, stored)


def judgement_differences(
    settings: Settings,
    judgements: Iterable[Mapping[str, Any]],
    rows: Iterable[Mapping[str, Any]],
    checklists: _Checklists,
) -> list[Difference]:
    """Where a raw reply that is read anew, or the votes combined anew, give another verdict than the stored one, and
    where the table of verdicts, from which the report is computed, has another value than the judgement of a judge or
    program."""
    if not settings["by_workers"]:
        return []
    definitions = [MetricDefinition.from_json(json.dumps(each)) for each in settings["definitions"]]
    readings = [_reading(definition) for definition in definitions]
    counted = {
        answer_of(row): {"state": row["state"], "value": row["value"]}
        for row in rows
        if row["main"] and row["source"] not in PEOPLE
    }

    async def differences() -> list[Difference]:
        listed: list[Difference] = []
        for record in judgements:
            reading = readings[record["definition"]]
            if reading is not None and record["replies"] and record["state"] != NOT_RUN:
                listed += await _reread(record, definitions[record["definition"]], reading, checklists)
            if not record["excluded"]:
                inside = counted.pop(answer_of(record), None)
                listed += compared(_in_force(record), inside, f"verdicts/{place_of(record)}")
        return listed

    listed = asyncio.run(differences())
    return listed + [
        Difference(f"verdicts/{'/'.join(map(str, answer))}", inside, None)
        for answer, inside in counted.items()
    ]


def _in_force(record: Mapping[str, Any]) -> dict[str, Any]:
    if record["overridden"] is not None:
        return {"state": SCORED, "value": record["overridden"]}
    return {"state": record["state"], "value": record["value"]}


async def _reread(
    record: Mapping[str, Any], definition: MetricDefinition, reading: _Reading, checklists: _Checklists
) -> list[Difference]:
    place = place_of(record)
    calls = tuple(_call(reply) for reply in record["replies"] if reply["judge"] in definition.last_row)
    stored = [msgspec.convert(verdict, _VERDICT.type) for verdict in record["verdicts"]]
    if not stored and (record["state"] == ERROR or definition.at_once):
        return []
    at_once = max(verdict.criterion for verdict in stored) if definition.at_once else 0
    verdicts = await read_verdicts(calls, reading, at_once)  # type: ignore[arg-type]  # only its `read` is used
    inside, computed = _by_place(stored), _by_place(verdicts)
    differences = list(compared(computed, inside, f"{place}/verdicts"))
    if definition.value_scripts or _script_failed(record):
        return differences
    inside = {name: record[name] for name in ("state", "value")}
    if definition.gives == CHECKLIST:
        rubric = None if definition.scripts else checklists.rubrics.get(record["row"])
        if rubric is None:
            return differences
        outcome, checklist = conclude_checklist(definition, rubric, calls, verdicts)
        if not record["excluded"]:
            met = {criterion.id: criterion.met for criterion in checklist.criteria}
            differences += compared(met, checklists.stored.get(answer_of(record)[:4]), f"checklists/{place}")
    else:
        outcome = outcome_of_kind(definition, combine_verdicts(definition, calls, verdicts))
    again = {"state": str(outcome.state), "value": outcome.value}
    return [*differences, *compared(again, inside, place)]


def _script_failed(record: Mapping[str, Any]) -> bool:
    return any(script.get("failure") for script in record["scripts"])


def _call(reply: Mapping[str, Any]) -> JudgeCall:
    seen = None if reply["reply"] is None else {"tool_calls": None, **reply["reply"]}
    failure = Failure(reply["error"], reply["detail"]) if reply["error"] else None
    return JudgeCall(
        reply["judge"],
        reply["repeat"],
        {},
        seen,
        failure,
        [],
        swapped=reply["swapped"],
        criterion=reply["criterion"],
    )


def _by_place(verdicts: Iterable[Verdict]) -> dict[str, Any]:
    return {
        f"{verdict.judge}.{verdict.repeat}.{verdict.order}.{verdict.criterion}": verdict.value
        for verdict in verdicts
    }


def answer_of(record: Mapping[str, Any]) -> tuple[Any, ...]:
    names = ("metric", "candidate", "row", "response", "other", "other_response")
    return tuple(record[name] for name in names)


def place_of(record: Mapping[str, Any]) -> str:
    return "judgements/" + "/".join(str(part) for part in answer_of(record) if part not in (None, 0))
