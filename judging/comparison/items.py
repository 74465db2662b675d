"""Matching the items of two runs: by row if both use the same version, else by the rows' `id`, else by content."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, cast

from datasets.core.formats import Format
from datasets.core.variables import row_data
from datasets.models import Response, Row, Version
from judging.core.change import SharedItem, Side
from judging.runs.models import Judgement, JudgeReply, Run
from judging.runs.teamwork.marks import without_excluded

Cell = tuple[str, str]
"""Names of a metric and a candidate."""

_BATCH = 5_000
_COLUMNS = (
    "pk", "asked_by_id", "row_id", "response_id", "response__number", "reading_id", "score", "override_value",
    "override_score",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class RowKey:
    """The key that a row is matched by, and a digest of its contents except answers and `id`."""

    key: Hashable
    content: str


class ItemJudgement(NamedTuple):
    """A judgement of an item. `asked`: the attempt whose replies were parsed; `reading`: id of the metric's reading
    used, None for the run's own; `override`: a reviewer's value as text, or None."""

    judgement: int
    asked: int
    response: int
    reading: int | None
    score: float | None
    override: str | None
    override_score: float | None

    @property
    def in_force(self) -> float | None:
        return self.score if self.override is None else self.override_score


@dataclass(slots=True)
class Collected:
    """The judgements of one item in one run."""

    row: int
    parts: list[ItemJudgement] = field(default_factory=list)

    @property
    def responses(self) -> list[int]:
        return [one.response for one in self.parts]

    @property
    def readings(self) -> frozenset[int | None]:
        return frozenset(one.reading for one in self.parts)

    @property
    def mean(self) -> float | None:
        return mean_of(one.in_force for one in self.parts)


def mean_of(scores: Iterable[float | None]) -> float | None:
    """Mean of the scores, without None."""
    scored = [one for one in scores if one is not None]
    if len(scored) == 1:  # most items have one answer
        return scored[0]
    return math.fsum(scored) / len(scored) if scored else None


Items = dict[Hashable, Collected]
"""A cell's items by key."""


def row_keys(before: Run, after: Run) -> tuple[dict[int, RowKey], dict[int, RowKey]]:
    """Keys by row id for both runs' versions; empty if they are the same version."""
    if before.version_id == after.version_id:
        return {}, {}
    first, second = _rows_of(before.version), _rows_of(after.version)
    shared_ids = _unique_ids(first) & _unique_ids(second)
    return _keys(first, shared_ids), _keys(second, shared_ids)


_RowContent = tuple[int, str | None, str]


def _rows_of(version: Version) -> list[_RowContent]:
    """Row id, the row's own `id` as JSON, and a digest of the rest."""
    rows = Row.objects.filter(version=version, valid=True).order_by("line").values_list("pk", "raw")
    return [(pk, *_content(raw, cast(Format, version.format))) for pk, raw in rows.iterator(_BATCH)]


def _content(raw: str, form: Format) -> tuple[str | None, str]:
    data = row_data(raw, form)
    own = data.pop("id", None)
    return (None if own is None else json.dumps(own)), _digest([json.dumps(data, sort_keys=True)])


def _unique_ids(rows: Iterable[_RowContent]) -> set[str]:
    seen = Counter(own for _pk, own, _content in rows if own is not None)
    return {own for own, count in seen.items() if count == 1}


def _keys(rows: Iterable[_RowContent], shared_ids: set[str]) -> dict[int, RowKey]:
    """Rows with equal content are matched in order of their lines."""
    seen = Counter[str]()
    found = {}
    for pk, own, content in rows:
        if own in shared_ids:
            found[pk] = RowKey(("id", own), content)
        else:
            seen[content] += 1
            found[pk] = RowKey(("content", content, seen[content]), content)
    return found


def cells_of(run: Run) -> dict[Cell, tuple[int, int]]:
    """Ids of metric and candidate by their names, in the run's order."""
    metrics = list(run.metrics.order_by("number").values_list("name", "pk"))
    candidates = run.run_candidates.order_by("candidate").values_list("candidate__name", "candidate_id")
    return {
        (metric, candidate): (metric_id, candidate_id)
        for metric, metric_id in metrics
        for candidate, candidate_id in candidates
    }


def collected(run: Run, metric: int, candidate: int, keys: dict[int, RowKey]) -> Items:
    """A cell's items by key, in the run's order."""
    judged = Judgement.objects.filter(
        run=run, current=True, run_metric=metric, candidate=candidate, other_response=None
    )
    found: Items = {}
    rows = without_excluded(run, judged).order_by("position").values_list(*_COLUMNS).iterator(_BATCH)
    for pk, asked_by, row, response, number, reading, score, override, override_score in rows:
        item = found.setdefault(keys[row].key if keys else row, Collected(row))
        text = None if override is None else f"{number}:{override}"
        item.parts.append(ItemJudgement(pk, asked_by or pk, response, reading, score, text, override_score))
    return found


class Rereading(Protocol):
    """What differs between the definitions an item was judged by, and the scores of its replies under the later
    ones."""

    def settings(self, before: Collected, after: Collected) -> frozenset[str]: ...

    def read(self, before: Collected, after: Collected) -> Mapping[str, Mapping[int, float | None]]:
        """{cause: {judgement of the earlier run: score}}; see core.change.Item."""
        ...


def matched(
    first: Items, second: Items, keys: tuple[dict[int, RowKey], dict[int, RowKey]], rereading: Rereading
) -> Iterator[SharedItem]:
    """The items that both runs have."""
    both = [(one, second[key]) for key, one in first.items() if key in second]
    differing = [pair for pair in both if pair[0].responses != pair[1].responses]
    answers = _answers([one for pair in differing for one in pair])
    asked_otherwise = (pair for pair in both if {"judge", "prompt"} <= rereading.settings(*pair))
    prompts = _prompts([one for pair in asked_otherwise for one in pair])
    for key in dict.fromkeys((*first, *second)):
        before, after = first.get(key), second.get(key)
        first_side = _side(before, after, keys[0], answers, prompts) if before else None
        second_side = _side(after, before, keys[1], answers, prompts) if after else None
        if before is None or after is None:
            yield SharedItem(key, first_side, second_side)
        else:
            read = {
                cause: mean_of(_scores_read(before, after, scores))
                for cause, scores in rereading.read(before, after).items()
            }
            yield SharedItem(key, first_side, second_side, rereading.settings(before, after), read)


def _scores_read(
    before: Collected, after: Collected, scores: Mapping[int, float | None]
) -> Iterator[float | None]:
    for place, one in enumerate(before.parts):
        shared = _shared(one, after, place)
        yield one.override_score if shared else scores.get(one.judgement, one.score)


def _shared(one: ItemJudgement, other: Collected | None, place: int) -> bool:
    """Whether both runs have the same override of an answer at the same place of its item."""
    known = other is not None and one.override is not None and place < len(other.parts)
    return known and other.parts[place].override == one.override  # type: ignore[union-attr]


def _side(
    item: Collected,
    other: Collected | None,
    keys: dict[int, RowKey],
    answers: dict[int, str],
    prompts: dict[int, str],
) -> Side:
    known = [answers[one] for one in item.responses if one in answers]
    own = (
        one.override_score if _shared(one, other, place) else one.score
        for place, one in enumerate(item.parts)
    )
    return Side(
        content=keys[item.row].content if keys else "",
        answers=_digest(known) if known else "",
        value=item.mean,
        own=mean_of(own),
        override="\n".join(sorted(one.override for one in item.parts if one.override is not None)),
        prompts=_digest([prompts.get(one.asked, "") for one in item.parts]) if prompts else "",
    )


def _answers(items: list[Collected]) -> dict[int, str]:
    """Digests of the answers by id: equal answers in different versions or runs have different ids."""
    ids = [one for item in items for one in item.responses]
    found: dict[int, str] = {}
    for start in range(0, len(ids), _BATCH):
        raws = Response.objects.filter(pk__in=ids[start : start + _BATCH]).values_list("pk", "raw")
        found |= {pk: _digest([json.dumps(_loaded(raw), sort_keys=True)]) for pk, raw in raws}
    return found


def _prompts(items: list[Collected]) -> dict[int, str]:
    """Digests of the messages sent to judges, by the id of the attempt that sent them."""
    ids = [one.asked for item in items for one in item.parts]
    sent: dict[int, list[str]] = {}
    for start in range(0, len(ids), _BATCH):
        replies = JudgeReply.objects.filter(judgement__in=ids[start : start + _BATCH])
        for pk, request in replies.order_by("judge", "repeat", "swapped").values_list("judgement", "request"):
            sent.setdefault(pk, []).append(json.dumps(_loaded(request).get("messages")))
    return {pk: _digest(messages) for pk, messages in sent.items()}


def _loaded(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text) if text else {}
    return found


def _digest(parts: Iterable[str]) -> str:
    made = hashlib.blake2b(digest_size=16)
    for part in parts:
        made.update(part.encode("utf-8", "surrogatepass") + b"\0")
    return made.hexdigest()
