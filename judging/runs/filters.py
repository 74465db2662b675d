"""Filters for a run's judgements: parsed from query strings of lists and downloads, converted to querysets."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django import forms
from django.db.models import (
    BigIntegerField,
    Exists,
    ExpressionWrapper,
    F,
    Func,
    OuterRef,
    Q,
    QuerySet,
    TextField,
)
from django.db.models.functions import Coalesce
from django.db.models.lookups import In
from django.http import HttpRequest
from django.utils.http import urlencode

from datasets.models import Response, Row
from evalsite.web.numbers import whole
from judging.runs.models import (
    INFER,
    Judgement,
    JudgementQuerySet,
    JudgementState,
    JudgeReply,
    Run,
    RunCandidate,
    RunMetric,
)
from judging.runs.row_filters import RowFilter, all_passing_rows, known_lines, passing_rows, these

CURRENT, OLDER, ALL = "current", "older", "all"
ATTEMPTS = (CURRENT, OLDER, ALL)
LOWER = "lower"
RULE_SCORES = ("1", "2", "3", "4", "5", LOWER)
SORTS = ("position", "candidate", "metric", "state", "score", "seconds", "spread")
"""Sort keys, ascending; a leading `-` sorts descending. Further filters with `keys` add theirs."""

YES, NO = "yes", "no"
FIELD = ("field", "field_is", "field_has", "field_from", "field_to")
UNSCORED = tuple(state for state in JudgementState.values if state != JudgementState.SCORED)


@dataclass(frozen=True, slots=True, kw_only=True)
class FurtherFilter:
    """A filter by data stored outside the judgements. One entry covers lists, exports, re-judging and the filter menu.

    `name`: the query parameter. `label`: the label of the menu field and the chip. `field`: the form field for the
    value; its cleaned value is converted to text. `condition`: matches the run's judgements with that value, of any
    attempt; an index must find them (`Q(pk__in=…)`), since all of them are sorted. `offered`: whether the run has any
    matches. `keys`: {id: number} of the matching current judgements, if lists can be sorted by that number. `hidden`:
    whether the filter must be hidden from the request's user in this run.
    """

    name: str
    label: Any
    field: Callable[[Run], forms.Field]
    condition: Callable[[Run, str], Q]
    offered: Callable[[Run], bool] = lambda run: True
    keys: Callable[[Run, str], Mapping[int, float]] | None = None
    hidden: Callable[[HttpRequest, Run], bool] = lambda request, run: False


FURTHER: dict[str, FurtherFilter] = {}
"""The further filters by name, in menu order. Added by `register` (JudgingConfig.ready)."""


def register(*filters: FurtherFilter) -> None:
    FURTHER.update({one.name: one for one in filters})


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """The values of a filter; '' and None match anything. Candidate and metric are names, so that URLs are readable.
    State, value and score are those in force, including overrides; `overridden` is `yes` or `no`.

    `rule`: the number of a rule program line that scored `rule_score` (1 to 5, or `lower` than 5) on some field.
    `least` ≤ score ≤ `most`, score < `below`. `value`: a category, true, false or a number. `question`, `q`, `reply`:
    text in the question, the answer or a judge's reply. `field`: a custom field of the rows that equals `field_is`,
    contains `field_has`, or is a number from `field_from` to `field_to`. `spread`: the minimum disagreement between a
    metric's judges. `further`: {name of a FurtherFilter: value}.
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
    question: str = ""
    q: str = ""
    reply: str = ""
    field: str = ""
    field_is: str = ""
    field_has: str = ""
    field_from: float | None = None
    field_to: float | None = None
    spread: float | None = None
    further: Mapping[str, str] = dataclasses.field(default_factory=dict)
    sort: str = "position"

    @property
    def asked(self) -> dict[str, Any]:
        """{parameter: value} of the active filters, in query string order."""
        named = {name: getattr(self, name) for name in self.__slots__ if name != "further"}
        asked = {name: value for name, value in named.items() if value != getattr(ANYTHING, name)}
        return asked | dict(self.further)

    def without(self, *names: str) -> Filters:
        """A copy that matches anything for these parameters."""
        plain = {name: getattr(ANYTHING, name) for name in names if name not in FURTHER}
        rest = {name: value for name, value in self.further.items() if name not in names}
        return replace(self, **plain, further=rest)

    def replaced(self, name: str, value: Any) -> Filters:
        """A copy with another value for a parameter."""
        if name in FURTHER:
            return replace(self, further={**self.further, name: value})
        return replace(self, **{name: value})

    @property
    def sorted_by(self) -> str:
        return self.sort.removeprefix("-")

    @property
    def falling(self) -> bool:
        return self.sort.startswith("-")

    def query(self, **more: object) -> str:
        """The query string in its shortest form: '' or '?…'."""
        asked = self.asked | {name: value for name, value in more.items() if value not in (None, "")}
        return "?" + urlencode(asked) if asked else ""

    @property
    def by_figures(self) -> bool:
        """Whether the filter is by name, state or score, so that few of many judgements may match. These are found with
        the judgement_figures index, which covers current attempts only; reasons and flags have separate indexes."""
        asked = (self.candidate, self.metric, self.state, self.value, self.least, self.most, self.below)
        elsewhere = self.indexed or self.spread is not None or self.attempts != CURRENT
        return not elsewhere and any(value not in (None, "") for value in asked)

    @property
    def indexed(self) -> bool:
        """Whether the filter is by an attribute that few judgements have and that another index covers."""
        named = self.reason or self.flag or self.further or self.overridden == YES
        return bool(named) or self.line is not None or self.attempts == OLDER

    @property
    def looks_inside(self) -> bool:
        """Whether judgements, rows, answers or replies must be read, because no index covers the filter."""
        return (
            bool(self.q or self.reply or self.rule or self.category or self.of_row) or self.overridden == NO
        )

    @property
    def outside(self) -> Filters:
        """A copy restricted to conditions that indexes cover."""
        inside = ["question", "q", "reply", "rule", "rule_score", *FIELD]
        inside += ["value"] if self.category else []
        inside += ["overridden"] if self.overridden == NO else []
        found = self.without(*inside)
        return replace(found, state=found.state or JudgementState.SCORED) if self.category else found

    @property
    def of_row(self) -> RowFilter:
        """The conditions on rows."""
        return RowFilter(
            question=self.question,
            field=self.field,
            equals=self.field_is,
            part=self.field_has,
            low=self.field_from,
            high=self.field_to,
        )

    @property
    def without_bounds(self) -> Filters:
        """A copy without score bounds, matching any score."""
        return replace(self, least=None, most=None, below=None, state=self.state or JudgementState.SCORED)

    @property
    def chooses(self) -> bool:
        """Whether long ranges may have no match. Candidate and metric don't count, since theirs are interleaved."""
        return replace(self, candidate="", metric="", attempts=CURRENT, sort="position") != ANYTHING

    @property
    def valued(self) -> float | None:
        """`value` as a score; None for a category."""
        if self.value in ("true", "false"):
            return float(self.value == "true")
        try:
            return float(self.value)
        except ValueError:
            return None

    @property
    def category(self) -> str | None:
        """`value` as a category, plain or quoted as in JSON; None for a score."""
        if self.valued is not None:
            return None
        try:
            quoted = json.loads(self.value) if self.value.startswith('"') else self.value
        except ValueError:
            return self.value
        return str(quoted)

    @property
    def one_score(self) -> Q | None:
        """The condition for the single score (or no score) that all matches share; the judgement_figures index then
        lists them by position. None if scores may differ."""
        if self.attempts != CURRENT or self.reason:
            return None
        if self.state in UNSCORED:
            return Q(score_in_force=None)
        if self.least is not None and self.least == self.most and self.below is None and not self.value:
            return Q(score_in_force=self.least)
        return None if self.valued is None else Q(score_in_force=self.valued)


ANYTHING = Filters()


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


def matching(run: Run, filters: Filters, *, by_figures: bool = True) -> JudgementQuerySet:
    """The judgements of `run` that match, unordered.

    Unless `by_figures`, always reads by position, also if few may match and the judgement_figures index finds them.
    """
    if by_figures and filters.by_figures:
        # List every metric, candidate and state, so that the index's first columns are always constrained.
        condition = Q(run_metric__in=_metrics(run, filters), candidate__in=_candidates(run, filters))
        return _matching(run, filters, condition & Q(state_in_force__in=states_of(filters)))
    return _matching(run, filters, _named(run, filters))


def ranges_of(
    run: Run, filters: Filters, names: RunNames | None = None, *, ordered: bool = True
) -> list[JudgementQuerySet]:
    """The matching judgements as one query per metric, candidate and state, so that any query planner reads a range of
    the judgement_figures index. If not `ordered`, all states together are one range."""
    rest, (metrics, candidates) = _matching(run, filters, Q()), names or names_of(run)
    states = [Q(state_in_force=state) for state in states_of(filters)]
    if not ordered and len(states) == len(JudgementState):
        states = [Q()]
    return [
        rest.filter(state, run_metric=metric, candidate=candidate)
        for metric, metric_name in metrics
        for candidate, name in candidates
        for state in states
        if filters.metric in ("", metric_name) and filters.candidate in ("", name)
    ]


RunNames = tuple[list[tuple[int, str]], list[tuple[int, str]]]
"""(id, name) pairs of a run's metrics and of its candidates."""


def names_of(run: Run) -> RunNames:
    metrics = run.metrics.order_by("number").values_list("pk", "name")
    candidates = run.run_candidates.order_by("candidate").values_list("candidate", "candidate__name")
    return list(metrics), list(candidates)


def _matching(run: Run, filters: Filters, condition: Q) -> JudgementQuerySet:
    found, inside = Judgement.objects.filter(_attempts(filters), condition, run=run), filters
    if filters.reason:
        found = found.filter(ENDED_WITHOUT, reason=filters.reason)
    if filters.flag:
        found = found.filter(_flagged(filters.flag), flags__gt="")  # the condition of the index of flags
    if filters.overridden == YES:
        found = found.filter(override_value__isnull=False)
    if filters.spread is not None:
        found = found.filter(spread__gte=filters.spread)
    lines = [filters.line] if filters.line is not None else lines_of(run, filters)
    if lines is not None:
        found = found.filter(_of_rows(run, lines, filters.q))
        inside = filters if run.by_people else filters.without("q")
    for name, value in filters.further.items():
        found = found.filter(FURTHER[name].condition(run, value))
    found = found.filter(_scores(filters))
    if filters.of_row:
        found = found.filter(row__in=these(all_passing_rows(run, filters.of_row)))
    return _inside(found, inside)


def among(run: Run, filters: Filters, ids: Sequence[int]) -> set[int]:
    """The ids, out of judgements that match `filters.outside`, that match the whole filter."""
    found = _inside(Judgement.objects.filter(pk__in=these(ids)), filters)
    if not filters.of_row:
        return set(found.values_list("pk", flat=True))
    row_of = dict(found.values_list("pk", "row"))
    rows = Row.objects.filter(pk__in=these(list(set(row_of.values())))).values_list("pk", "raw")
    passing = set(passing_rows(run, filters.of_row, rows.iterator()))
    return {pk for pk, row in row_of.items() if row in passing}


def lines_of(run: Run, filters: Filters) -> list[int] | None:
    """Lines of the only rows that can match; None if they are not known to be few."""
    return known_lines(run, replace(filters.of_row, answer="" if run.kind == INFER else filters.q))


def _inside(found: JudgementQuerySet, filters: Filters) -> JudgementQuerySet:
    """Apply the conditions for which judgements, answers and replies must be read."""
    if filters.overridden == NO:
        found = found.filter(override_value=None)
    if filters.category is not None and filters.value:
        category = json.dumps(filters.category, ensure_ascii=False)
        found = found.filter(value_in_force=category, score_in_force=None)
    if filters.q:
        found = found.alias(answer=AnswerText("response__raw")).filter(answer__icontains=filters.q)
    if filters.reply:
        replies = JudgeReply.objects.filter(judgement=Coalesce(OuterRef("asked_by"), OuterRef("pk")))
        found = found.filter(Exists(replies.filter(content__icontains=filters.reply)))
    rule = whole(filters.rule)
    return found if rule is None else found.filter(_rule_line(rule, filters.rule_score))


ENDED_WITHOUT = Q(finished_at__isnull=False, reason__gt="", override_value__isnull=True)
"""The condition of the judgement_reasons index."""


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
    judged = Judgement.objects.filter(
        by_response(run), response__in=these(list(responses.values_list("pk", flat=True)))
    )
    return Q(pk__in=these(list(judged.values_list("pk", flat=True))))


# Conditions of the indexes on judgements' responses: for imported runs and for runs of workers.
BY_SOURCES = Q(source__isnull=False)
BY_METRICS = Q(rater=None, source=None, other_response=None)


def by_response(run: Run) -> Q:
    """The condition of the index that finds a run's judgements by response. Empty for human evaluations, which are
    small."""
    if run.by_people:
        return Q()
    return BY_SOURCES if run.imported else BY_METRICS


def _flagged(flag: str) -> Q:
    """Match whole codes, because a code can be a suffix of another."""
    ends = Q(flags=flag) | Q(flags__startswith=f"{flag},") | Q(flags__endswith=f",{flag}")
    return ends | Q(flags__contains=f",{flag},")


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


def _attempts(filters: Filters) -> Q:
    return Q() if filters.attempts == ALL else Q(current=filters.attempts == CURRENT)


def _named(run: Run, filters: Filters) -> Q:
    states = states_of(filters)
    named = Q() if len(states) == len(JudgementState) else Q(state_in_force__in=states)
    if filters.metric and filters.indexed:
        # As a plain column, SQLite would scan the metric's part of judgement_figures instead of the few matches.
        metric = ExpressionWrapper(F("run_metric_id") + 0, output_field=BigIntegerField())
        named &= Q(In(metric, list(_metrics(run, filters).values_list("pk", flat=True))))
    elif filters.metric:
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
    if filters.value:
        found &= Q(score_in_force=filters.valued)  # None for a category, which _inside compares
        if filters.value in ("true", "false"):
            found &= Q(value_in_force=filters.value)
        elif filters.valued is not None:
            found &= ~Q(value_in_force__in=("true", "false"))
    return found


def meaning_category(label: str) -> str:
    """The `value` for this category, quoted if it would otherwise be parsed as a score or lose whitespace."""
    alone = Filters(value=label).category == label == label.strip()
    return label if alone else json.dumps(label, ensure_ascii=False)
