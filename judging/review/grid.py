"""The grid of items: the rows that a filter means, each with every candidate's answers and their judgements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from datasets.models import Response, Row
from judging.core.metric_definition import MetricDefinition
from judging.core.values import stored_value_text
from judging.review.places import Place, nearest
from judging.review.selectors import answer_text, flag_names
from judging.runs.export.records import data_of
from judging.runs.filters import Filters
from judging.runs.models import IMPORTED, PEOPLE, Judgement, Run
from judging.runs.rerun.reparse import definition_now

ROWS = 20  # of a page
MOST_JUDGEMENTS = 4_000  # looked at for one page
EXCERPT = 400  # characters of a question or an answer
LEVELS = 5  # of the colour scale

_FIELDS = (
    "position", "run_metric_id", "response_id", "candidate_id", "source", "state", "value", "reason", "flags",
    "attempt", "state_in_force", "value_in_force", "score_in_force", "override_value",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Pill:
    """A judgement in the grid: `level` from 1 (the lowest scores of the scale) to LEVELS, None without a score.

    `meant`: the filter means it.
    """

    judgement: Judgement
    metric: str
    shown: str
    level: int | None
    meant: bool

    @property
    def name(self) -> str:
        """The metric's name; of an imported verdict also that of who gave it."""
        source = self.judgement.source
        return f"{source.name} · {self.metric}" if source else self.metric

    @property
    def flags(self) -> list[str]:
        return flag_names(self.judgement)


@dataclass(slots=True)
class Answer:
    """One answer of a candidate, its beginning, and what was said of it."""

    response: int
    number: int
    text: str
    longer: bool
    pills: list[Pill] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class GridRow:
    """A row with a cell for each candidate; a cell is empty where the candidate has no answer."""

    line: int
    question: str
    candidates: list[str]
    cells: list[list[Answer]]

    @property
    def named(self) -> list[tuple[str, list[Answer]]]:
        """The cells, each with its candidate's name."""
        return list(zip(self.candidates, self.cells, strict=True))


@dataclass(frozen=True, slots=True)
class GridPage:
    """`next` is the place after the page's last judgement; None at the end. `stopped`: the look ended there."""

    candidates: list[str]
    rows: list[GridRow]
    next: Place | None
    stopped: int | None = None


def grid_page(run: Run, filters: Filters, after: Place | None = None) -> GridPage:
    """The page after a place, or the first. A row stands where its first judgement that is meant stands."""
    candidates = dict(run.run_candidates.order_by("candidate").values_list("candidate_id", "candidate__name"))
    limit = min(MOST_JUDGEMENTS, ROWS * -(-run.total // max(1, run.rows)) + 1)
    look = nearest(run, filters, after, limit)
    rows, ids, end = _first_rows(look.found, limit)
    onward = Place(look.stopped, look.stopped) if look.stopped is not None else None
    return GridPage(list(candidates.values()), _rows(run, rows, candidates, ids), end or onward, look.stopped)


def _first_rows(
    found: Sequence[tuple[int, float, int]], limit: int
) -> tuple[list[int], set[int], Place | None]:
    """The first rows among the judgements, the ids of these, and after what the next page begins."""
    row_of = dict(Judgement.objects.filter(pk__in=[pk for pk, _, _ in found]).values_list("pk", "row_id"))
    rows: dict[int, None] = {}
    ids: set[int] = set()
    last: Place | None = None
    for pk, key, position in found:
        if row_of[pk] not in rows and len(rows) == ROWS:
            return list(rows), ids, last
        rows[row_of[pk]] = None
        ids.add(pk)
        last = Place(key, position)
    return list(rows), ids, last if len(found) == limit else None


def _rows(run: Run, rows: list[int], candidates: dict[int, str], meant: set[int]) -> list[GridRow]:
    answers = _answers(run, rows, list(candidates), meant)
    found = Row.objects.in_bulk(rows)
    return [
        GridRow(
            found[row].line,
            (data_of(found[row].raw, run.version.format)["question"] or "")[:EXCERPT],
            list(candidates.values()),
            [answers.get((row, candidate), []) for candidate in candidates],
        )
        for row in rows
    ]


def _answers(
    run: Run, rows: list[int], candidates: list[int], meant: set[int]
) -> dict[tuple[int, int], list[Answer]]:
    """By row and candidate, in the order of the answers' numbers, each with its pills."""
    responses = Response.objects.filter(row__in=rows, candidate__in=candidates).order_by("number")
    by_id: dict[int, Answer] = {}
    found: dict[tuple[int, int], list[Answer]] = {}
    for one in responses:
        text = answer_text(one.raw)
        by_id[one.pk] = Answer(one.pk, one.number, text[:EXCERPT], len(text) > EXCERPT)
        found.setdefault((one.row_id, one.candidate_id), []).append(by_id[one.pk])
    metrics = {one.pk: definition_now(one) for one in run.metrics.order_by("number")}
    for judgement in _judgements(run, list(by_id), list(metrics)):
        pill = _pill(judgement, metrics[judgement.run_metric_id], judgement.pk in meant)
        by_id[judgement.response_id].pills.append(pill)
    return found


def _judgements(run: Run, responses: list[int], metrics: list[int]) -> list[Judgement]:
    found = Judgement.objects.filter(run=run, run_metric__in=metrics, response__in=responses, current=True)
    if run.kind not in (PEOPLE, IMPORTED):
        found = found.filter(rater=None, source=None)  # the condition of the index by response
    found = found.select_related("source").only(*_FIELDS, "source__name")
    return list(found.order_by("run_metric_id", "position"))


def _pill(judgement: Judgement, metric: MetricDefinition, meant: bool) -> Pill:
    score, low, high = judgement.score_in_force, metric.min_score, metric.max_score
    if judgement.value_in_force in ("true", "false"):
        low, high = 0, 1
    level = None if score is None else level_of(score, low, high)
    return Pill(judgement, metric.name, stored_value_text(judgement.value_in_force), level, meant)


def level_of(score: float, low: float, high: float) -> int:
    """Where a score stands on its scale, in LEVELS equal parts; scores beyond the scale take its ends."""
    share = (score - low) / (high - low) if high > low else 1.0
    return 1 + min(LEVELS - 1, max(0, int(share * LEVELS)))
