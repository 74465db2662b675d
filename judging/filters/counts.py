"""Counts of a run's judgements: by state under a filter, for each choice of the filter menu, and by reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.db.models import Count, Min

from evalsite.templatetags.show import number
from judging.filters.conditions import ENDED_WITHOUT, Conditions, matching, states_of
from judging.filters.judgement_filter import ALL, ANYTHING, CURRENT, OLDER, Filters
from judging.filters.page_limits import LIMITS, Limits
from judging.records.models import COUNTERS, Judgement, JudgementQuerySet, JudgementState, Run
from judging.records.seal import sealed_labels

_DETAILS_LOOKED_AT = 1_000


def counts_by_state(run: Run, filters: Filters, limits: Limits = LIMITS) -> dict[str, int] | None:
    """{state: count} by the filter without its state. Counts above the limit are returned as the limit + 1, unless the
    exact number is already stored. None if too many judgements would have to be read."""
    anyhow = replace(filters, state="", sort=ANYTHING.sort)
    if anyhow == ANYTHING and sealed_labels(run) is None:
        return {state: count for state, count in counts_in_force(run).items() if count}
    if anyhow.attempts == ALL:
        current, older = (
            counts_by_state(run, replace(anyhow, attempts=part), limits) for part in (CURRENT, OLDER)
        )
        return None if current is None or older is None else dict(Counter(current) + Counter(older))
    conditions = Conditions(run, anyhow, limits)
    few = _few(conditions, limits)
    if few is not None:
        # Not grouped by the database, which would read all judgements in the order of the states.
        return dict(Counter(state for _, _, state in conditions.among(few, "state_in_force")))
    if not conditions.covered:
        return None
    matches = matching(run, anyhow, limits)
    counts = {state: _limited(matches.filter(state_in_force=state), limits) for state in states_of(anyhow)}
    return {state: count for state, count in counts.items() if count}


def _few(conditions: Conditions, limits: Limits) -> JudgementQuerySet | None:
    """Judgements that can all be read and include all matches; None if there are too many."""
    if conditions.run.total > limits.counted:
        return conditions.few(limits.counted)
    return conditions.run.judgements.all()


def _limited(matches: JudgementQuerySet, limits: Limits) -> int:
    return matches[: limits.counted + 1].count()


def reads_judgements(run: Run, filters: Filters, limits: Limits = LIMITS) -> bool:
    """Whether the filter has to read more judgements than is acceptable for a page."""
    conditions = Conditions(run, filters, limits)
    return not conditions.covered and _few(conditions, limits) is None


def counts_of_choices(
    run: Run, filters: Filters, choices: dict[str, list[str]], limits: Limits = LIMITS
) -> dict[str, dict[str, int]]:
    """{parameter: {value: number of matches with it}}, at most the limit + 1 each. Without those for which too many
    judgements would have to be read."""
    counts: dict[str, dict[str, int]] = {}
    for name, values in choices.items():
        for value in values:
            count = _count(run, filters.replaced(name, value), limits)
            if count is not None:
                counts.setdefault(name, {})[value] = count
    return counts


def _count(run: Run, filters: Filters, limits: Limits) -> int | None:
    conditions = Conditions(run, filters, limits)
    if conditions.covered:
        return _limited(matching(run, filters, limits), limits)
    few = _few(conditions, limits)
    return None if few is None else conditions.count(few)


def count_text(*counts: int, exact: bool = False, limits: Limits = LIMITS) -> str:
    """The formatted sum of counts; "10,000+" if one exceeds the limit, unless they are `exact`."""
    beyond = not exact and max(counts, default=0) > limits.counted
    return f"{number(limits.counted)}+" if beyond else number(sum(counts))


def counts_are_exact(filters: Filters) -> bool:
    """Whether the filter's counts are the run's stored counters, which are exact."""
    return replace(filters, state="", sort="position", attempts=CURRENT) == ANYTHING


def counts_in_force(run: Run) -> dict[str, int]:
    """{state in force: count}, from the run's counters of original states and its overrides."""
    return counts_of_runs([run])[0][1]


def counts_of_runs(runs: Sequence[Run]) -> list[tuple[Run, dict[str, int]]]:
    """Each run with its `counts_in_force`, with one query for all."""
    judgements = Judgement.objects.filter(run__in=runs, override_value__isnull=False).order_by()
    overridden: dict[int, Counter[str]] = {run.pk: Counter() for run in runs}
    for run_id, state, count in judgements.values_list("run", "state").annotate(count=Count("*")):
        overridden[run_id][state] = count
    return [(run, _in_force(run, overridden[run.pk])) for run in runs]


def _in_force(run: Run, overridden: Counter[str]) -> dict[str, int]:
    own = {str(state): getattr(run, counter) for state, counter in COUNTERS.items()}
    counts = Counter[str]({**own, JudgementState.NOT_RUN: run.not_run})
    counts.subtract(overridden)
    counts[JudgementState.SCORED] += overridden.total()
    return {state: max(0, counts[state]) for state in JudgementState.values}


def overridden_states(run: Run) -> Counter[str]:
    """{original state: count} of overridden judgements, which have a partial index."""
    judgements = Judgement.objects.filter(run=run, override_value__isnull=False).order_by()
    return Counter(dict(judgements.values_list("state").annotate(count=Count("*"))))


def reasons(run: Run) -> list[tuple[str, str, int]]:
    """(state, reason, count) of current judgements that ended without a value, most frequent first."""
    ended = [state for state in COUNTERS if state != JudgementState.SCORED]
    if run.done == run.scored:
        return []
    judgements = Judgement.objects.filter(ENDED_WITHOUT, run=run, current=True, state__in=ended).order_by()
    counted = judgements.values_list("state", "reason").annotate(count=Count("*"))  # index-only scan
    return sorted(counted, key=lambda entry: (-entry[2], entry[1]))


@dataclass(frozen=True, slots=True)
class UnscoredGroup:
    """Current judgements of one metric that have no value for one reason; `line`: the first row's."""

    state: str
    metric: int
    reason: str
    count: int
    line: int


def unscored_groups(run: Run) -> list[UnscoredGroup]:
    """Why replies were not parsed or calls failed, the most frequent reason first; overridden judgements excluded."""
    judgements = Judgement.objects.filter(
        run=run,
        current=True,
        state__in=(JudgementState.UNPARSED, JudgementState.ERROR),
        override_value__isnull=True,
    ).order_by()
    groups = judgements.values_list("state", "run_metric", "reason")
    counted = groups.annotate(count=Count("*"), line=Min("row__line"))
    return sorted(
        (UnscoredGroup(*columns) for columns in counted), key=lambda group: (-group.count, group.line)
    )


def failed_answers(run: Run) -> list[tuple[str, int]]:
    """Why candidate models gave no answer: (code, number of judgements), most frequent first. Based on the first
    _DETAILS_LOOKED_AT errors; the numbers are 0 if there are more."""
    errors = matching(run, Filters(state=JudgementState.ERROR, reason="answer_failed")).order_by()
    details = errors.values_list("detail", flat=True)[: _DETAILS_LOOKED_AT + 1]
    counts = Counter(detail.partition(": ")[0] for detail in details)
    complete = counts.total() <= _DETAILS_LOOKED_AT
    return [(code, count if complete else 0) for code, count in counts.most_common() if code]


def common_details(run: Run) -> dict[str, tuple[str, int]]:
    """{error reason: (most frequent detail, count)}, from the first _DETAILS_LOOKED_AT errors."""
    if not run.errors:
        return {}
    errors = matching(run, Filters(state=JudgementState.ERROR)).exclude(detail="").order_by()
    counted = Counter(errors.values_list("reason", "detail")[:_DETAILS_LOOKED_AT])
    most_frequent: dict[str, tuple[str, int]] = {}
    for (reason, detail), count in counted.most_common():
        most_frequent.setdefault(reason, (detail, count))
    return most_frequent
