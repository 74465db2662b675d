"""The fire drill of a judge: a run of its own over answers with planted defects, and its figures."""

from __future__ import annotations

import io
import json
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from datasets.core.formats import LEGACY
from datasets.core.kinds import BOTH_BAD, CATEGORY, CHECKLIST, PASS_FAIL
from datasets.core.variables import response_data
from datasets.importing.worker import import_or_wait
from datasets.models import Candidate, Response, Version
from datasets.services import dataset_upload
from datasets.versions.row_writer import WholeRow, as_json, whole_rows
from evalsite.accounts.models import User
from judging.core.checklists import checklist_from
from judging.core.drill.planted_verdicts import planted_verdict
from judging.core.drill.planting import Answer, Planted, drawn, plant, row_language
from judging.core.metric_definition import MetricDefinition
from judging.core.pairs import strength_of
from judging.core.statistics.drill import DEFECTS, Drilled, DrilledRow, Measure, drill_document
from judging.core.values import SCORED, UNSETTLED, Value, value_of
from judging.records.models import Judgement, Run
from judging.records.stored_judgement import data_of, verdicts_by_place
from judging.runs.services import ChosenMetric, RunOptions, free_name, run_create

UNTOUCHED = "untouched"
FIRST, SECOND = "untouched_1", "untouched_2"
"""Candidates of a drill: the untouched answer, and where candidates are compared its two copies that meet it. Those
with a defect are named after it."""
DRILLED_FROM = "drilled_from"
"""The field of a drill's rows that names the line, model and answer that were drawn."""


def refuse_undrillable(metric: MetricDefinition) -> None:
    """Raise ValidationError if a metric's verdicts have no order."""
    if metric.gives == CATEGORY and any(label.value is None for label in metric.labels):
        raise ValidationError(
            _("A drill needs a value for every label of the metric, to tell which verdict is lower.")
        )


def answers_of(rows: Sequence[WholeRow], fmt: str, model: str = "") -> list[Answer]:
    """The answers of all models, or of `model`."""
    answers = []
    for row in rows:
        question, numbers = data_of(row.raw, fmt)["question"] or "", Counter[str]()
        for name, raw in row.answers:
            numbers[name] += 1
            text = str(response_data(raw)["content"])
            if not model or name == model:
                answers.append(Answer(row.line, name, numbers[name], row_language(question, text), text))
    return answers


def drill_create(
    *,
    version: Version,
    metric: MetricDefinition,
    user: User | None,
    model: str = "",
    rows: int | None = None,
    seed: int = 0,
    only_worker: str = "",
) -> Run:
    """Plant the defects in a data set of the drill's own, and create the run that judges it. Raises ValidationError."""
    drilled = defects_plant(version=version, metric=metric, user=user, model=model, rows=rows, seed=seed)
    return drill_run_create(drilled=drilled, metric=metric, user=user, seed=seed, only_worker=only_worker)


def defects_plant(
    *,
    version: Version,
    metric: MetricDefinition,
    user: User | None,
    model: str = "",
    rows: int | None = None,
    seed: int = 0,
    answers_in: Run | None = None,
) -> Version:
    """Plant the defects in the version's answers, or in those that a run over it judged, as a data set of the drill's
    own in the version's project. Raises ValidationError."""
    refuse_undrillable(metric)
    whole = list(whole_rows(version, only_valid=True))
    if answers_in is not None:
        whole = _with_answers_of(answers_in, whole)
    answers = drawn(answers_of(whole, version.format, model), seed, rows)
    if not answers:
        raise ValidationError(_("The data set has no answer to plant defects in."))
    planted = plant(answers, seed, partial(planted_verdict, metric))
    name = _("%(dataset)s: fire drill") % {"dataset": version.dataset.name[:150]}
    file = io.BytesIO("\n".join(_lines(whole, version.format, planted, metric)).encode())
    project = version.dataset.project
    uploaded = dataset_upload(project=project, name=name, file=file, file_name="drill.jsonl", user=user)
    drilled = import_or_wait(uploaded.pk)
    if not drilled.usable:
        raise ValidationError(_("The answers with planted defects could not be read as a data set."))
    return drilled


def _with_answers_of(run: Run, rows: Sequence[WholeRow]) -> list[WholeRow]:
    """The rows with the answers of the run's candidates, uploaded or generated."""
    candidates = run.run_candidates.values("candidate")
    answers: dict[int, list[tuple[str, str]]] = defaultdict(list)
    stored = Response.objects.filter(candidate__in=candidates).exclude(raw="").order_by("pk")
    for line, name, raw in stored.values_list("row__line", "candidate__name", "raw"):
        answers[line].append((name, raw))
    return [replace(row, answers=answers[row.line]) for row in rows]


def drill_run_create(
    *, drilled: Version, metric: MetricDefinition, user: User | None, seed: int = 0, only_worker: str = ""
) -> Run:
    """Create the run that judges answers with planted defects. Raises ValidationError."""
    project = drilled.dataset.project
    return run_create(
        project=project,
        name=free_name(project, _("%(metric)s: fire drill") % {"metric": metric.name[:120]}),
        version=drilled,
        candidates=list(Candidate.uploaded.filter(version=drilled).order_by("pk")),
        metrics=[ChosenMetric(as_drilled(metric))],
        user=user,
        seed=seed,
        only_worker=only_worker,
        options=RunOptions(leave_out_unreadable=True),
    )


def as_drilled(metric: MetricDefinition) -> MetricDefinition:
    """Where candidates are compared, every planted answer meets the untouched one, in both orders."""
    if not metric.compares_candidates:
        return metric
    judges = tuple(msgspec.structs.replace(judge, both_orders=True) for judge in metric.judges)
    return msgspec.structs.replace(metric, compares="baseline", baseline=UNTOUCHED, judges=judges)


def _lines(
    rows: Sequence[WholeRow], fmt: str, planted: Sequence[Planted], metric: MetricDefinition
) -> list[str]:
    by_line = {row.line: row for row in rows}
    return [_line(by_line[each.answer.line], fmt, each, metric) for each in planted]


def _line(row: WholeRow, fmt: str, planted: Planted, metric: MetricDefinition) -> str:
    answer = planted.answer
    raws = [raw for name, raw in row.answers if name == answer.model]
    response = json.loads(raws[answer.number - 1])
    untouched = (
        [(UNTOUCHED, answer.text), (FIRST, answer.text), (SECOND, answer.text)]
        if metric.compares_candidates
        else [(UNTOUCHED, answer.text)] * 2
    )
    texts = [*untouched, *planted.texts.items()]
    answers = [(name, json.dumps(response | {"content": text}, ensure_ascii=False)) for name, text in texts]
    drawn_from = {"line": answer.line, "model": answer.model, "response": answer.number}
    raw = json.loads(row.raw) if fmt not in LEGACY else modern_row(row.raw, fmt)
    text = json.dumps(raw | {DRILLED_FROM: drawn_from}, ensure_ascii=False)
    return as_json(replace(row, raw=text, answers=answers), "judge_only")


def modern_row(raw: str, fmt: str) -> dict[str, Any]:
    """A row of a legacy format in that of today."""
    computed = ("question", "gt", "history")
    return {
        name: value for name, value in data_of(raw, fmt).items() if name not in computed and value is not None
    }


Judged = Mapping[tuple[str, int], Judgement]
"""A drilled row's judgements, by candidate and number of the answer."""


def judged_rows(run: Run, defects: Collection[str] = DEFECTS) -> list[Judged]:
    """The judgements of a drill's run by row, of the untouched answers and those with these defects."""
    names = (UNTOUCHED, FIRST, SECOND, *defects)
    judgements = Judgement.objects.filter(run=run, current=True, candidate__name__in=names)
    by_row: dict[int, dict[tuple[str, int], Judgement]] = {}
    for judgement in (
        judgements.select_related("row", "candidate", "response").order_by("position").iterator()
    ):
        places = by_row.setdefault(judgement.row.line, {})
        places[judgement.candidate.name, judgement.response.number] = judgement
    return list(by_row.values())


def drill_result(run: Run) -> dict[str, Any]:
    """The document of a drill's run (docs/drill.md)."""
    metric = MetricDefinition.from_json(run.metrics.get().definition)
    by_row = judged_rows(run)
    rows = [drilled_row(metric, judged, run.version.format) for judged in by_row]
    orders = [
        side
        for judged in by_row
        for judgement in judged.values()
        for side in (_orders(judgement) if metric.compares_candidates else ())
    ]
    return drill_document(Drilled(rows, measure_of(metric), orders))


def measure_of(metric: MetricDefinition) -> Measure:
    if metric.compares_candidates:
        return "comparison"
    return "label" if metric.gives in (PASS_FAIL, CATEGORY) else "value"


def drilled_row(metric: MetricDefinition, judged: Judged, fmt: str) -> DrilledRow:
    """A row's verdicts as numbers."""
    untouched = ((FIRST, 1), (SECOND, 1)) if metric.compares_candidates else ((UNTOUCHED, 1), (UNTOUCHED, 2))
    first, second = (judged.get(place) for place in untouched)
    any_judgement = next(iter(judged.values()))
    question = data_of(any_judgement.row.raw, fmt)["question"] or ""
    answer = str(response_data(first.response.raw)["content"]) if first else ""
    lowest, highest = _ends(metric, first)
    return DrilledRow(
        language=row_language(question, answer),
        first=_number(metric, first),
        second=_number(metric, second),
        planted={name: _number(metric, judged.get((name, 1))) for name in DEFECTS},
        lowest=lowest,
        highest=highest,
    )


def _ends(metric: MetricDefinition, first: Judgement | None) -> tuple[float | None, float | None]:
    """The lowest and the highest verdict that a row can get."""
    if metric.compares_candidates:
        return None, None
    if metric.compares_reference:
        return 1, 5
    if metric.gives == PASS_FAIL:
        return 0, 1
    if metric.gives == CATEGORY:
        values = [label.value or 0 for label in metric.labels]
        return min(values), max(values)
    if metric.gives == CHECKLIST:
        checklist = checklist_from(first.checklist) if first else None
        return (checklist.least if checklist else None), 1
    return (metric.min_score, metric.max_score) if metric.scale_declared else (None, None)


def _number(metric: MetricDefinition, judgement: Judgement | None) -> float | None:
    """A verdict as a number: in comparisons 1 if `response` wins, −1 if it loses, 0 where neither does."""
    if judgement is None:
        return None
    if metric.compares_candidates and judgement.state_in_force == UNSETTLED:
        return 0.0
    value = value_of(judgement.value_in_force) if judgement.state_in_force == SCORED else None
    return None if value is None else _as_number(metric, value)


def _as_number(metric: MetricDefinition, value: Value) -> float | None:
    if not isinstance(value, str):
        return float(value)
    if metric.compares_candidates:
        strength = strength_of(value)
        return float((strength < 0) - (strength > 0))
    return next((label.value for label in metric.labels if label.label == value), None)


def _orders(judgement: Judgement) -> list[int]:
    """Of each judge's verdicts in both orders: which side both named, as in `Drilled.orders`."""
    verdicts = verdicts_by_place(judgement.verdicts)
    sides = []
    for (judge, repeat, order, criterion), verdict in verdicts.items():
        swapped = verdicts.get((judge, repeat, "swapped", criterion))
        if order != "first" or swapped is None or verdict["value"] is None or swapped["value"] is None:
            continue
        first = 0 if verdict["value"] == BOTH_BAD else strength_of(verdict["value"])
        flipped = first * strength_of(swapped["value"]) < 0
        sides.append(0 if not flipped else 1 if first < 0 else -1)
    return sides
