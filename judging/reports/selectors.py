"""Queries for reports: a run's current judgements as plain tuples, and its cost."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from django.db.models import Count, Sum, TextField, Value
from django.utils import timezone

from datasets.core.formats import Format
from datasets.core.kinds import CHECKLIST
from datasets.core.variables import row_data
from datasets.models import Row
from datasets.selectors import numbers_of_candidates
from datasets.versions.references import NAME as REFERENCE_NAME
from evalsite.truncation import truncate
from judging.core.metric_definition import MetricDefinition
from judging.core.reading.forms import FORMS
from judging.core.results import INJECTED_VERDICT, TRUNCATED
from judging.core.statistics.frame import REFERENCE, JudgementTuple, ScaledMetric
from judging.core.statistics.judges import Flagged
from judging.filters.conditions import matching, read_as
from judging.filters.judgement_filter import Filters
from judging.people.models import EvaluationRater
from judging.people.progress import gold_hits
from judging.people.selectors import evaluations_of, rater_names
from judging.records.definitions import definitions_now
from judging.records.models import INFER, Generation, Judgement, JudgementQuerySet, JudgeReply, Run
from judging.records.row_fields import EVERY_ROW, computed_value
from judging.teamwork.marks import without_excluded

BATCH = 20_000  # tuples fetched at a time
QUESTION = 200  # characters
_COLUMNS = (
    "run_metric_id", "candidate_id", "row__line", "response__number", "state_in_force", "value_in_force",
)  # fmt: skip


def current_judgements(run: Run, lines: Collection[int] | None = None) -> Iterator[JudgementTuple]:
    """Current attempts at all single responses as rows for `judgement_frame`, with the values in force. `lines`: only
    on these rows.

    Streamed: a million judgements are never in memory as Python objects.
    """
    judgements = Judgement.objects.filter(run=run, current=True, other_response=None)
    judgements = on_lines(judgements, run, lines).order_by(
        "position"
    )  # the storage order of rows and responses: takes a third of the time
    no_cluster = Value(None, output_field=TextField())
    return judgements.values_list(*_COLUMNS, no_cluster).iterator(BATCH)  # plain tuples from the database


def on_lines(judgements: JudgementQuerySet, run: Run, lines: Collection[int] | None) -> JudgementQuerySet:
    """The judgements on these lines of the run's version; all if `lines` is None."""
    if lines is None:
        return judgements
    rows = Row.objects.filter(version=run.version_id, line__in=lines)
    return judgements.filter(row__in=rows.order_by().values("pk"))


def overridden(run: Run) -> Counter[tuple[str, str]]:
    """Number of overrides in force, by names of (candidate, metric)."""
    judged = without_excluded(run, Judgement.objects.filter(run=run, override_value__isnull=False)).order_by()
    counted = judged.values_list("candidate__name", "run_metric__name").annotate(count=Count("*"))
    return Counter({(candidate, metric): count for candidate, metric, count in counted})


def metrics_of(run: Run) -> dict[int, ScaledMetric]:
    """{id: metric with its scale}, in the run's order."""
    return {pk: scaled(definition) for pk, definition in definitions_now(run).items()}


def scaled(definition: MetricDefinition) -> ScaledMetric:
    """The metric as the statistics need it."""
    ends = float(definition.min_score), float(definition.max_score)
    low, high = ends if definition.scale_declared else (None, None)
    values = {label.label: label.value for label in definition.labels if label.value is not None}
    return ScaledMetric(
        definition.name,
        low,
        high,
        compares=definition.compares_reference and bool(definition.judges),
        label_values=values if values and len(values) == len(definition.labels) else None,
        checklist=definition.gives == CHECKLIST,
    )


def with_choices(run: Run, metrics: Mapping[int, ScaledMetric]) -> dict[int, ScaledMetric]:
    """The metrics with the labels that people could choose from, if they rated here."""
    choices: dict[str, tuple[str, ...]] = {}
    for evaluation in evaluations_of(run):
        for criterion in evaluation.criteria.values():
            labels = tuple(
                json.dumps(choice) if isinstance(choice, bool) else str(choice)
                for choice in criterion.choices
            )
            choices[criterion.name] = (*choices.get(criterion.name, ()), *labels)
    return {pk: replace(metric, choices=choices.get(metric.name)) for pk, metric in metrics.items()}


def candidates_of(run: Run) -> dict[int, str]:
    """{id: candidate's name in figures}, in the order of the run's data."""
    candidates = run.run_candidates.order_by("candidate")
    named = candidates.values_list("candidate", "candidate__name", "candidate__version__number")
    return {pk: shown_name(name, version) for pk, name, version in named}


def series_of(projects: Iterable[int]) -> dict[int, dict[str, int]]:
    """{project: {candidate's name in figures: number of its colour and mark}}."""
    by_project = numbers_of_candidates(projects)
    for numbers in by_project.values():
        numbers.setdefault(REFERENCE, numbers.get(REFERENCE_NAME, len(numbers) + 1))
    return by_project


def shown_name(name: str, version: int) -> str:
    """A candidate's name in figures: references are stored in version 0."""
    return REFERENCE if version == 0 and name == REFERENCE_NAME else name


def truncated_of(run: Run) -> int:
    """Number of current judgements with a judge's reply truncated by the token limit."""
    return without_excluded(run, matching(run, Filters(flag=TRUNCATED))).count()


def forms_of(run: Run) -> dict[str, dict[str, int]]:
    """{metric's name: {form in which a judge's verdict was read: number of current judgements}}, without zeros."""
    if not run.by_workers:
        return {}
    judged = without_excluded(run, Judgement.objects.filter(run=run, current=True)).order_by()
    counts = {form: Count("pk", filter=read_as(form)) for form in FORMS}
    counted: Iterable[tuple[Any, ...]] = (
        judged.values("run_metric__name").annotate(**counts).values_list("run_metric__name", *FORMS)
    )
    return {
        name: {form: number for form, number in zip(FORMS, numbers, strict=True) if number}
        for name, *numbers in counted
    }


def answers_with_verdicts(
    run: Run, metrics: Mapping[int, ScaledMetric], candidates: Mapping[int, str]
) -> dict[tuple[str, str], Flagged]:
    """Current judgements of answers that contain text like a verdict, by names of (metric, candidate)."""
    flagged = without_excluded(run, matching(run, Filters(flag=INJECTED_VERDICT)))
    grouped = flagged.order_by("run_metric", "candidate")
    counts = grouped.values_list("run_metric", "candidate").annotate(
        answers=Count("*"), scores=Count("score_in_force"), total=Sum("score_in_force")
    )
    return {
        (metrics[metric].name, candidates[candidate]): Flagged(answers, scores, total or 0.0)
        for metric, candidate, answers, scores, total in counts
    }


def retries_of(run: Run) -> int:
    """Number of calls beyond the first for each question to a judge model and each attempt at an answer. Reused
    replies and unsent requests had no calls."""
    questions = JudgeReply.objects.filter(judgement__run=run, copy_of=None).exclude(calls="[]").count()
    tries = Generation.objects.filter(run=run).exclude(calls="[]").count() if run.kind == INFER else 0
    return max(0, run.calls - questions - tries)


def wall_seconds(run: Run) -> float | None:
    """Seconds from the run's start to its end, or until now; None before it has started, and for imported runs."""
    if run.started_at is None or run.imported:
        return None
    return max(0.0, ((run.finished_at or timezone.now()) - run.started_at).total_seconds())


def gold_hits_of(run: Run) -> dict[str, dict[str, int]]:
    """{rater's name: {`right`: gold answers given correctly, `of`: all}} in the evaluations that the run's report
    includes."""
    evaluations = evaluations_of(run)
    names, by_name = rater_names(evaluations), defaultdict[str, Counter[str]](Counter)
    for evaluation in evaluations:
        hits = gold_hits(evaluation)
        for rater, user in EvaluationRater.objects.filter(pk__in=hits).values_list("pk", "user"):
            by_name[names[user]].update(right=hits[rater].hit, of=hits[rater].of)
    return {name: dict(hits) for name, hits in by_name.items()}


def questions_of(run: Run, lines: list[int]) -> dict[int, str]:
    """{line: beginning of the row's last question}."""
    rows = Row.objects.filter(version=run.version_id, line__in=lines).values_list("line", "raw")
    form = cast(Format, run.version.format)
    return {line: truncate(row_data(raw, form)["question"] or "", QUESTION) for line, raw in rows}


class FieldUnknown(Exception):
    """No row has this field; the message is for users."""


def values_of_fields(run: Run, fields: Sequence[str]) -> dict[str, dict[int, str]]:
    """{field: {line: value as text}} for rows that have it. Fields in `EVERY_ROW` exist in all rows, unless a custom
    field has that name. Raises FieldUnknown."""
    form = cast(Format, run.version.format)
    values: dict[str, dict[int, str]] = {field: {} for field in fields}
    field_names: dict[str, None] = {}
    rows = Row.objects.filter(version=run.version_id, valid=True).order_by("line")
    for line, raw in rows.values_list("line", "raw").iterator(BATCH):
        data = row_data(raw, form)
        field_names |= dict.fromkeys(name for name in data if name not in _COMPUTED)
        for field in fields:
            value = _value_of(data, field)
            if value is not None:
                values[field][line] = value
    missing = [field for field in fields if not values[field]]
    if missing:
        names = ", ".join([*field_names, *EVERY_ROW])
        raise FieldUnknown(f"No row has a field {missing[0]!r}. The fields are: {names}.")
    return values


_COMPUTED = {"messages", "ref_answer", "question", "gt", "history"}


MOST_VALUES, LOOKED_AT = 12, 200


def informative_field(run: Run) -> str:
    """The first custom field with a few values shared by many rows, according to the first rows; '' if there is
    none."""
    if not run.version.fields_found:
        return ""
    form = cast(Format, run.version.format)
    rows = Row.objects.filter(version=run.version_id, valid=True).order_by("line")
    rows_data = [row_data(raw, form) for raw in rows.values_list("raw", flat=True)[:LOOKED_AT]]
    for field in run.version.fields_found:
        values = [value for data in rows_data if (value := _value_of(data, field)) is not None]
        if 2 <= len(set(values)) <= min(MOST_VALUES, len(values) // 2):
            return str(field)
    return ""


CLUSTER_FIELDS = ("cluster", "conversation_id")
"""Custom fields for related rows, which must not be treated as independent."""


def clusters_of(run: Run) -> dict[int, str]:
    """{line: cluster of the row}, from the first of `CLUSTER_FIELDS` that the version has."""
    field = next((name for name in CLUSTER_FIELDS if name in run.version.fields_found), None)
    return values_of_fields(run, [field])[field] if field else {}


def _value_of(data: dict[str, Any], field: str) -> str | None:
    if field in data and field not in _COMPUTED:
        value = data[field]
        if value is None or isinstance(value, str):
            return value
        return json.dumps(value, ensure_ascii=False)
    return computed_value(data, field)
