"""Checklists: a judge says of each criterion of a row's rubric whether it is met; the value is the share of points."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from datasets.core.kinds import PASS_FAIL
from datasets.core.rubric import RUBRIC, Criterion, Rubric, read_rubric
from evalsite.rounding import significant
from judging.core.judges.reply import REFUSED
from judging.core.metric_definition import MetricDefinition
from judging.core.reading.gives import Gives
from judging.core.reading.json_values import MOST_FAILED, JsonObject, ObjectScanner, Text
from judging.core.reading.reader import read_reply, why_unread
from judging.core.reading.reasons import AMBIGUOUS, NO_MAJORITY, NOTHING_OFFERED, REFUSAL
from judging.core.reading.thinking import without_thinking
from judging.core.results import JudgeCall, Verdict
from judging.core.values import ERROR, SCORED, UNPARSED, Outcome

OPEN = "criteria_open"  # reason: not every criterion has a verdict
NO_RUBRIC = "rubric_unreadable"  # reason: the row has no rubric that can be read
_READ_AS = Gives(PASS_FAIL)


class JudgedCriterion(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A criterion, and whether the answer meets it: None where that is open, with the reason.

    Filters look for the first three fields in this order in the stored JSON.
    """

    id: str
    met: bool | None
    text: str
    points: float
    tags: tuple[str, ...] = ()
    has_own_id: bool = False
    reason: str = ""

    @property
    def key(self) -> str:
        """What criteria of several rows have in common: their own id, or else their text."""
        return self.id if self.has_own_id else self.text


class Checklist(msgspec.Struct, frozen=True, omit_defaults=True):
    """What became of a row's criteria. `low` and `high`: the least and the greatest share of points that the open ones
    allow; `least`: that of the worst answer. Not cut to 0…1."""

    low: float
    high: float
    least: float
    criteria: tuple[JudgedCriterion, ...]

    @property
    def is_complete(self) -> bool:
        return all(criterion.met is not None for criterion in self.criteria)

    def to_json(self) -> str:
        return msgspec.json.encode(self).decode()


Met = Mapping[str, bool]
"""{id of a criterion: whether the answer meets it}, without those that are open."""

_decode = msgspec.json.Decoder(Checklist).decode


def checklist_from(text: str) -> Checklist | None:
    """The checklist stored with a judgement; None if there is none."""
    return _decode(text) if text else None


def met_of(checklist: Checklist) -> Met:
    """The criteria that are not open."""
    return {criterion.id: criterion.met for criterion in checklist.criteria if criterion.met is not None}


def rubric_of(data: Mapping[str, Any]) -> Rubric | None:
    """The rubric of a row, None without one that can be read."""
    return read_rubric(data.get(RUBRIC))[0]


def criteria_asked(metric: MetricDefinition, judge: int, data: Mapping[str, Any]) -> Sequence[int]:
    """The criteria that a judge is asked about one by one, by number; (0,) for one question about the whole."""
    rubric = rubric_of(data) if metric.asks_by_criterion and judge in metric.last_row else None
    return range(1, len(rubric.criteria) + 1) if rubric else (0,)


def criterion_variables(rubric: Rubric | None, number: int = 0) -> dict[str, Any]:
    """The template variables about criteria: all of them as `criteria`, and the one with this number from 1 as
    `criterion`. Their ids count from 1 in the order shown."""
    criteria = [_as_seen(at, criterion) for at, criterion in enumerate(rubric.criteria if rubric else (), 1)]
    return {"criteria": criteria} | (
        {"criterion": criteria[number - 1]} if 0 < number <= len(criteria) else {}
    )


def _as_seen(number: int, criterion: Criterion) -> dict[str, Any]:
    points = int(criterion.points) if criterion.points.is_integer() else criterion.points
    return {"id": str(number), "text": criterion.text, "points": points, "tags": list(criterion.tags)}


def judged(rubric: Rubric, met: Sequence[bool | None], reasons: Sequence[str] = ()) -> Checklist:
    """The checklist for outcomes in the order of the criteria; `reasons`: why each is open."""
    low, high = rubric.bounds(met)
    criteria = tuple(
        JudgedCriterion(
            criterion.id,
            is_met,
            criterion.text,
            criterion.points,
            criterion.tags,
            criterion.has_own_id,
            reasons[at] if reasons and is_met is None else "",
        )
        for at, (criterion, is_met) in enumerate(zip(rubric.criteria, met, strict=True))
    )
    return Checklist(low + 0.0, high + 0.0, rubric.least + 0.0, criteria)


def outcome_of(checklist: Checklist) -> Outcome:
    """The share of points, or that it is missing, with its bounds."""
    if checklist.is_complete:
        return Outcome(SCORED, checklist.low)
    return Outcome(UNPARSED, reason=OPEN, detail=bounds_text(checklist))


def bounds_text(checklist: Checklist) -> str:
    """How many criteria are open, and between which values the share lies."""
    count = sum(criterion.met is None for criterion in checklist.criteria)
    low, high = (significant(_cut(bound), 3) for bound in (checklist.low, checklist.high))
    return f"{count}/{len(checklist.criteria)}: {low}…{high}"


def _cut(value: float) -> float:
    return min(1.0, max(0.0, value))


def conclude_checklist(
    metric: MetricDefinition, rubric: Rubric, calls: Sequence[JudgeCall], verdicts: Sequence[Verdict]
) -> tuple[Outcome, Checklist]:
    """Each criterion by the majority of its votes, and the share of points.

    A criterion without one is open; if that is because a call failed, the outcome is that error, which can be retried.
    """
    votes: dict[int, list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        votes[verdict.criterion].append(verdict)
    decided = [_decided(votes[number + 1], metric.quorum) for number in range(len(rubric.criteria))]
    checklist = judged(rubric, [met for met, _reason in decided], [reason for _met, reason in decided])
    failed = next((call.failure for call in calls if call.failure), None)
    if failed is not None and not checklist.is_complete:
        return Outcome(ERROR, reason=failed.code, detail=failed.detail), checklist
    return outcome_of(checklist), checklist


def _decided(votes: Sequence[Verdict], quorum: int) -> tuple[bool | None, str]:
    """What more than half of the votes on a criterion say, or why it is open."""
    read = Counter(verdict.value for verdict in votes if isinstance(verdict.value, bool))
    if not read or read.total() < quorum:
        return None, next((verdict.reason for verdict in reversed(votes) if verdict.reason), NOTHING_OFFERED)
    value, count = read.most_common(1)[0]
    return (value, "") if 2 * count > read.total() else (None, NO_MAJORITY)


@dataclass(frozen=True, slots=True)
class Entry:
    """What a reply about all criteria says of one: the JSON object, and where it begins in the reply (-1: unknown)."""

    text: str
    start: int


def entries_by_criterion(content: str) -> dict[str, list[Entry]]:
    """{id: its entries} of a reply about all criteria at once; anything else in the reply says nothing."""
    text = without_thinking(content)
    offset = content.rfind(text)
    entries: dict[str, list[Entry]] = defaultdict(list)
    scanner, start, failed = ObjectScanner(text), text.find("{"), 0
    while start >= 0 and failed < MOST_FAILED:
        entry = scanner.scan(start)
        named = (
            {member.key.lower(): member.value for member in entry.members}
            if isinstance(entry, JsonObject)
            else {}
        )
        name = named.get("id")
        if isinstance(entry, JsonObject) and isinstance(name, Text) and "verdict" in named and entry.closed:
            entries[name.text.strip()].append(
                _entry(text[start : entry.end], start + offset if offset >= 0 else -1)
            )
            start = text.find("{", entry.end)
        else:
            failed += not isinstance(entry, JsonObject)
            start = text.find("{", start + 1)
    return entries


def reasoning_in(entry: Entry) -> str:
    """What an entry gives as its reasoning; '' without any."""
    scanned = ObjectScanner(entry.text).scan(0)
    members = scanned.members if isinstance(scanned, JsonObject) else []
    values = (member.value for member in members if member.key.lower() == "reasoning")
    return next((value.text for value in values if isinstance(value, Text)), "")


def _entry(text: str, start: int) -> Entry:
    """An entry as text; escaped letters are written out, which moves what stands in it."""
    if "\\u" not in text:
        return Entry(text, start)
    try:
        return Entry(msgspec.json.encode(msgspec.json.decode(text)).decode(), -1)
    except (msgspec.DecodeError, UnicodeError):
        return Entry(text, start)


def read_at_once(call: JudgeCall, criteria: int) -> list[Verdict]:
    """The verdicts on this many criteria in one reply. A criterion that it does not name, or names with verdicts that
    differ, has none."""
    reply = call.reply or {}
    entries, finish_reason = entries_by_criterion(reply.get("content") or ""), reply.get("finish_reason")
    refused = finish_reason in REFUSED
    return [
        Verdict(call.judge, call.repeat, None, REFUSAL, criterion=number)
        if refused
        else _read_entries(call, number, entries.get(str(number), []), finish_reason)
        for number in range(1, criteria + 1)
    ]


def _read_entries(
    call: JudgeCall, number: int, entries: Sequence[Entry], finish_reason: str | None
) -> Verdict:
    readings = [read_reply(entry.text, _READ_AS) for entry in entries]
    if not readings:
        reason = why_unread(NOTHING_OFFERED, finish_reason)
        return Verdict(call.judge, call.repeat, None, reason, criterion=number)
    if len({reading.value for reading in readings}) > 1:
        return Verdict(call.judge, call.repeat, None, AMBIGUOUS, criterion=number)
    last, start = readings[-1], entries[-1].start
    place = (start + last.evidence[0], start + last.evidence[1]) if last.evidence and start >= 0 else None
    return Verdict(
        call.judge,
        call.repeat,
        last.value,
        last.reason,
        form=last.form or "",
        place=place,
        detail=last.detail,
        criterion=number,
    )
