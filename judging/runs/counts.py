"""How many judgements of a run are in which state, and why there are no scores; and one statement for many queries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import Count, QuerySet

from judging.runs.filters import (
    ALL,
    ANYTHING,
    CURRENT,
    ENDED_WITHOUT,
    OLDER,
    Filters,
    matching,
    states_of,
)
from judging.runs.models import Judgement, JudgementState, Run

_DETAILS_LOOKED_AT = 1_000
_QUERIES_AT_ONCE = 100  # SQLite takes 500
MOST_COUNTED = 10_000


def counts_by_state(run: Run, filters: Filters) -> dict[str, int] | None:
    """{state: how many}, by all of the filter but the state itself; of more than MOST_COUNTED one beyond that many,
    unless they are counted already. None where the judgements themselves had to be read, more than that many."""
    anyhow = replace(filters, state="", sort="position")
    if anyhow == ANYTHING:
        return {state: count for state, count in counts_in_force(run).items() if count}
    if anyhow.looks_inside and anyhow.line is None and run.total > MOST_COUNTED:
        return None
    if anyhow == replace(ANYTHING, attempts=ALL):
        return dict(
            Counter(counts_in_force(run)) + Counter(counts_by_state(run, replace(anyhow, attempts=OLDER)))
        )
    if anyhow.indexed:
        return dict(matching(run, anyhow).values_list("state_in_force").annotate(count=Count("*")).order_by())
    meant = [matching(run, replace(anyhow, state=state)) for state in states_of(anyhow)]
    parts = [found.values_list("state_in_force")[: MOST_COUNTED + 1] for found in meant]
    return {state: count for state, count in union_rows(parts, "MIN(state_in_force), COUNT(*)") if count}


def counts_are_exact(filters: Filters) -> bool:
    """Are they those that are kept in the transactions that write judgements?"""
    return replace(filters, state="", sort="position", attempts=CURRENT) == ANYTHING


def counts_in_force(run: Run) -> dict[str, int]:
    """{state in force: how many}: the run's counters, which are of the attempts' own states, and its overrides."""
    return counts_of_runs([run])[0][1]


def counts_of_runs(runs: Sequence[Run]) -> list[tuple[Run, dict[str, int]]]:
    """Each run with its `counts_in_force`."""
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
    """{own state: how many} of the overridden judgements; an index holds them, and nothing else."""
    found = Judgement.objects.filter(run=run, override_value__isnull=False).order_by()
    return Counter(dict(found.values_list("state").annotate(count=Count("*"))))


def reasons(run: Run) -> list[tuple[str, str, int]]:
    """(state, reason, how many) of the current judgements that ended without a value, the most frequent first."""
    ended = (JudgementState.NO_SCORE, JudgementState.UNPARSED, JudgementState.ERROR)
    if run.done == run.scored:
        return []
    found = Judgement.objects.filter(ENDED_WITHOUT, run=run, current=True, state__in=ended).order_by()
    counted = found.values_list("state", "reason").annotate(count=Count("*"))  # the index alone tells
    return sorted(counted, key=lambda one: (-one[2], one[1]))


def failed_answers(run: Run) -> list[tuple[str, int]]:
    """Why models under test gave no answer: (code, judgements), the most frequent first; of the first errors, and 0
    where these are not all."""
    errors = matching(run, Filters(state=JudgementState.ERROR, reason="answer_failed")).order_by()
    details = errors.values_list("detail", flat=True)[: _DETAILS_LOOKED_AT + 1]
    found = Counter(detail.partition(": ")[0] for detail in details)
    known = found.total() <= _DETAILS_LOOKED_AT
    return [(code, count if known else 0) for code, count in found.most_common() if code]


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


def union_rows(parts: Sequence[QuerySet[Any, Any]], columns: str = "*") -> list[Any]:
    """The rows of all parts, one part after another; `columns` may be an aggregate over each part.

    One statement for many queries: Django's own unions take no limits on SQLite."""
    compiled = [one for part in parts if (one := _compiled(part)) is not None]
    found: list[Any] = []
    for at in range(0, len(compiled), _QUERIES_AT_ONCE):
        together = compiled[at : at + _QUERIES_AT_ONCE]
        sql = " UNION ALL ".join(f"SELECT {columns} FROM ({one}) AS part" for one, _ in together)  # noqa: S608
        with connection.cursor() as cursor:
            cursor.execute(sql, [value for _, values in together for value in values])
            found += cursor.fetchall()
    return found


def _compiled(part: QuerySet[Any, Any]) -> tuple[str, Sequence[Any]] | None:
    """The query's SQL and what is filled in; None where nothing can match."""
    try:
        return part.query.sql_with_params()
    except EmptyResultSet:
        return None
