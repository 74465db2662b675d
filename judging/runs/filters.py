"""Which judgements of a run are meant: the filter that stands in the address of the list, of one judgement
within it and of every download, and the queries that it becomes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db.models import Func, Q, QuerySet, TextField
from django.utils.http import urlencode

from datasets.models import Response, Row
from evalsite.web.numbers import whole
from judging.runs.models import (
    Judgement,
    JudgementQuerySet,
    JudgementState,
    Run,
    RunCandidate,
    RunMetric,
)

CURRENT, OLDER, ALL = "current", "older", "all"
ATTEMPTS = (CURRENT, OLDER, ALL)
LOWER = "lower"
RULE_SCORES = ("1", "2", "3", "4", "5", LOWER)
SORTS = ("position", "score", "-score", "seconds", "-seconds")
YES, NO = "yes", "no"
UNSCORED = tuple(state for state in JudgementState.values if state != JudgementState.SCORED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """What is asked for; '' and None mean anything. Candidate and metric go by name, so that an address can be read.
    States, values and scores are those in force; `overridden` is `yes` or `no`.

    `rule`: a line of a rule program, by its number, that scored `rule_score` (1 to 5, or `lower` than 5) on some field.
    `least` ≤ score ≤ `most`, score < `below`; `value` is a category, true, false or a number.
    """

    candidate: str = ""
    metric: str = ""
    state: str = ""
    reason: str = ""
    flag: str = ""
    value: str = ""
    overridden: str = ""
    least: float | None = None
    most: float | None = None
    below: float | None = None
    line: int | None = None
    rule: str = ""
    rule_score: str = ""
    attempts: str = CURRENT
    q: str = ""
    sort: str = "position"

    def query(self, **more: object) -> str:
        """The address's query string, shortest form: '' or '?…'."""
        named = {name: getattr(self, name) for name in self.__slots__}
        asked = {name: value for name, value in named.items() if value != getattr(ANYTHING, name)}
        asked |= {name: value for name, value in more.items() if value not in (None, "")}
        return "?" + urlencode(asked) if asked else ""

    @property
    def by_figures(self) -> bool:
        """Does it ask for a state or a score, so that few judgements may be meant among many? The index of the
        figures, which holds current attempts only, finds those; reasons and flags have indexes of their own."""
        asked = (self.candidate, self.metric, self.state, self.value, self.least, self.most, self.below)
        return (
            self.attempts == CURRENT and not self.indexed and any(value not in (None, "") for value in asked)
        )

    @property
    def indexed(self) -> bool:
        """Does it ask for what another index finds, whatever else?"""
        overridden = self.overridden == YES
        return self.line is not None or bool(self.reason or self.flag) or overridden or self.attempts == OLDER

    @property
    def looks_inside(self) -> bool:
        """Must judgements themselves be read, which no index holds?"""
        return bool(self.q or self.rule or self.category) or self.overridden == NO

    @property
    def without_bounds(self) -> Filters:
        """The same, of any score."""
        return replace(self, least=None, most=None, below=None, state=self.state or JudgementState.SCORED)

    @property
    def chooses(self) -> bool:
        """May long stretches of the run hold nothing that is meant? Candidates and metrics lie side by side."""
        return replace(self, candidate="", metric="", attempts=CURRENT, sort="position") != ANYTHING

    @property
    def valued(self) -> float | None:
        """`value` as the score that it has; None for a category."""
        if self.value in ("true", "false"):
            return float(self.value == "true")
        try:
            return float(self.value)
        except ValueError:
            return None

    @property
    def category(self) -> str | None:
        """`value` as the category that it names, as it stands or quoted as in JSON; None for a score."""
        if self.valued is not None:
            return None
        try:
            quoted = json.loads(self.value) if self.value.startswith('"') else self.value
        except ValueError:
            return self.value
        return str(quoted)

    @property
    def one_score(self) -> Q | None:
        """Does all that is meant have one score, or none? Then the index of the figures has it by position."""
        if self.attempts != CURRENT or self.reason:
            return None
        if self.state in UNSCORED:
            return Q(score_in_force=None)
        if self.least is not None and self.least == self.most and self.below is None and not self.value:
            return Q(score_in_force=self.least)
        return None if self.valued is None else Q(score_in_force=self.valued)


ANYTHING = Filters()


class AnswerText(Func):
    """The `content` of a response's JSON. What the database cannot read as JSON is searched as it stands."""

    output_field = TextField()

    def as_sqlite(self, compiler: Any, connection: Any, **extra: Any) -> Any:
        template = "CASE WHEN JSON_VALID(%(expressions)s) THEN JSON_EXTRACT(%(expressions)s, '$.content') END"
        return self.as_sql(compiler, connection, template=template, **extra)

    def as_postgresql(self, compiler: Any, connection: Any, **extra: Any) -> Any:
        # PostgreSQL's json refuses NUL and half characters, which a response may hold as escapes.
        template = (
            r"CASE WHEN %(expressions)s = '' OR %(expressions)s ~* '\\u(0000|d[89a-f])' THEN %(expressions)s "
            r"ELSE (%(expressions)s)::json ->> 'content' END"
        )
        return self.as_sql(compiler, connection, template=template, **extra)


def matching(
    run: Run, filters: Filters, *, by_figures: bool | None = None, states: Sequence[str] = ()
) -> JudgementQuerySet:
    """The judgements of `run` that are meant, in no order.

    `by_figures`: read them by the index of the figures, not in the order of positions; by default if few are meant.
    `states`: of these alone, then. A further filter by states would leave it to the database which of both it searches
    by, and SQLite reads them all.
    """
    found = Judgement.objects.filter(_attempts(filters), run=run)
    if by_figures if by_figures is not None else filters.by_figures:
        # Every metric, candidate and state by name: so the index leads through the first two to the third.
        found = found.filter(run_metric__in=_metrics(run, filters), candidate__in=_candidates(run, filters))
        found = found.filter(state_in_force__in=states or states_of(filters))
    else:
        found = found.filter(_named(run, filters))
    if filters.reason:
        found = found.filter(ENDED_WITHOUT, reason=filters.reason)
    if filters.flag:
        found = found.filter(_flagged(filters.flag), flags__gt="")  # the condition of the index of flags
    if filters.overridden:
        found = found.filter(override_value__isnull=filters.overridden != YES)
    if filters.line is not None:
        found = found.filter(_of_row(run, filters.line))
    if filters.q:
        found = found.alias(answer=AnswerText("response__raw")).filter(answer__icontains=filters.q)
    rule = whole(filters.rule)
    if rule is not None:
        found = found.filter(_rule_line(rule, filters.rule_score))
    return found.filter(_scores(filters))


ENDED_WITHOUT = Q(finished_at__isnull=False, reason__gt="", override_value__isnull=True)
"""The condition of the index of reasons."""


def _of_row(run: Run, line: int) -> Q:
    """By the row's responses, which have an index; a rater's judgement has none, and people's runs are small."""
    rows = Row.objects.filter(version=run.version_id, line=line).values("pk")
    if run.by_people:
        return Q(row__in=rows)
    of_reference = Q(row__version__dataset=run.version.dataset_id, row__version__number=0, row__line__in=rows)
    responses = Response.objects.filter(Q(row__in=rows) | of_reference if run.imported else Q(row__in=rows))
    judged = Judgement.objects.filter(
        BY_SOURCES if run.imported else BY_METRICS, response__in=list(responses.values_list("pk", flat=True))
    )
    return Q(pk__in=list(judged.values_list("pk", flat=True)))


# The conditions of the indexes that find judgements by their responses: of imported runs, and of those of workers.
BY_SOURCES = Q(source__isnull=False)
BY_METRICS = Q(rater=None, source=None, other_response=None)


def figures_of(run: Run, filters: Filters) -> list[Q]:
    """Each metric, candidate and state that is meant: a stretch of the index of the figures."""
    metrics = _metrics(run, filters).values_list("pk", flat=True)
    candidates = list(_candidates(run, filters).values_list("candidate", flat=True))
    return [
        Q(run_metric=metric, candidate=candidate, state_in_force=state)
        for metric in metrics
        for candidate in candidates
        for state in states_of(filters)
    ]


def _flagged(flag: str) -> Q:
    """Whole codes: one may end like another."""
    ends = Q(flags=flag) | Q(flags__startswith=f"{flag},") | Q(flags__endswith=f",{flag}")
    return ends | Q(flags__contains=f",{flag},")


def _rule_line(line: int, score: str) -> Q:
    """A line's number and score stand at the beginning of its JSON (store.write), where no text of others can be."""
    begins = f'"line":{line},"score":'
    if score == LOWER:
        wanted = [f"{begins}{low}" for low in (1, 2, 3, 4)]
    elif score:
        wanted = [f"{begins}{score},", f"{begins}{score}.0,"]
    else:
        wanted = [begins]
    found = Q()
    for text in wanted:
        found |= Q(rules__contains=text)
    return found


def _attempts(filters: Filters) -> Q:
    return Q() if filters.attempts == ALL else Q(current=filters.attempts == CURRENT)


def _named(run: Run, filters: Filters) -> Q:
    named = (
        Q()
        if states_of(filters) == tuple(JudgementState.values)
        else Q(state_in_force__in=states_of(filters))
    )
    if filters.metric:
        named &= Q(run_metric__in=_metrics(run, filters))
    return named & Q(candidate__in=_candidates(run, filters)) if filters.candidate else named


def _metrics(run: Run, filters: Filters) -> QuerySet[RunMetric, Any]:
    found = run.metrics.filter(name=filters.metric) if filters.metric else run.metrics.all()
    return found.values("pk")


def _candidates(run: Run, filters: Filters) -> QuerySet[RunCandidate, Any]:
    found = run.run_candidates.all()
    if filters.candidate:
        found = found.filter(candidate__name=filters.candidate)
    return found.values("candidate")


def states_of(filters: Filters) -> tuple[str, ...]:
    if filters.state:
        return (filters.state,)
    if filters.value or any(bound is not None for bound in (filters.least, filters.most, filters.below)):
        return (JudgementState.SCORED,)
    return UNSCORED if filters.reason else tuple(JudgementState.values)


def _scores(filters: Filters) -> Q:
    found = Q()
    if filters.least is not None:
        found &= Q(score_in_force__gte=filters.least)
    if filters.most is not None:
        found &= Q(score_in_force__lte=filters.most)
    if filters.below is not None:
        found &= Q(score_in_force__lt=filters.below)
    return found & _value(filters.value) if filters.value else found


def _value(text: str) -> Q:
    if text in ("true", "false"):
        return Q(value_in_force=text, score_in_force=Filters(value=text).valued)
    valued = Filters(value=text).valued
    if valued is not None:
        return Q(score_in_force=valued) & ~Q(value_in_force__in=("true", "false"))
    category = Filters(value=text).category
    return Q(value_in_force=json.dumps(category, ensure_ascii=False), score_in_force=None)


def meaning_category(label: str) -> str:
    """The `value` that means this category: quoted where it would otherwise read as a score or lose blanks."""
    alone = Filters(value=label).category == label == label.strip()
    return label if alone else json.dumps(label, ensure_ascii=False)
