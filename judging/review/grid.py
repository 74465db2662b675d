"""The grid of items: the rows that match a filter, each with all candidates' answers and their judgements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from datasets.models import Response, Row
from evalsite.truncation import truncate
from judging.core.metric_definition import MetricDefinition
from judging.core.values import value_of
from judging.filters.conditions import by_response
from judging.filters.judgement_filter import Filters
from judging.filters.orders import ListPosition
from judging.filters.page_limits import LIMITS, Limits
from judging.filters.search import Match, nearest
from judging.messages import verdict_texts
from judging.records.definitions import definitions_now
from judging.records.models import Judgement, Run
from judging.records.seal import unsealed
from judging.records.stored_judgement import data_of
from judging.review.selectors import answer_text, flag_names
from judging.teamwork.models import FLAG, Mark, MarkKind

ROWS = 20  # per page
MOST_JUDGEMENTS = 4_000  # read for one page
EXCERPT = 400  # characters of a question or an answer

_FIELDS = (
    "position", "run_metric_id", "response_id", "candidate_id", "source", "state", "value", "reason", "flags",
    "attempt", "state_in_force", "value_in_force", "score_in_force", "override_value",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Pill:
    """A judgement in the grid. Its HTML is built here, not in a template, because a page has hundreds of them.

    `level` from 1 (lowest of the scale) to SCALE_LEVELS, or None; `meant`: it matches the filter.
    """

    judgement: Judgement
    metric: str
    shown: str
    level: int | None
    meant: bool

    @property
    def name(self) -> str:
        """The metric's name; for an imported verdict also its source, for a comparison the other candidate."""
        source, other = self.judgement.source, self.judgement.other_response
        against = _("vs. %(name)s") % {"name": other.candidate.name} if other else ""
        return " · ".join(filter(None, (source.name if source else "", self.metric, against)))

    def html(self, base: str, query: str, marks: Iterable[Mark]) -> SafeString:
        """A link to its page, below `base`; grid.js opens it in the panel. Its name is for hovering and screen
        readers: the table's head names the metrics."""
        judgement = self.judgement
        level = format_html(' data-level="{}"', self.level) if self.level else ""
        other = "" if self.meant else mark_safe(" data-other")
        value = format_html("<strong>{}</strong>", self.shown)
        value = value if self.shown else format_html("<span>{}</span>", judgement.get_state_display())
        address = f"{base}{judgement.pk}/{query}"
        return format_html(
            '<a class="pill" href="{}" data-pk="{}"{}{} title="{}">'
            '{} <span class="visually-hidden">{}</span>{}</a>',
            *(address, judgement.pk, level, other, self.name, value, self.name, self._signs(marks)),
        )

    def _signs(self, marks: Iterable[Mark]) -> SafeString:
        """Icons for its flags and for reviewers' marks."""
        signs = [(_("overridden"), "✎")] if self.judgement.overridden else []
        if self.judgement.flags:
            signs.append((", ".join(flag_names(self.judgement)), "⚑"))
        for mark in marks:
            if mark.kind == MarkKind.EXCLUDED:
                signs.append((_("excluded"), "⊘"))
            elif mark.kind == MarkKind.TAG:
                signs.append((_("flagged"), "⚑") if mark.name == FLAG else (mark.name, "#"))
        return format_html_join("", ' <span aria-label="{}">{}</span>', signs)


def pill_of(judgement: Judgement, metric: MetricDefinition, text: str, *, meant: bool = True) -> Pill:
    """`text`: of its value in force, unless that stands for a verdict."""
    level = metric.level(judgement.value_in_force, judgement.score_in_force)
    verdict = metric.verdict_of(value_of(judgement.value_in_force))
    return Pill(judgement, metric.name, verdict or text, level, meant)


@dataclass(slots=True)
class GridAnswer:
    """A candidate's answer: its beginning and its judgements."""

    response: int
    number: int
    text: str
    longer: bool
    pills: list[Pill] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class GridRow:
    """A row with a cell for each candidate; a cell is empty if the candidate has no answer."""

    line: int
    question: str
    candidates: list[str]
    cells: list[list[GridAnswer]]

    @property
    def named(self) -> list[tuple[str, list[GridAnswer]]]:
        """The cells with their candidates' names."""
        return list(zip(self.candidates, self.cells, strict=True))


@dataclass(frozen=True, slots=True)
class GridPage:
    """`next`: place of the page's last judgement, None on the last page. `stopped`: where the search stopped early,
    after `looked_at` judgements."""

    candidates: list[str]
    rows: list[GridRow]
    next: ListPosition | None
    stopped: ListPosition | None = None
    looked_at: int = 0
    back = False


def grid_page(
    run: Run,
    filters: Filters,
    after: ListPosition | None = None,
    *,
    rows: int = ROWS,
    limits: Limits = LIMITS,
) -> GridPage:
    """The page of `rows` rows after a place, or the first. A row's place is that of its first matching judgement."""
    candidates = dict(run.run_candidates.order_by("candidate").values_list("candidate_id", "candidate__name"))
    limit = min(MOST_JUDGEMENTS, rows * -(-run.total // max(1, run.rows)) + 1)
    look = nearest(run, filters, after, limit, limits=limits)
    shown, ids, end = _first_rows(look.matches, limit, rows)
    return GridPage(
        list(candidates.values()),
        _rows(run, shown, candidates, ids),
        end or look.stopped,
        look.stopped,
        look.looked_at,
    )


def _first_rows(
    matches: Sequence[Match], limit: int, count: int
) -> tuple[list[int], set[int], ListPosition | None]:
    """The first `count` rows, the ids of their matching judgements, and the place after which the next page starts."""
    row_of = dict(
        Judgement.objects.filter(pk__in=[match.pk for match in matches]).values_list("pk", "row_id")
    )
    rows: dict[int, None] = {}
    ids: set[int] = set()
    last: ListPosition | None = None
    for pk, place in matches:
        if row_of[pk] not in rows and len(rows) == count:
            return list(rows), ids, last
        rows[row_of[pk]] = None
        ids.add(pk)
        last = place
    return list(rows), ids, last if len(matches) == limit else None


def _rows(run: Run, rows: list[int], candidates: dict[int, str], meant: set[int]) -> list[GridRow]:
    answers = _answers(run, rows, list(candidates), meant)
    rows_by_id = Row.objects.in_bulk(rows)
    return [
        GridRow(
            rows_by_id[row].line,
            truncate(data_of(rows_by_id[row].raw, run.version.format)["question"] or "", EXCERPT),
            list(candidates.values()),
            [answers.get((row, candidate), []) for candidate in candidates],
        )
        for row in rows
    ]


def _answers(
    run: Run, rows: list[int], candidates: list[int], meant: set[int]
) -> dict[tuple[int, int], list[GridAnswer]]:
    """Answers with their pills by (row, candidate), ordered by number."""
    responses = Response.objects.filter(row__in=rows, candidate__in=candidates).order_by("number")
    by_id: dict[int, GridAnswer] = {}
    answers: dict[tuple[int, int], list[GridAnswer]] = {}
    for response in responses:
        text = answer_text(response.raw)
        by_id[response.pk] = GridAnswer(response.pk, response.number, text[:EXCERPT], len(text) > EXCERPT)
        answers.setdefault((response.row_id, response.candidate_id), []).append(by_id[response.pk])
    metrics = definitions_now(run)
    judgements = _judgements(run, list(by_id), list(metrics))
    for judgement, text in zip(judgements, _texts(judgements), strict=True):
        metric = metrics[judgement.run_metric_id]
        pill = pill_of(judgement, metric, text, meant=judgement.pk in meant)
        by_id[judgement.response_id].pills.append(pill)
    return answers


def _texts(judgements: Sequence[Judgement]) -> list[str]:
    """The values in force, with equal decimals for each metric; `judgements`: ordered by metric."""
    by_metric = groupby(judgements, key=lambda judgement: judgement.run_metric_id)
    return [
        text
        for _metric, group in by_metric
        for text in verdict_texts([value_of(judgement.value_in_force) for judgement in group])
    ]


def _judgements(run: Run, responses: list[int], metrics: list[int]) -> list[Judgement]:
    # Not filtered by run, which the metrics imply: an index that starts with the run would be scanned completely.
    judgements = Judgement.objects.filter(
        by_response(run), run_metric__in=metrics, response__in=responses, current=True
    )
    judgements = unsealed(run, judgements)
    others = "other_response__candidate"
    judgements = judgements.select_related("source", others).only(*_FIELDS, "source__name", f"{others}__name")
    return sorted(judgements, key=lambda judgement: (judgement.run_metric_id, judgement.position))
