"""The items of two runs, matched: by row where both are over one version, else by the rows' `id`, else by content."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, cast

from datasets.core.formats import Format
from datasets.core.variables import row_data
from datasets.models import Response, Row, Version
from judging.core.change import Item, Side
from judging.runs.models import Judgement, JudgeReply, Run

Cell = tuple[str, str]
"""Names of a metric and a candidate."""

_BATCH = 5_000
_COLUMNS = (
    "pk", "asked_by_id", "row_id", "response_id", "response__number", "score_in_force", "override_value",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class RowKey:
    """What a row is matched by, and a digest of all it holds beside its answers and its `id`."""

    key: Hashable
    content: str


@dataclass(slots=True)
class Collected:
    """The judgements of one item in one run. `asked`: the attempts whose replies they were read from."""

    row: int
    responses: list[int] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    overrides: list[str] = field(default_factory=list)
    judgements: list[int] = field(default_factory=list)
    asked: list[int] = field(default_factory=list)

    @property
    def mean(self) -> float | None:
        return math.fsum(self.scores) / len(self.scores) if self.scores else None


Items = dict[Hashable, Collected]
"""A cell's items by their keys."""


def row_keys(before: Run, after: Run) -> tuple[dict[int, RowKey], dict[int, RowKey]]:
    """By the id of each row of the runs' versions; empty where both are over one version."""
    if before.version_id == after.version_id:
        return {}, {}
    first, second = _rows_of(before.version), _rows_of(after.version)
    shared_ids = _unique_ids(first) & _unique_ids(second)
    return _keys(first, shared_ids), _keys(second, shared_ids)


_RowContent = tuple[int, str | None, str]


def _rows_of(version: Version) -> list[_RowContent]:
    """Row id, the row's own `id` as JSON, and the digest of the rest."""
    rows = Row.objects.filter(version=version, valid=True).order_by("line").values_list("pk", "raw")
    return [(pk, *_content(raw, cast(Format, version.format))) for pk, raw in rows.iterator(_BATCH)]


def _content(raw: str, form: Format) -> tuple[str | None, str]:
    data = row_data(raw, form)
    own = data.pop("id", None)
    return (None if own is None else json.dumps(own)), _digest([json.dumps(data, sort_keys=True)])


def _unique_ids(rows: Iterable[_RowContent]) -> set[str]:
    seen: dict[str, int] = {}
    for _pk, own, _content in rows:
        if own is not None:
            seen[own] = seen.get(own, 0) + 1
    return {own for own, count in seen.items() if count == 1}


def _keys(rows: Iterable[_RowContent], shared_ids: set[str]) -> dict[int, RowKey]:
    """Rows of equal content are matched in the order of their lines."""
    seen: dict[str, int] = {}
    found = {}
    for pk, own, content in rows:
        if own in shared_ids:
            found[pk] = RowKey(("id", own), content)
        else:
            seen[content] = seen.get(content, 0) + 1
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
    """A cell's items by their keys, in the order of the run."""
    judged = Judgement.objects.filter(
        run=run, current=True, run_metric=metric, candidate=candidate, other_response=None
    )
    found: Items = {}
    rows = judged.order_by("position").values_list(*_COLUMNS).iterator(_BATCH)
    for pk, asked_by, row, response, number, score, override in rows:
        key = keys[row].key if keys else row
        item = found.setdefault(key, Collected(row))
        item.responses.append(response)
        item.judgements.append(pk)
        item.asked.append(asked_by or pk)
        if score is not None:
            item.scores.append(score)
        if override is not None:
            item.overrides.append(f"{number}:{override}")
    return found


def matched(
    first: Items,
    second: Items,
    keys: tuple[dict[int, RowKey], dict[int, RowKey]],
    *,
    with_prompts: bool,
) -> Iterator[Item]:
    """The items of both runs; `with_prompts` also with a digest of what the judges were sent."""
    differing = [
        one for key, one in first.items() if key in second and one.responses != second[key].responses
    ] + [one for key, one in second.items() if key in first and one.responses != first[key].responses]
    answers = _answers(differing)
    prompts = _prompts([*first.values(), *second.values()]) if with_prompts else {}
    for key in dict.fromkeys((*first, *second)):
        before, after = (
            _side(one[key], own, answers, prompts) if key in one else None
            for one, own in zip((first, second), keys, strict=True)
        )
        yield Item(key, before, after)


def _side(item: Collected, keys: dict[int, RowKey], answers: dict[int, str], prompts: dict[int, str]) -> Side:
    known = [answers[one] for one in item.responses if one in answers]
    return Side(
        content=keys[item.row].content if keys else "",
        answers=_digest(known) if known else "",
        value=item.mean,
        override="\n".join(sorted(item.overrides)),
        prompts=_digest([prompts.get(one, "") for one in item.asked]) if prompts else "",
    )


def _answers(items: list[Collected]) -> dict[int, str]:
    """Digests of the answers, by id: equal answers of different versions or runs are different rows of the table."""
    ids = [one for item in items for one in item.responses]
    found: dict[int, str] = {}
    for start in range(0, len(ids), _BATCH):
        raws = Response.objects.filter(pk__in=ids[start : start + _BATCH]).values_list("pk", "raw")
        found |= {pk: _digest([json.dumps(_loaded(raw), sort_keys=True)]) for pk, raw in raws}
    return found


def _prompts(items: list[Collected]) -> dict[int, str]:
    """Digests of the messages that judges were sent, by the id of the attempt that asked."""
    ids = [one for item in items for one in item.asked]
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
