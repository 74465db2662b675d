"""Matching the items of two runs: by row if both use the same version, else by the rows' `id`, else by content."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple, Protocol, cast

from django.db.models import Q

from datasets.core.formats import Format
from datasets.core.kinds import BOTH_BAD, COMPARISON_CODES, turned
from datasets.core.variables import row_data
from datasets.models import Response, Row, Version
from judging.core.asking_again import first_messages
from judging.core.change import SharedItem, Side
from judging.core.pairs import share_of_a
from judging.core.values import SCORED, UNSETTLED, Outcome, Value, value_of
from judging.records.models import Judgement, JudgementQuerySet, JudgeReply, Run
from judging.records.seal import unsealed
from judging.reports.selectors import clusters_of, metrics_of
from judging.teamwork.marks import without_excluded

Cell = tuple[str, str]
"""Names of a metric and a candidate."""

_BATCH = 5_000
_OF_EACH = ("pk", "replies_from_id", "row_id", "response_id", "response__number", "reading_id")
_COLUMNS = (*_OF_EACH, "score", "value", "override_value", "override_score")
_PAIR_COLUMNS = (
    *_OF_EACH, "other_response_id", "other_response__number", "candidate_id", "state", "value", "override_value",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class RowKey:
    """The key that a row is matched by, and a digest of its contents except answers and `id`."""

    key: Hashable
    content: str


class ItemJudgement(NamedTuple):
    """A judgement of an item. `attempt`: the one whose replies were parsed; `reading`: id of the metric's reading used,
    None for the run's own; `override`: a reviewer's value as text, or None. A comparison of candidates is scored by
    what it counts in the candidate's win rate; `other`: the answer that `response` is compared with; `is_b`: whether
    `response` is the judgement's second answer. `labels`: what labels count as, where all of the metric's have a
    value."""

    judgement: int
    attempt: int
    response: int
    reading: int | None
    score: float | None
    override: str | None
    override_score: float | None
    other: int | None = None
    is_b: bool = False
    labels: Mapping[str, float] | None = None

    def score_of(self, outcome: Outcome) -> float | None:
        """The score that the judgement has with this outcome."""
        if self.other is not None:
            return _win_share(outcome.state, outcome.value, self.is_b)
        return _counted(self.labels, outcome.value, outcome.score)

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
        answers = ((part.response, part.other) for part in self.parts)
        return [answer for both in answers for answer in both if answer is not None]

    @property
    def readings(self) -> frozenset[int | None]:
        return frozenset(part.reading for part in self.parts)

    @property
    def mean(self) -> float | None:
        return mean_of(part.in_force for part in self.parts)


def mean_of(scores: Iterable[float | None]) -> float | None:
    """Mean of the scores, without None."""
    scored = [score for score in scores if score is not None]
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
    row_keys = {}
    for pk, own, content in rows:
        if own in shared_ids:
            row_keys[pk] = RowKey(("id", own), content)
        else:
            seen[content] += 1
            row_keys[pk] = RowKey(("content", content, seen[content]), content)
    return row_keys


def clusters_by_row(run: Run) -> dict[int, str]:
    """{row id: cluster} for a version whose rows say which belong together."""
    clusters = clusters_of(run)
    if not clusters:
        return {}
    rows = Row.objects.filter(version=run.version_id, valid=True).values_list("pk", "line")
    return {pk: clusters[line] for pk, line in rows.iterator(_BATCH) if line in clusters}


def scale_width(run: Run, metric: int, items: Iterable[Collected]) -> float | None:
    """The width of a metric's scale, extended to the items' scores; None if it has no declared scale."""
    parts = [part for item in items for part in item.parts]
    if any(part.other is not None for part in parts):
        return 1.0
    scores = [score for part in parts if (score := part.in_force) is not None]
    judged = Judgement.objects.filter(run=run, current=True, run_metric=metric)
    if set(scores) <= {0.0, 1.0} and judged.filter(value_in_force__in=("true", "false")).exists():
        return 1.0
    scale = metrics_of(run)[metric]
    if scale.low is None or scale.high is None:
        return None
    width = max([scale.high, *scores]) - min([scale.low, *scores])
    return width if width > 0 else None


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
    judged = Judgement.objects.filter(run=run, current=True, run_metric=metric)
    judged = unsealed(run, without_excluded(run, judged)).order_by("position")
    items: Items = {}
    labels = metrics_of(run)[metric].label_values
    answers = judged.filter(candidate=candidate, other_response=None)
    for row, part in chain(_of_answers(answers, labels), _of_pairs(judged, candidate)):
        items.setdefault(keys[row].key if keys else row, Collected(row)).parts.append(part)
    return items


def _counted(labels: Mapping[str, float] | None, value: Value | None, score: float | None) -> float | None:
    """What a verdict counts in the mean: its score, or its label's value."""
    return labels.get(value) if labels and isinstance(value, str) else score


def _of_answers(
    judged: JudgementQuerySet, labels: Mapping[str, float] | None
) -> Iterator[tuple[int, ItemJudgement]]:
    """Judgements of one answer, each with its row."""
    for (
        pk,
        replies_from,
        row,
        response,
        number,
        reading,
        score,
        value,
        override,
        override_score,
    ) in judged.values_list(*_COLUMNS).iterator(_BATCH):
        text = None if override is None else f"{number}:{override}"
        if labels:
            score = _counted(labels, value_of(value), score)
            override_score = _counted(labels, value_of(override), override_score)
        yield (
            row,
            ItemJudgement(
                pk, replies_from or pk, response, reading, score, text, override_score, labels=labels
            ),
        )


def _of_pairs(judged: JudgementQuerySet, candidate: int) -> Iterator[tuple[int, ItemJudgement]]:
    """Judgements that compare an answer of the candidate with another's, each with its row."""
    candidates = judged.filter(
        Q(candidate=candidate) | Q(other_response__candidate=candidate),
        candidate__version__number__gt=0,  # no references
        other_response__candidate__version__number__gt=0,
    )
    for (
        pk, replies_from, row, response, number, reading, other, other_number, candidate_of_a, state, value, override,
    ) in candidates.values_list(*_PAIR_COLUMNS).iterator(_BATCH):  # fmt: skip
        is_b = candidate_of_a != candidate
        own, against = (other, response) if is_b else (response, other)
        share = _win_share(state, value_of(value), is_b)
        text = override_share = None
        if override is not None:
            override_share = _win_share(SCORED, value_of(override), is_b)
            text = f"{number}:{other_number}:{override}"
        yield (
            row,
            ItemJudgement(
                pk, replies_from or pk, own, reading, share, text, override_share, other=against, is_b=is_b
            ),
        )


def _win_share(state: str, value: Value | None, is_b: bool) -> float | None:
    """What a judgement of two answers counts in the win rate of one; None without a verdict."""
    if state == UNSETTLED:
        return 0.5
    if state != SCORED or value not in (*COMPARISON_CODES, BOTH_BAD):
        return None
    return share_of_a(str(turned(value) if is_b else value))


def says_forms(run: Run, metric: int) -> bool:
    """Whether the run's verdicts say in which form they were read: releases before 0.2 read otherwise and stored no
    form. True without verdicts."""
    judged = Judgement.objects.filter(run=run, run_metric=metric, current=True).exclude(verdicts="")
    first = judged.order_by("position").values_list("verdicts", flat=True).first()
    return first is None or '"form":' in first


class Rereading(Protocol):
    """What differs between the definitions an item was judged by, and the scores of its replies under the later
    ones."""

    def settings(self, before: Collected, after: Collected) -> frozenset[str]: ...

    def read(self, before: Collected, after: Collected) -> Mapping[str, Mapping[int, float | None]]:
        """{cause: {judgement of the earlier run: score}}; see core.change.Item."""
        ...


def matched(
    first: Items,
    second: Items,
    keys: tuple[dict[int, RowKey], dict[int, RowKey]],
    rereading: Rereading,
    clusters: Mapping[int, str],
) -> Iterator[SharedItem]:
    """The items of both runs; `clusters`: by row id."""
    both = [(item, second[key]) for key, item in first.items() if key in second]
    differing = [pair for pair in both if pair[0].responses != pair[1].responses]
    answers = _answers([item for pair in differing for item in pair])
    asked_otherwise = (pair for pair in both if {"judge", "prompt"} <= rereading.settings(*pair))
    prompts = _prompts([item for pair in asked_otherwise for item in pair])
    for key in dict.fromkeys((*first, *second)):
        before, after = first.get(key), second.get(key)
        first_side = _side(before, after, keys[0], answers, prompts) if before else None
        second_side = _side(after, before, keys[1], answers, prompts) if after else None
        cluster = next(
            (clusters[item.row] for item in (after, before) if item and item.row in clusters), None
        )
        if before is None or after is None:
            yield SharedItem(key, first_side, second_side, cluster=cluster)
        else:
            read = {
                cause: mean_of(_scores_read(before, after, scores))
                for cause, scores in rereading.read(before, after).items()
            }
            yield SharedItem(key, first_side, second_side, rereading.settings(before, after), read, cluster)


def _scores_read(
    before: Collected, after: Collected, scores: Mapping[int, float | None]
) -> Iterator[float | None]:
    for place, part in enumerate(before.parts):
        shared = _shared(part, after, place)
        yield part.override_score if shared else scores.get(part.judgement, part.score)


def _shared(part: ItemJudgement, other: Collected | None, place: int) -> bool:
    """Whether both runs have the same override of an answer at the same place of its item."""
    comparable = other is not None and part.override is not None and place < len(other.parts)
    return comparable and other.parts[place].override == part.override  # type: ignore[union-attr]


def _side(
    item: Collected,
    other: Collected | None,
    keys: dict[int, RowKey],
    answers: dict[int, str],
    prompts: dict[int, str],
) -> Side:
    digests = [answers[response] for response in item.responses if response in answers]
    own = (
        part.override_score if _shared(part, other, place) else part.score
        for place, part in enumerate(item.parts)
    )
    return Side(
        content=keys[item.row].content if keys else "",
        answers=_digest(digests) if digests else "",
        value=item.mean,
        own=mean_of(own),
        override="\n".join(sorted(part.override for part in item.parts if part.override is not None)),
        prompts=_digest([prompts.get(part.attempt, "") for part in item.parts]) if prompts else "",
    )


def _answers(items: list[Collected]) -> dict[int, str]:
    """Digests of the answers by id: equal answers in different versions or runs have different ids."""
    ids = [response for item in items for response in item.responses]
    digests: dict[int, str] = {}
    for start in range(0, len(ids), _BATCH):
        raws = Response.objects.filter(pk__in=ids[start : start + _BATCH]).values_list("pk", "raw")
        digests |= {pk: _digest([json.dumps(_loaded(raw), sort_keys=True)]) for pk, raw in raws}
    return digests


def _prompts(items: list[Collected]) -> dict[int, str]:
    """Digests of the messages sent to judges, by the id of the attempt that sent them."""
    ids = [part.attempt for item in items for part in item.parts]
    sent: dict[int, list[str]] = {}
    for start in range(0, len(ids), _BATCH):
        replies = JudgeReply.objects.filter(judgement__in=ids[start : start + _BATCH])
        for pk, request in replies.order_by("judge", "repeat", "swapped").values_list("judgement", "request"):
            sent.setdefault(pk, []).append(json.dumps(first_messages(_loaded(request))))
    return {pk: _digest(messages) for pk, messages in sent.items()}


def _loaded(text: str) -> dict[str, Any]:
    decoded: dict[str, Any] = json.loads(text) if text else {}
    return decoded


def _digest(parts: Iterable[str]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        digest.update(part.encode("utf-8", "surrogatepass") + b"\0")
    return digest.hexdigest()
