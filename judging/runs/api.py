"""Runs, as the API shows, starts and steers them."""

from __future__ import annotations

import random
from collections.abc import Container, Iterable, Mapping
from datetime import datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.db import IntegrityError
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext as _
from ninja import Field, Router, Schema, Status

from datasets.models import Candidate, Version
from evalsite import access
from evalsite.access import May
from evalsite.accounts.models import Project
from evalsite.api.errors import ApiError
from evalsite.api.lists import Cursor, Id, Limit, Page, cursor_of, number_at
from evalsite.web.paging import newest_first
from judging.core.candidates import MOST_ANSWERS, CandidateModel
from judging.core.metric_definition import MetricDefinition
from judging.endpoints.selectors import endpoints_of
from judging.engine import stopping
from judging.engine.budget import MILLION, Budget
from judging.filters.counts import counts_in_force, counts_of_runs
from judging.metrics.models import MetricVersion
from judging.records.access import get_run
from judging.records.models import PEOPLE, JudgementState, Run
from judging.runs import selectors, services
from judging.runs.preflight import preflight
from judging.runs.selectors import MetricChoice

router = Router()
SEEDS = 2**31


class NumberedVersion(Schema):
    """A version as addresses name it."""

    dataset: int = Field(ge=0, lt=2**63)
    number: int = Field(ge=0, lt=2**31)


class NumberedMetric(Schema):
    name: str
    version: int = Field(ge=1, lt=2**31)


class CandidateIn(Schema):
    """A model that generates answers. `endpoint`: the name of an endpoint of the project; `model` replaces its own."""

    name: str = Field(min_length=1, max_length=200)
    endpoint: str
    model: str = Field("", max_length=300)
    n: int = Field(1, ge=1, le=MOST_ANSWERS)
    system_prompt: str | None = None
    generation_params: dict[str, Any] = {}


class BudgetIn(Schema):
    """Limits for the whole run; `money` in the currency of the endpoints' prices."""

    calls: int | None = Field(default=None, ge=1, le=10**15)
    tokens: int | None = Field(default=None, ge=1, le=10**15)
    money: float | None = Field(default=None, gt=0, le=10**9)


class RunIn(Schema):
    """`version`: its id, or {dataset, number}. `candidates`: names of uploaded ones, or models that generate answers.
    `metrics`: names (newest version), or {name, version}. `rows`: how many, drawn at random; null: all. `batched`: send
    requests in batches, cheaper and answered within a day; `plain_if_expired`: send alone what a batch left."""

    version: int | NumberedVersion
    candidates: list[str | CandidateIn] = Field(min_length=1, max_length=1000)
    metrics: list[str | NumberedMetric] = Field(min_length=1, max_length=100)
    rows: int | None = Field(None, ge=1, le=10**8)
    seed: int | None = Field(None, ge=0, lt=SEEDS)
    name: str = Field("", max_length=200)
    budget: BudgetIn = BudgetIn()
    batched: bool = False
    plain_if_expired: bool = False


class RunOut(Schema):
    """`done` of `total` judgements. `rate`: judgements a second; `seconds_left`: an estimate; null if unknown.
    `problem`: a code."""

    id: int
    name: str
    kind: str
    state: str
    dataset: int
    version: int
    rows: int
    seed: int
    total: int
    done: int
    scored: int
    no_score: int
    unparsed: int
    unsettled: int
    errors: int
    calls: int
    rate: float | None
    seconds_left: float | None
    problem: str
    created_at: datetime
    url: str


class EstimateOut(Schema):
    """What a run would take. `tokens` and `seconds`: estimates, null without calls; `money`: null without prices."""

    judgements: int
    calls: int
    tokens: float | None
    seconds: float | None
    money: float | None
    currency: str
    warnings: list[str]


class Done(Schema):
    """`changed`: whether anything was changed; `judgements`: how many are judged again."""

    state: str
    changed: bool
    judgements: int | None = None


@router.get("projects/{slug}/runs", response=Page[RunOut], summary="Runs")
def runs(
    request: HttpRequest, slug: str, limit: Limit = 100, cursor: Cursor = "", archived: bool = False
) -> dict[str, Any]:
    """Newest first, without evaluations by people."""
    project = access.get_project(request, slug, May.READ_JUDGEMENTS)
    rows = Run.objects.filter(project=project, archived_at__isnull=not archived).exclude(kind=PEOPLE)
    page, further = newest_first(rows.select_related("version", "project"), limit, number_at(cursor))
    items = [run_out(row, counts) for row, counts in counts_of_runs(page)]
    return {"items": items, "next": cursor_of(further)}


@router.post(
    "projects/{slug}/runs", response={201: RunOut, 200: EstimateOut}, summary="Start or estimate a run"
)
def start(request: HttpRequest, slug: str, body: RunIn, dry: bool = False) -> Status[Any]:
    """`dry=1` starts nothing and says what the run would take. 409: the name is taken."""
    project = access.get_project(request, slug, May.RUN)
    version = version_named(project, body.version)
    candidates, models = _candidates(project, version, body.candidates)
    metrics = _metrics(project, body.metrics)
    options = services.RunOptions(
        _budget(body.budget), batched=body.batched, plain_if_expired=body.plain_if_expired
    )
    if dry:
        return Status(200, _estimate(version, candidates, metrics, body.rows, models, options))
    try:
        run = services.run_create(
            project=project,
            name=body.name.strip(),
            version=version,
            candidates=candidates,
            metrics=[services.ChosenMetric(choice.definition, choice.version) for choice in metrics],
            user=access.signed_in(request),
            sample_size=body.rows,
            seed=random.randrange(SEEDS) if body.seed is None else body.seed,
            options=options,
            candidate_models=models,
        )
    except IntegrityError:
        text = _("A run with this name already exists. Choose another name.")
        raise ApiError(409, "name_taken", text, fields={"name": text}) from None
    return Status(201, run_out(run))


def version_named(project: Project, chosen: int | NumberedVersion) -> Version:
    """The version that a body names. Raises ApiError."""
    versions = Version.objects.filter(dataset__project=project, number__gt=0).select_related("dataset")
    named = (
        {"pk": chosen} if isinstance(chosen, int) else {"dataset": chosen.dataset, "number": chosen.number}
    )
    version = versions.filter(**named).first() if not isinstance(chosen, int) or 0 <= chosen < 2**63 else None
    if version is None:
        raise unknown("version", _("The project has no version with this number."))
    return version


def _candidates(
    project: Project, version: Version, chosen: list[str | CandidateIn]
) -> tuple[list[Candidate], list[CandidateModel]]:
    """The uploaded candidates and the models that generate answers. Raises ApiError for names that are not there."""
    uploaded = {row.name: row for row in Candidate.uploaded.filter(version=version, responses__gt=0)}
    endpoints = {row.name: row for row in endpoints_of(project)}
    rows, models = [], []
    for entry in chosen:
        if isinstance(entry, str):
            if entry not in uploaded:
                text = _("The version has no answers of “%(name)s”. It has: %(names)s.")
                raise unknown(
                    "candidates", text % {"name": entry, "names": ", ".join(sorted(uploaded)) or "–"}
                )
            rows.append(uploaded[entry])
            continue
        if entry.endpoint not in endpoints:
            text = _("The project has no endpoint called “%(name)s”.")
            raise unknown("candidates", text % {"name": entry.endpoint})
        models.append(
            CandidateModel(
                name=entry.name,
                endpoint=endpoints[entry.endpoint].pk,
                model=entry.model,
                system_prompt=entry.system_prompt or None,
                params=entry.generation_params,
                n=entry.n,
            )
        )
    return rows, models


def _metrics(project: Project, chosen: list[str | NumberedMetric]) -> list[MetricChoice]:
    """The metrics in the chosen or newest version. Raises ApiError for names that are not there."""
    newest = {choice.definition.name: choice for choice in selectors.metric_choices(project)}
    choices = []
    for entry in chosen:
        name = entry if isinstance(entry, str) else entry.name
        if name not in newest:
            raise unknown("metrics", _("The project has no metric called “%(name)s”.") % {"name": name})
        choices.append(newest[name] if isinstance(entry, str) else _metric_version(newest[name], entry))
    return choices


def _metric_version(newest: MetricChoice, chosen: NumberedMetric) -> MetricChoice:
    assert newest.version is not None
    version = MetricVersion.objects.filter(metric=newest.version.metric_id, number=chosen.version).first()
    if version is None:
        raise unknown("metrics", _("The metric has no version with this number."))
    return MetricChoice(version, MetricDefinition.from_json(version.definition), newest.judges)


def refuse_unknown(field: str, names: Iterable[object], known: Container[object]) -> None:
    """Raise ApiError for the first name that is not known."""
    strange = next((name for name in names if name not in known), None)
    if strange is not None:
        raise unknown(field, _("There is nothing called “%(name)s”.") % {"name": strange})


def unknown(field: str, text: str) -> ApiError:
    """The refusal of a name that is not there."""
    return ApiError(422, message=text, fields={field: text})


def _budget(sent: BudgetIn) -> Budget:
    return Budget(sent.calls, sent.tokens, None if sent.money is None else int(sent.money * MILLION))


def _estimate(
    version: Version,
    candidates: list[Candidate],
    metrics: list[MetricChoice],
    rows: int | None,
    models: list[CandidateModel],
    options: services.RunOptions,
) -> dict[str, Any]:
    cost = selectors.cost_of(version, candidates, metrics, rows, models)
    estimate = preflight(version, metrics, cost, models, batched=options.batched)
    return {
        "judgements": cost.judgements,
        "calls": cost.calls + cost.answers,
        "tokens": estimate and estimate.read + estimate.written,
        "seconds": estimate and estimate.seconds,
        "money": estimate and estimate.money,
        "currency": estimate.currency if estimate else "",
        "warnings": _warnings(version, candidates, metrics, models, options),
    }


def _warnings(
    version: Version,
    candidates: list[Candidate],
    metrics: list[MetricChoice],
    models: list[CandidateModel],
    options: services.RunOptions,
) -> list[str]:
    """Why the run would be refused, in sentences."""
    chosen = [services.ChosenMetric(choice.definition, choice.version) for choice in metrics]
    try:
        services.refuse_impossible(version, candidates, chosen, models)
        if options.batched:
            services.refuse_impossible_batches(options, chosen, models)
    except ValidationError as error:
        return list(error.messages)
    return []


@router.get("projects/{slug}/runs/{run}", response=RunOut, summary="A run and its progress")
def run(request: HttpRequest, slug: str, run: Id) -> dict[str, Any]:
    """`state` is `planning`, `running`, `paused`, `finished`, `cancelled` or `failed`."""
    return run_out(get_run(request, slug, run))


@router.post("projects/{slug}/runs/{run}/pause", response=Done, summary="Pause a run")
def pause(request: HttpRequest, slug: str, run: Id) -> dict[str, Any]:
    """Calls in progress end and are stored. `changed` is false where the run's state does not allow it."""
    row = get_run(request, slug, run, May.RUN)
    return done(row, stopping.run_pause(row))


@router.post("projects/{slug}/runs/{run}/resume", response=Done, summary="Resume a run")
def resume(request: HttpRequest, slug: str, run: Id) -> dict[str, Any]:
    """A paused, cancelled or failed run goes on where it stopped."""
    row = get_run(request, slug, run, May.RUN)
    return done(row, services.run_resume(row))


@router.post("projects/{slug}/runs/{run}/cancel", response=Done, summary="Cancel a run")
def cancel(request: HttpRequest, slug: str, run: Id) -> dict[str, Any]:
    """What was judged stays."""
    row = get_run(request, slug, run, May.RUN)
    return done(row, stopping.run_cancel(row))


@router.post("projects/{slug}/runs/{run}/retry", response=Done, summary="Retry a run's errors")
def retry(request: HttpRequest, slug: str, run: Id) -> dict[str, Any]:
    """Judges again what ended in an error; earlier attempts stay."""
    row = get_run(request, slug, run, May.RUN)
    judgements = services.run_retry(row, (JudgementState.ERROR,))
    return done(row, judgements > 0) | {"judgements": judgements}


def done(run: Run, changed: bool) -> dict[str, Any]:
    """The reply after an action on a run."""
    run.refresh_from_db(fields=["state"])
    return {"state": run.state, "changed": changed}


def run_out(run: Run, counts: Mapping[str, int] | None = None) -> dict[str, Any]:
    """A run as the API shows it. `counts`: those in force, if they are known."""
    progress = selectors.progress_of(run, done_before=None, at_before=None, rate_before=None)
    counts = counts_in_force(run) if counts is None else counts
    return {
        "id": run.pk,
        "name": run.name,
        "kind": run.kind,
        "state": run.state,
        "dataset": run.version.dataset_id,
        "version": run.version.number,
        "rows": run.rows,
        "seed": run.seed,
        "total": run.total,
        "done": run.done,
        "scored": counts["scored"],
        "no_score": counts["no_score"],
        "unparsed": counts["unparsed"],
        "unsettled": counts["unsettled"],
        "errors": counts["error"],
        "calls": run.calls,
        "rate": progress.rate,
        "seconds_left": progress.left,
        "problem": run.problem,
        "created_at": run.created_at,
        "url": reverse("runs:detail", args=[run.project.slug, run.pk]),
    }
