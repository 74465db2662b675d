"""Converts lines of a results file to verdicts, and surveys all lines of each metric."""

from __future__ import annotations

import json
import math
import re
import sqlite3
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Literal

from datasets.core.kinds import CATEGORY, CHECKLIST, COMPARISON, PASS_FAIL, SCORE, turned
from judging.core.results_file.fields import (
    Refusal,
    moment_of,
    number_of,
    plain,
    text_of,
    value_of,
    whole_of,
)
from judging.core.results_file.records import COMPARISONS, NumberedRecord, Record, RefusedLine
from judging.core.values import ERROR, NO_SCORE, NOT_RUN, SCORED, UNPARSED, UNSETTLED, Value

REFERENCE = "@reference"
"""The model name that stands for the row's reference."""

ADJUDICATOR: Literal["adjudicator"] = "adjudicator"
"""The role of a rater who decides when raters differ."""

SourceKind = Literal["judge", "rater", "rules", "script", "combined", "adjudicator"]

STATES = (SCORED, NO_SCORE, UNPARSED, UNSETTLED, ERROR, NOT_RUN)
NOT_GIVEN, ELSEWHERE = "not_given", "elsewhere"  # reasons: none given; not in the form `code: details`
_PROGRAMS: tuple[SourceKind, ...] = ("rules", "script", "combined")
_REASON = re.compile(r"([a-z][a-z0-9_]{0,39})(?:: (.*))?", re.DOTALL)
_SMALL = 2**15 - 1  # the maximum of a small integer column
LONGEST_METRIC, LONGEST_SOURCE, LONGEST_CRITERION = 200, 300, 1_000


@dataclass(frozen=True, slots=True)
class AnswerKey:
    """A model's name, and the number of its answer to the row."""

    model: str
    number: int


@dataclass(frozen=True, slots=True)
class FileVerdict:
    """A line with a verdict on an answer or a pair of answers, which may not exist in the database."""

    line: int
    row: int | None
    row_id: str
    answer: AnswerKey
    other: AnswerKey | None
    metric: str
    state: str
    value: Value | None
    reason: str
    detail: str
    source_kind: SourceKind
    source: str
    reasoning: str
    repeat: int
    shown_first: int | None
    drawn_with: float | None
    at: float | None
    seconds: float | None
    prompt_tokens: int | None
    completion_tokens: int | None
    cost: float | None
    criterion: str = ""

    @property
    def said(self) -> str:
        """The verdict in a canonical form: equal for equal verdicts."""
        return canonical(self.value) if self.state == SCORED else self.state

    @property
    def said_of_turned(self) -> str:
        """The same with the two answers swapped."""
        if self.state != SCORED or self.value is None:
            return self.said
        return canonical(turned(self.value))


def canonical(value: Value | None) -> str:
    """A value as text; 7 and 7.0 are equal."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return repr(float(value))
    return json.dumps(value, ensure_ascii=False)


@dataclass(slots=True)
class MetricSummary:
    """Statistics on the lines of one metric: the number of values of each kind, and the declared scales."""

    kinds: Counter[str] = field(default_factory=Counter)
    scales: Counter[tuple[float, float]] = field(default_factory=Counter)
    lines: int = 0

    @property
    def kind(self) -> str | None:
        """The most frequent kind of value; None without values."""
        return max(self.kinds, key=lambda kind: self.kinds[kind], default=None)

    @property
    def scale(self) -> tuple[float, float] | None:
        """The most frequently declared scale; None if none is declared."""
        return max(self.scales, key=lambda scale: self.scales[scale], default=None)


def metric_summaries(records: Iterable[NumberedRecord]) -> dict[str, MetricSummary]:
    """Summarize every metric of a file, in order of first appearance."""
    metrics: dict[str, MetricSummary] = {}
    for _line, record in records:
        if isinstance(record, RefusedLine):
            continue
        try:
            summary = metrics.setdefault(_metric(record), MetricSummary())
            summary.lines += 1
            summary.scales.update(_scale(record))
            value = value_of(record)
            if value is not None or _criterion(record):
                summary.kinds[_kind(record, value)] += 1
        except Refusal:
            continue  # reported when the line is parsed
    return metrics


def verdicts(
    records: Iterable[NumberedRecord], kinds: Mapping[str, str | None]
) -> Iterator[FileVerdict | RefusedLine]:
    """Each line as a verdict, or why it is skipped; `kinds`: the kind of values of each metric."""
    for line, record in records:
        if isinstance(record, RefusedLine):
            yield record
            continue
        try:
            yield _verdict(line, record, kinds)
        except Refusal as refusal:
            yield RefusedLine(line, refusal.code, refusal.params)


def _verdict(line: int, record: Record, kinds: Mapping[str, str | None]) -> FileVerdict:
    row, row_id = whole_of(record, "line"), row_name(record.get("id"))
    if row is None and not row_id:
        raise Refusal("no_row_named")
    answer, other = _answer(record, ""), _answer(record, "other_")
    if answer is None:
        raise Refusal("no_model_named")
    if answer == other:
        raise Refusal("same_answer")
    metric = _metric(record)
    state, value = _said(record, metric, kinds.get(metric))
    reason, detail = _why(record) if state != SCORED else ("", "")
    source_kind, source = _source(record)
    _scale(record)
    return FileVerdict(
        line=line,
        row=row,
        row_id=row_id,
        answer=answer,
        other=other,
        metric=metric,
        state=state,
        value=value,
        reason=reason,
        detail=detail,
        source_kind=source_kind,
        source=source,
        reasoning=text_of(record, "reasoning"),
        repeat=whole_of(record, "repeat", most=_SMALL) or 1,
        shown_first=whole_of(record, "shown_first", most=2) if other else None,
        drawn_with=number_of(record, "drawn_with", math.ulp(0.0), 1.0),  # above 0
        at=moment_of(record),
        seconds=number_of(record, "seconds"),
        prompt_tokens=whole_of(record, "prompt_tokens", 0),
        completion_tokens=whole_of(record, "completion_tokens", 0),
        cost=number_of(record, "cost"),
        criterion=_criterion(record),
    )


def row_name(value: Any) -> str:
    """A custom field `id` as text; '' if absent. Raises Refusal for a value that cannot be an id."""
    if value is None:
        return ""
    if isinstance(value, bool | list | dict):
        raise Refusal("not_text", field="id")
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value)


def _answer(record: Record, prefix: str) -> AnswerKey | None:
    model = text_of(record, prefix + "model")
    number = whole_of(record, prefix + "response", most=_SMALL) or 1
    return AnswerKey(model, number) if model else None


def _metric(record: Record) -> str:
    return text_of(record, "metric", LONGEST_METRIC).strip() or "score"


def _scale(record: Record) -> list[tuple[float, float]]:
    low, high = (number_of(record, name, -1e300, 1e300) for name in ("min_score", "max_score"))
    if low is None or high is None:
        return []
    if low >= high:
        raise Refusal("scale")
    return [(low, high)]


def _source(record: Record) -> tuple[SourceKind, str]:
    judge, rater = (text_of(record, name, LONGEST_SOURCE).strip() for name in ("judge", "rater"))
    if judge and rater:
        raise Refusal("two_sources")
    if rater:
        return ADJUDICATOR if text_of(record, "role") == ADJUDICATOR else "rater", rater
    if not judge:
        raise Refusal("no_source")
    return next((program for program in _PROGRAMS if program == judge), "judge"), judge


def _compares(record: Record) -> bool:
    """Whether the value says which of two answers is better; a rater may also score two answers together."""
    return bool(text_of(record, "other_model")) and plain(record.get("compares")) is not False


def _criterion(record: Record) -> str:
    """The id of a checklist's criterion, '' if the verdict is about the whole answer."""
    return text_of(record, "criterion", LONGEST_CRITERION).strip()


def _kind(record: Record, value: Value | None) -> str:
    if _criterion(record):
        return CHECKLIST
    if _compares(record):
        return COMPARISON
    if isinstance(value, str):
        return CATEGORY
    return PASS_FAIL if isinstance(value, bool) else SCORE


def _said(record: Record, metric: str, wanted: str | None) -> tuple[str, Value | None]:
    """The state, and the value if it is scored. Raises Refusal for a value that does not fit the metric."""
    value, state, compares = value_of(record), text_of(record, "state") or SCORED, _compares(record)
    if state not in STATES:
        raise Refusal("unknown_state", state=state[:40])
    if (wanted == COMPARISON) != compares and wanted is not None:
        raise Refusal("compares" if compares else "compares_not", metric=metric)
    if _criterion(record) and wanted not in (None, CHECKLIST):
        raise Refusal(
            "other_kind_of_value", metric=metric, kind=CHECKLIST, wanted=wanted, value=_short(value)
        )
    if state == UNSETTLED and not (compares and text_of(record, "other_model") != REFERENCE):
        raise Refusal("unsettled_alone")
    if state != SCORED:
        if value is not None:
            raise Refusal("value_beside_state", state=state)
        return state, None
    if value is None:
        raise Refusal("no_value")
    if compares and value not in COMPARISONS:
        raise Refusal("not_a_comparison", value=_short(value))
    kind = _kind(record, value)
    if kind == CHECKLIST and not isinstance(value, bool):
        raise Refusal("other_kind_of_value", metric=metric, kind=kind, wanted=PASS_FAIL, value=_short(value))
    if wanted == CHECKLIST and kind == SCORE:
        return state, value  # the share of points, as decided by a reviewer
    if wanted == CHECKLIST and kind == PASS_FAIL:
        raise Refusal("criterion_missing", metric=metric)
    if wanted == CATEGORY and kind != wanted and isinstance(record["value"], str):
        return state, text_of(record, "value").strip()  # a table cell that looks like a number
    if wanted is not None and kind != wanted:
        raise Refusal("other_kind_of_value", metric=metric, kind=kind, wanted=wanted, value=_short(value))
    return state, value


def _short(value: Value | None) -> str:
    return json.dumps(value, ensure_ascii=False)[:60]


def _why(record: Record) -> tuple[str, str]:
    """A code and details, from a reason in the form of an export or any other text."""
    text = text_of(record, "reason").strip()
    if not text:
        return NOT_GIVEN, ""
    match = _REASON.fullmatch(text)
    return (match[1], match[2] or "") if match else (ELSEWHERE, text)


class SeenVerdicts:
    """The first verdict on each question, as digests, in a temporary SQLite file."""

    def __init__(self) -> None:
        self._table = sqlite3.connect("", isolation_level=None)
        self._table.execute("CREATE TABLE seen (question BLOB PRIMARY KEY, said BLOB) WITHOUT ROWID")
        self._table.execute("BEGIN")

    def close(self) -> None:
        self._table.close()

    def agrees(self, question: Hashable, said: str) -> bool | None:
        """Whether an earlier verdict on the question is the same; without one, stores this one and returns None."""
        key, value = _digest(repr(question)), _digest(said)
        stored = self._table.execute("SELECT said FROM seen WHERE question = ?", (key,)).fetchone()
        if stored is not None:
            return bool(stored[0] == value)
        self._table.execute("INSERT INTO seen VALUES (?, ?)", (key, value))
        return None


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "replace"), digest_size=16).digest()
