"""How many judgements of a run are in which state, and why there are no scores; and one statement for many queries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
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


def counts_by_state(run: Run, filters: Filters) -> dict[str, int] | None:
    """{state: how many}, by all of the filter but the state itself; of more than MOST_COUNTED one beyond that many,
    unless they are counted already. None where the judgements themselves had to be read, more than that many."""
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
    if anyhow.spread is not None:  # nearly all that has a spread has a score
        (count,) = _counts_of(run, [anyhow])
        if count > MOST_COUNTED:
            return {JudgementState.SCORED: count}
        return dict(Counter(matching(run, anyhow).values_list("state_in_force", flat=True)))
    possible = states_of(anyhow)
    counts = _counts_of(run, [replace(anyhow, state=state) for state in possible])
    return {state: count for state, count in zip(possible, counts, strict=True) if count}


def reads_judgements(run: Run, filters: Filters) -> bool:
    """Must more judgements themselves be read, to know which are meant, than a page waits for?"""
    return run.total > MOST_COUNTED and filters.looks_inside and not _few_rows(run, filters)


def _few_rows(run: Run, filters: Filters) -> bool:
    return filters.line is not None or lines_of(run, filters) is not None


def counts_of_choices(run: Run, filters: Filters, choices: dict[str, list[str]]) -> dict[str, dict[str, int]]:
    """{parameter: {value: how many judgements the filter would mean with it}}, one beyond MOST_COUNTED of more than
    that many. Empty where judgements themselves would have to be read."""
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
    """How many judgements each filter means, one beyond MOST_COUNTED of more than that many."""
    names = names_of(run)
    parts = [
        ranges_of(run, one, names, ordered=False) if one.by_figures else [matching(run, one)] for one in meant
    ]
    return limited_counts(parts, MOST_COUNTED + 1)


def count_text(*counts: int, exact: bool = False) -> str:
    """The sum of some counts as people read it; unless they are `exact`, "10,000+" where one went beyond that many."""
    beyond = not exact and max(counts, default=0) > MOST_COUNTED
    return f"{number(MOST_COUNTED)}+" if beyond else number(sum(counts))


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
    counted = found.values_list("state", "reason").annotate(count=Count("*"))  # the index alone is read
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


def limited_counts(parts: Sequence[Sequence[QuerySet[Any, Any]]], most: int) -> list[int]:
    """How many rows each of some queries together have, `most` of more than that many."""
    counts, statements = [0] * len(parts), list[tuple[str, Sequence[Any]]]()
    for place, together in enumerate(parts):
        compiled = [one for part in together if (one := _compiled(part.values("position"))) is not None]
        if compiled:
            rows = _united([sql for sql, _ in compiled])
            counting = f"SELECT {place}, COUNT(*) FROM (SELECT 1 FROM ({rows}) AS part LIMIT {most}) AS few"  # noqa: S608
            statements.append((counting, [value for _, values in compiled for value in values]))
    for at in range(0, len(statements), _QUERIES_AT_ONCE):
        counts_here = statements[at : at + _QUERIES_AT_ONCE]
        with connection.cursor() as cursor:
            values = [value for _, given in counts_here for value in given]
            cursor.execute(" UNION ALL ".join(sql for sql, _ in counts_here), values)
            for place, count in cursor.fetchall():
                counts[place] = count
    return counts


def _united(statements: Sequence[str]) -> str:
    """All rows of some statements; of many in parts, since SQLite takes no more of them side by side."""
    if len(statements) <= _QUERIES_AT_ONCE:
        return " UNION ALL ".join(statements)
    at_once = range(0, len(statements), _QUERIES_AT_ONCE)
    parts = [_united(statements[at : at + _QUERIES_AT_ONCE]) for at in at_once]
    return _united([f"SELECT * FROM ({part}) AS part" for part in parts])  # noqa: S608


def union_rows(parts: Sequence[QuerySet[Any, Any]]) -> list[Any]:
    """The rows of all parts, one part after another.

    One statement for many queries: Django's own unions take no limits on SQLite."""
    compiled = [one for part in parts if (one := _compiled(part)) is not None]
    found: list[Any] = []
    for at in range(0, len(compiled), _QUERIES_AT_ONCE):
        together = compiled[at : at + _QUERIES_AT_ONCE]
        sql = " UNION ALL ".join(f"SELECT * FROM ({one}) AS part" for one, _ in together)  # noqa: S608
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
