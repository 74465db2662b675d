"""Counts of a run's judgements by state and reason, and helpers to run many queries in one statement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import Count, QuerySet

from evalsite.templatetags.show import number
from judging.runs.filters import (
    ALL,
    ANYTHING,
    CURRENT,
    ENDED_WITHOUT,
    OLDER,
    Filters,
    lines_of,
    matching,
    names_of,
    ranges_of,
    states_of,
)
from judging.runs.models import Judgement, JudgementState, Run

_DETAILS_LOOKED_AT = 1_000
_QUERIES_AT_ONCE = 100  # SQLite takes 500
MOST_COUNTED = 10_000

_Statement = tuple[str, Sequence[Any]]  # SQL and its parameters


def counts_by_state(run: Run, filters: Filters) -> dict[str, int] | None:
    """{state: count} by the filter without its state. Counts above MOST_COUNTED are returned as MOST_COUNTED + 1,
    unless the exact number is already stored. None if too many judgements would have to be read."""
    anyhow = replace(filters, state="", sort="position")
    if anyhow == ANYTHING:
        return {state: count for state, count in counts_in_force(run).items() if count}
    if reads_judgements(run, anyhow):
        return None
    if anyhow == replace(ANYTHING, attempts=ALL):
        return dict(
            Counter(counts_in_force(run)) + Counter(counts_by_state(run, replace(anyhow, attempts=OLDER)))
        )
    if anyhow.indexed or _few_rows(run, anyhow):
        return dict(matching(run, anyhow).values_list("state_in_force").annotate(count=Count("*")).order_by())
    if anyhow.spread is not None:  # nearly all judgements with a spread have a score
        (count,) = _counts_of(run, [anyhow])
        if count > MOST_COUNTED:
            return {JudgementState.SCORED: count}
        return dict(Counter(matching(run, anyhow).values_list("state_in_force", flat=True)))
    possible = states_of(anyhow)
    counts = _counts_of(run, [replace(anyhow, state=state) for state in possible])
    return {state: count for state, count in zip(possible, counts, strict=True) if count}


def reads_judgements(run: Run, filters: Filters) -> bool:
    """Whether the filter has to read more judgements than is acceptable for a page."""
    return run.total > MOST_COUNTED and filters.looks_inside and not _few_rows(run, filters)


def _few_rows(run: Run, filters: Filters) -> bool:
    return filters.line is not None or lines_of(run, filters) is not None


def counts_of_choices(run: Run, filters: Filters, choices: dict[str, list[str]]) -> dict[str, dict[str, int]]:
    """{parameter: {value: number of matches with it}}, at most MOST_COUNTED + 1 each. Empty if too many judgements
    would have to be read."""
    rest = filters.without(*choices)
    if run.total > MOST_COUNTED and (rest.looks_inside or rest.spread is not None):
        return {}
    named = [(name, value) for name, values in choices.items() for value in values]
    counts = _counts_of(run, [filters.replaced(name, value) for name, value in named])
    found: dict[str, dict[str, int]] = {}
    for (name, value), count in zip(named, counts, strict=True):
        found.setdefault(name, {})[value] = count
    return found


def _counts_of(run: Run, meant: Sequence[Filters]) -> list[int]:
    """The number of judgements that each filter matches, at most MOST_COUNTED + 1."""
    names = names_of(run)
    parts = [
        ranges_of(run, one, names, ordered=False) if one.by_figures else [matching(run, one)] for one in meant
    ]
    return limited_counts(parts, MOST_COUNTED + 1)


def count_text(*counts: int, exact: bool = False) -> str:
    """The formatted sum of counts; "10,000+" if one exceeds MOST_COUNTED, unless they are `exact`."""
    beyond = not exact and max(counts, default=0) > MOST_COUNTED
    return f"{number(MOST_COUNTED)}+" if beyond else number(sum(counts))


def counts_are_exact(filters: Filters) -> bool:
    """Whether the filter's counts are the run's stored counters, which are exact."""
    return replace(filters, state="", sort="position", attempts=CURRENT) == ANYTHING


def counts_in_force(run: Run) -> dict[str, int]:
    """{state in force: count}, from the run's counters of original states and its overrides."""
    return counts_of_runs([run])[0][1]


def counts_of_runs(runs: Sequence[Run]) -> list[tuple[Run, dict[str, int]]]:
    """Each run with its `counts_in_force`, with one query for all."""
    found = Judgement.objects.filter(run__in=runs, override_value__isnull=False).order_by()
    overridden: dict[int, Counter[str]] = {run.pk: Counter() for run in runs}
    for run_id, state, count in found.values_list("run", "state").annotate(count=Count("*")):
        overridden[run_id][state] = count
    return [(run, _in_force(run, overridden[run.pk])) for run in runs]


def _in_force(run: Run, overridden: Counter[str]) -> dict[str, int]:
    own = (run.scored, run.no_score, run.unparsed, run.errors, run.not_run)
    counts = Counter(dict(zip(JudgementState.values, own, strict=True)))
    counts.subtract(overridden)
    counts[JudgementState.SCORED] += overridden.total()
    return {state: max(0, counts[state]) for state in JudgementState.values}


def overridden_states(run: Run) -> Counter[str]:
    """{original state: count} of overridden judgements, which have a partial index."""
    found = Judgement.objects.filter(run=run, override_value__isnull=False).order_by()
    return Counter(dict(found.values_list("state").annotate(count=Count("*"))))


def reasons(run: Run) -> list[tuple[str, str, int]]:
    """(state, reason, count) of current judgements that ended without a value, most frequent first."""
    ended = (JudgementState.NO_SCORE, JudgementState.UNPARSED, JudgementState.ERROR)
    if run.done == run.scored:
        return []
    found = Judgement.objects.filter(ENDED_WITHOUT, run=run, current=True, state__in=ended).order_by()
    counted = found.values_list("state", "reason").annotate(count=Count("*"))  # index-only scan
    return sorted(counted, key=lambda one: (-one[2], one[1]))


def failed_answers(run: Run) -> list[tuple[str, int]]:
    """Why candidate models gave no answer: (code, number of judgements), most frequent first. Based on the first
    _DETAILS_LOOKED_AT errors; the numbers are 0 if there are more."""
    errors = matching(run, Filters(state=JudgementState.ERROR, reason="answer_failed")).order_by()
    details = errors.values_list("detail", flat=True)[: _DETAILS_LOOKED_AT + 1]
    found = Counter(detail.partition(": ")[0] for detail in details)
    known = found.total() <= _DETAILS_LOOKED_AT
    return [(code, count if known else 0) for code, count in found.most_common() if code]


def common_details(run: Run) -> dict[str, tuple[str, int]]:
    """{error reason: (most frequent detail, count)}, from the first _DETAILS_LOOKED_AT errors."""
    if not run.errors:
        return {}
    errors = matching(run, Filters(state=JudgementState.ERROR)).exclude(detail="").order_by()
    counted = Counter(errors.values_list("reason", "detail")[:_DETAILS_LOOKED_AT])
    found: dict[str, tuple[str, int]] = {}
    for (reason, detail), count in counted.most_common():
        found.setdefault(reason, (detail, count))
    return found


def limited_counts(parts: Sequence[Sequence[QuerySet[Any, Any]]], most: int) -> list[int]:
    """The number of rows of each group of queries, at most `most` each."""
    counts, statements = [0] * len(parts), list[_Statement]()
    for place, together in enumerate(parts):
        compiled = _compiled([part.values("position") for part in together])
        if compiled:
            rows = _united([sql for sql, _ in compiled])
            counting = f"SELECT {place}, COUNT(*) FROM (SELECT 1 FROM ({rows}) AS part LIMIT {most}) AS few"  # noqa: S608
            statements.append((counting, [value for _, values in compiled for value in values]))
    for place, count in _rows_of(statements):
        counts[place] = count
    return counts


def _united(statements: Sequence[str]) -> str:
    """A UNION ALL of statements, nested if there are many because SQLite limits the number of terms."""
    if len(statements) <= _QUERIES_AT_ONCE:
        return " UNION ALL ".join(statements)
    at_once = range(0, len(statements), _QUERIES_AT_ONCE)
    parts = [_united(statements[at : at + _QUERIES_AT_ONCE]) for at in at_once]
    return _united([f"SELECT * FROM ({part}) AS part" for part in parts])  # noqa: S608


def union_rows(parts: Sequence[QuerySet[Any, Any]]) -> list[Any]:
    """Return the rows of all parts in order, in one statement. Django's unions don't support limits on SQLite."""
    return _rows_of([(f"SELECT * FROM ({sql}) AS part", values) for sql, values in _compiled(parts)])  # noqa: S608


def _compiled(parts: Iterable[QuerySet[Any, Any]]) -> list[_Statement]:
    """The SQL and parameters of the queries, without those that nothing can match."""
    found: list[_Statement] = []
    for part in parts:
        with suppress(EmptyResultSet):
            found.append(part.query.sql_with_params())
    return found


def _rows_of(statements: Sequence[_Statement]) -> list[Any]:
    """The rows of all statements in order."""
    found: list[Any] = []
    for at in range(0, len(statements), _QUERIES_AT_ONCE):
        together = statements[at : at + _QUERIES_AT_ONCE]
        with connection.cursor() as cursor:
            sql = " UNION ALL ".join(sql for sql, _ in together)
            cursor.execute(sql, [value for _, values in together for value in values])
            found += cursor.fetchall()
    return found
