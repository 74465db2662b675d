"""What each filter requires of a judgement: the one place where filters become conditions on rows.

A filter that is added here takes part in lists, counts, exports, re-judging and actions on many judgements.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import and_
from typing import Any

from django.db.models import (
    BooleanField,
    Case,
    Func,
    OuterRef,
    Prefetch,
    Q,
    Subquery,
    TextField,
    When,
    prefetch_related_objects,
)
from django.db.models.functions import Coalesce
from django.db.models.lookups import IContains, IsNull

from datasets.models import Response, Row
from evalsite.web.numbers import whole
from judging.filters.judgement_filter import CURRENT, FURTHER, LOWER, NO, OLDER, UNSCORED, YES, Filters
from judging.filters.page_limits import LIMITS, Limits
from judging.filters.row_filters import RowFilter, all_passing_rows, id_subquery, indexed_lines, passing_rows
from judging.records.models import (
    INFER,
    Judgement,
    JudgementQuerySet,
    JudgementState,
    JudgeReply,
    Run,
    RunCandidate,
)
from judging.records.seal import sealed_labels

# Conditions of the indexes on judgements' responses: for imported runs and for runs of workers.
BY_SOURCES = Q(source__isnull=False)
BY_METRICS = Q(rater=None, source=None, other_response=None)
ENDED_WITHOUT = Q(finished_at__isnull=False, reason__gt="", override_value__isnull=True)
"""The condition of the judgement_reasons index."""


_BY_POSITION = Q(position__gte=0)
"""True for all. Without statistics, SQLite prefers an index with more columns to a partial one by position."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One requirement of a filter, `q`. `indexed`: judgements that include all matches and that an index finds; None:
    no index does. `covered`: every sort order's index contains the columns of `q`."""

    q: Q
    indexed: Q | None = None
    covered: bool = False


def _conditions(run: Run, filters: Filters, limits: Limits) -> Iterator[Condition]:
    current = Q(current=True) if filters.attempts == CURRENT else None
    sealed = sealed_labels(run)
    if sealed is not None:
        yield Condition(~sealed)
    cells = _cells(run, filters)
    if cells is not None:
        yield Condition(cells, current and current & cells, covered=True)
    if filters.reason:
        ended = ENDED_WITHOUT & Q(reason=filters.reason)
        yield Condition(ended, current and current & ended & Q(state__in=UNSCORED))
    if filters.flag:
        flagged = _flagged(filters.flag) & Q(flags__gt="")  # the condition of the index of flags
        yield Condition(flagged, flagged & _BY_POSITION)
    if filters.overridden:
        overridden = Q(override_value__isnull=filters.overridden == NO)
        yield Condition(overridden, overridden & _BY_POSITION if filters.overridden == YES else None)
    if filters.spread is not None:
        apart = Q(spread__gte=filters.spread)
        yield Condition(apart, current and current & apart)
    if filters.category is not None and filters.value:
        yield Condition(Q(value_in_force=json.dumps(filters.category, ensure_ascii=False)))
    lines = _lines(run, filters, limits.lines)
    if lines is not None:
        of_rows = _of_rows(run, lines, filters.q)
        yield Condition(of_rows, of_rows)
    if filters.q and (lines is None or run.by_people):
        yield Condition(Q(IContains(AnswerText("response__raw"), filters.q)))
    if filters.reply:
        replies = JudgeReply.objects.filter(judgement=Coalesce(OuterRef("replies_from"), OuterRef("pk")))
        reply = Subquery(replies.filter(content__icontains=filters.reply).values("pk")[:1])
        yield Condition(Q(IsNull(reply, False)))  # for EXISTS, PostgreSQL would search all replies first
    if filters.form:
        yield Condition(read_as(filters.form))
    if (rule := whole(filters.rule)) is not None:
        yield Condition(_rule_line(rule, filters.rule_score))
    for name, value in filters.further.items():
        further = FURTHER[name].condition(run, value)
        yield Condition(further, further)


@dataclass(frozen=True)
class Conditions:
    """All requirements of a filter in one run. Those on rows' texts (`of_row`) are checked in Python."""

    run: Run
    filters: Filters
    limits: Limits = LIMITS

    @cached_property
    def parts(self) -> list[Condition]:
        return list(_conditions(self.run, self.filters, self.limits))

    @property
    def of_row(self) -> RowFilter:
        return self.filters.of_row

    @property
    def covered(self) -> bool:
        """Whether the indexes of the sort orders suffice, so that no judgement, row or text must be read."""
        return not self.of_row and all(part.covered for part in self.parts)

    @property
    def in_database(self) -> Case:
        """All but the requirements on rows, as an expression. No query planner looks into it for an index."""
        together = reduce(and_, (part.q for part in self.parts), _attempts(self.filters))
        return Case(When(together, then=True), default=False, output_field=BooleanField())

    def among(self, judgements: JudgementQuerySet, *fields: Any) -> list[tuple[Any, ...]]:
        """(id, row, *fields) of the matches among judgements that can all be read."""
        return self.passing(list(self._in_database(judgements).values_list("pk", "row", *fields)))

    def count(self, judgements: JudgementQuerySet) -> int:
        """The number of matches among judgements that can all be read."""
        return len(self.among(judgements)) if self.of_row else self._in_database(judgements).count()

    def _in_database(self, judgements: JudgementQuerySet) -> JudgementQuerySet:
        return judgements.annotate(matches=self.in_database).filter(matches=True)

    def passing(self, matches: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        """Those (id, row, …) whose rows match."""
        if not self.of_row or not matches:
            return matches
        rows = Row.objects.filter(pk__in=id_subquery(list({row for _, row, *_ in matches})))
        passing = set(passing_rows(self.run, self.of_row, rows.values_list("pk", "raw").iterator()))
        return [match for match in matches if match[1] in passing]

    def few(self, limit: int) -> JudgementQuerySet | None:
        """At most `limit` judgements of the run that include all matches, if an index finds so few."""
        for part in reversed(self.parts):  # names, states and scores last: they match the most
            if part.indexed is not None:
                judgements = Judgement.objects.filter(part.indexed, run=self.run)
                if judgements[: limit + 1].count() <= limit:
                    return judgements
        return None


def matching(run: Run, filters: Filters, limits: Limits = LIMITS) -> JudgementQuerySet:
    """The judgements of `run` that match, unordered."""
    conditions = Conditions(run, filters, limits)
    matches = Judgement.objects.filter(_attempts(filters), *(part.q for part in conditions.parts), run=run)
    if conditions.of_row:
        matches = matches.filter(row__in=id_subquery(all_passing_rows(run, conditions.of_row)))
    return matches


def _attempts(filters: Filters) -> Q:
    """A list of values can be looked up in SQLite's indexes, a boolean only in those of current attempts."""
    if filters.attempts == CURRENT:
        return Q(current=True)
    return Q(current__in=[False]) if filters.attempts == OLDER else Q()


def _cells(run: Run, filters: Filters) -> Q | None:
    """By names, state and score. Every metric, candidate and state is listed, so that the first columns of the
    judgement_figures index are always constrained."""
    scores, states = _scores(filters), states_of(filters)
    if not (filters.metric or filters.candidate or scores or len(states) < len(JudgementState)):
        return None
    # Read once for all choices of the filter menu; neither changes after planning.
    candidates = Prefetch("run_candidates", RunCandidate.objects.select_related("candidate"))
    prefetch_related_objects([run], "metrics", candidates)
    return scores & Q(
        run_metric__in=[row.pk for row in run.metrics.all() if filters.metric in ("", row.name)],
        candidate__in=[
            row.candidate_id
            for row in run.run_candidates.all()
            if filters.candidate in ("", row.candidate.name)
        ],
        state_in_force__in=states,
    )


def states_of(filters: Filters) -> tuple[str, ...]:
    """The states that matches can have."""
    if filters.state:
        return (filters.state,)
    if filters.value or any(bound is not None for bound in (filters.least, filters.most, filters.below)):
        return (JudgementState.SCORED,)
    return tuple(JudgementState.values)


def _scores(filters: Filters) -> Q:
    scores = Q()
    if filters.least is not None:
        scores &= Q(score_in_force__gte=filters.least)
    if filters.most is not None:
        scores &= Q(score_in_force__lte=filters.most)
    if filters.below is not None:
        scores &= Q(score_in_force__lt=filters.below)
    if filters.value:
        scores &= Q(score_in_force=filters.valued)  # None for a category
        if filters.value in ("true", "false"):
            scores &= Q(value_in_force=filters.value)
        elif filters.valued in (0, 1):
            scores &= ~Q(value_in_force__in=("true", "false"))
    return scores


def _lines(run: Run, filters: Filters, most: int) -> list[int] | None:
    """Lines of the only rows that can match; None if they are not known to be few."""
    if filters.line is not None:
        return [filters.line]
    return indexed_lines(run, replace(filters.of_row, answer="" if run.kind == INFER else filters.q), most)


def _of_rows(run: Run, lines: Sequence[int], text: str) -> Q:
    """Judgements of these rows, found through the index on responses. Raters' judgements have no such index, but human
    evaluations are small. Each response is searched for the answer `text` once, not once per judgement."""
    rows = Row.objects.filter(version=run.version_id, line__in=lines).values("pk")
    if run.by_people:
        return Q(row__in=rows)
    of_reference = Q(row__version__dataset=run.version.dataset_id, row__version__number=0, row__line__in=rows)
    responses = Response.objects.filter(Q(row__in=rows) | of_reference if run.imported else Q(row__in=rows))
    if text:
        responses = responses.alias(answer=AnswerText("raw")).filter(answer__icontains=text)
    ids = id_subquery(list(responses.values_list("pk", flat=True)))
    of_answers = Q(response__in=ids)
    if run.by_workers and run.compares_candidates:
        of_answers |= Q(other_response__in=ids)
    judged = Judgement.objects.filter(by_response(run), of_answers)
    return Q(pk__in=id_subquery(list(judged.values_list("pk", flat=True))))


def by_response(run: Run) -> Q:
    """The condition of the index that finds a run's judgements by response. Empty for human evaluations, which are
    small. Runs that compare candidates have no such index for all their judgements."""
    if run.by_people:
        return Q()
    if run.by_workers and run.compares_candidates:
        return Q(run=run, rater=None, source=None)
    return BY_SOURCES if run.imported else BY_METRICS


def _flagged(flag: str) -> Q:
    """Match whole codes, because a code can be a suffix of another."""
    ends = Q(flags=flag) | Q(flags__startswith=f"{flag},") | Q(flags__endswith=f",{flag}")
    return ends | Q(flags__contains=f",{flag},")


def read_as(form: str) -> Q:
    """Judgements with a verdict that was read in this form. Users' texts can't look like it: their quotation marks are
    escaped in JSON."""
    return Q(verdicts__contains=f'"form":"{form}"')


def _rule_line(line: int, score: str) -> Q:
    """Match a line's number and score as text: they come first in its JSON, where user text can't occur."""
    begins = f'"line":{line},"score":'
    if score == LOWER:
        texts = [f"{begins}{low}" for low in (1, 2, 3, 4)]
    elif score:
        texts = [f"{begins}{score},", f"{begins}{score}.0,"]
    else:
        texts = [begins]
    return Q(*(("rules__contains", text) for text in texts), _connector=Q.OR)


class AnswerText(Func):
    """The `content` of a response's JSON."""

    output_field = TextField()

    def as_sqlite(self, compiler: Any, connection: Any, **extra: Any) -> Any:
        template = "CASE WHEN JSON_VALID(%(expressions)s) THEN JSON_EXTRACT(%(expressions)s, '$.content') END"
        return self.as_sql(compiler, connection, template=template, **extra)

    def as_postgresql(self, compiler: Any, connection: Any, **extra: Any) -> Any:
        # PostgreSQL's json rejects NUL and surrogates, which a response may contain as escapes: search the raw text.
        template = (
            r"CASE WHEN %(expressions)s = '' OR %(expressions)s ~* '\\u(0000|d[89a-f])' THEN %(expressions)s "
            r"ELSE (%(expressions)s)::json ->> 'content' END"
        )
        return self.as_sql(compiler, connection, template=template, **extra)
