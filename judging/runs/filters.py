"""Which judgements of a run are meant: the filter that stands in the address of the list, of one judgement
within it and of every download, and the queries that it becomes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db.models import Count, Func, Q, QuerySet, TextField
from django.utils.http import urlencode

from datasets.models import Row
from judging.runs.models import Judgement, JudgementState, Run, RunCandidate, RunMetric

CURRENT, OLDER, ALL = "current", "older", "all"
ATTEMPTS = (CURRENT, OLDER, ALL)
LOWER = "lower"
RULE_SCORES = ("1", "2", "3", "4", "5", LOWER)
SORTS = ("position", "score", "-score", "seconds", "-seconds")
UNSCORED = tuple(state for state in JudgementState.values if state != JudgementState.SCORED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """What is asked for; '' and None mean anything. Candidate and metric go by name, so that an address can be read.

    `rule`: a line of a rule program, by its number, that scored `rule_score` (1 to 5, or `lower` than 5) on some field.
    `least` ≤ score ≤ `most`, score < `below`; `value` is a category, true, false or a number.
    """

    candidate: str = ""
    metric: str = ""
    state: str = ""
    reason: str = ""
    flag: str = ""
    value: str = ""
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
        figures, which holds current attempts only, finds those."""
        asked = (self.state, self.reason, self.value, self.least, self.most, self.below)
        return self.attempts == CURRENT and any(value not in (None, "") for value in asked)


ANYTHING = Filters()
_DETAILS_LOOKED_AT = 1_000


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
) -> QuerySet[Judgement]:
    """The judgements of `run` that are meant, in no order.

    `by_figures`: read them by the index of the figures, not in the order of positions; by default if few are meant.
    `states`: of these alone, then. A further filter by states would leave it to the database which of both it searches
    by, and SQLite reads them all.
    """
    found = Judgement.objects.filter(_attempts(filters), run=run)
    if by_figures if by_figures is not None else filters.by_figures:
        # Every metric, candidate and state by name: so the index leads through the first two to the third.
        found = found.filter(run_metric__in=_metrics(run, filters), candidate__in=_candidates(run, filters))
        found = found.filter(state__in=states or _states(filters))
    else:
        found = found.filter(_named(run, filters))
    if filters.reason:
        found = found.filter(reason=filters.reason)
    if filters.flag:
        found = found.filter(_flagged(filters.flag))
    if filters.line is not None:
        found = found.filter(
            row__in=Row.objects.filter(version=run.version_id, line=filters.line).values("pk")
        )
    if filters.q:
        found = found.alias(answer=AnswerText("response__raw")).filter(answer__icontains=filters.q)
    if filters.rule.isdecimal():
        found = found.filter(_rule_line(int(filters.rule), filters.rule_score))
    return found.filter(_scores(filters))


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
    named = Q(state__in=_states(filters)) if filters.state or filters.reason else Q()
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


def _states(filters: Filters) -> tuple[str, ...]:
    if filters.state:
        return (filters.state,)
    return UNSCORED if filters.reason else tuple(JudgementState.values)


def _scores(filters: Filters) -> Q:
    found = Q()
    if filters.least is not None:
        found &= Q(score__gte=filters.least)
    if filters.most is not None:
        found &= Q(score__lte=filters.most)
    if filters.below is not None:
        found &= Q(score__lt=filters.below)
    return found & _value(filters.value) if filters.value else found


def _value(text: str) -> Q:
    if text in ("true", "false"):
        return Q(value=text)
    category = Q(value=json.dumps(text, ensure_ascii=False))
    try:
        return category | Q(score=float(text)) & ~Q(value__in=("true", "false"))
    except ValueError:
        return category


def counts_by_state(run: Run, filters: Filters) -> dict[str, int]:
    """{state: how many}, by all of the filter but the state itself."""
    anyhow = replace(filters, state="", sort="position")
    if anyhow == ANYTHING:
        return _run_counts(run)
    found = matching(run, anyhow, by_figures=anyhow.attempts == CURRENT)
    return dict(found.order_by().values_list("state").annotate(Count("pk")))


def _run_counts(run: Run) -> dict[str, int]:
    """The counters that are kept in the transactions that write judgements."""
    counts = (run.scored, run.no_score, run.unparsed, run.errors, run.not_run)
    return {state: count for state, count in zip(JudgementState.values, counts, strict=True) if count}


def reasons(run: Run) -> list[tuple[str, str, int]]:
    """(state, reason, how many) of the current judgements that ended without a value, the most frequent first."""
    ended = (JudgementState.NO_SCORE, JudgementState.UNPARSED, JudgementState.ERROR)
    if run.done == run.scored:
        return []
    found = matching(run, ANYTHING, by_figures=True, states=ended).order_by()
    counted = found.values_list("state", "reason").annotate(count=Count("pk"))
    return sorted(counted, key=lambda one: (-one[2], one[1]))


def common_details(run: Run) -> dict[str, tuple[str, int]]:
    """For each reason of an error the most frequent words, and how often they were met among the first errors."""
    if not run.errors:
        return {}
    errors = matching(run, Filters(state=JudgementState.ERROR)).exclude(detail="").order_by()
    met = Counter(errors.values_list("reason", "detail")[:_DETAILS_LOOKED_AT])
    found: dict[str, tuple[str, int]] = {}
    for (reason, detail), count in met.most_common():
        found.setdefault(reason, (detail, count))
    return found
