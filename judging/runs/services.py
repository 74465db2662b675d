"""Everything that changes a run: make, pause, resume, cancel, retry."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from datasets.models import Candidate, Version
from evalsite import engine
from evalsite.accounts.models import Project, User
from judging.core.pipeline import JudgeModel, MetricDefinition
from judging.metrics.models import Endpoint, MetricVersion
from judging.runs import planning, store, tasks
from judging.runs.models import JudgementState, Run, RunCandidate, RunMetric, RunState

RETRYABLE = (JudgementState.ERROR, JudgementState.UNPARSED)
RESUMABLE = (RunState.PAUSED, RunState.CANCELLED, RunState.FAILED)


@dataclass(frozen=True, slots=True)
class ChosenMetric:
    """A metric for a run: its definition as it shall be frozen, and the version that it came from, if any."""

    definition: MetricDefinition
    version: MetricVersion | None = None


def frozen(definition: MetricDefinition) -> MetricDefinition:
    """The definition with each endpoint's address, model and parameters written into it: later edits of the
    endpoint do not reach the run. Its key is not copied; it is read when the judge is asked."""
    return msgspec.structs.replace(
        definition, judges=tuple(_frozen_judge(judge) for judge in definition.judges)
    )


def _frozen_judge(judge: JudgeModel) -> JudgeModel:
    if judge.endpoint is None:
        return judge
    endpoint = Endpoint.objects.get(pk=judge.endpoint)
    params = {**endpoint.params, **judge.params}
    return msgspec.structs.replace(judge, url=endpoint.url, model=endpoint.model, params=params)


@transaction.atomic
def run_create(
    *,
    project: Project,
    name: str,
    version: Version,
    candidates: Sequence[Candidate],
    metrics: Sequence[ChosenMetric],
    user: User | None,
    sample_size: int | None = None,
    seed: int | None = None,
    only_worker: str = "",
) -> Run:
    """A run that a worker (or only the process named `only_worker`) plans and begins at once.

    Raises ValidationError with a sentence if it cannot be.
    """
    _refuse_impossible(version, candidates, metrics)
    run = Run.objects.create(
        project=project,
        name=name or free_name(project, version.dataset.name),
        version=version,
        sample_size=sample_size,
        seed=random.randrange(2**31) if seed is None else seed,
        bad_rows_left_out=version.bad_rows,
        created_by=user,
        only_worker=only_worker,
    )
    RunCandidate.objects.bulk_create([RunCandidate(run=run, candidate=candidate) for candidate in candidates])
    for number, metric in enumerate(metrics):
        definition = frozen(metric.definition)
        RunMetric.objects.create(
            run=run,
            number=number,
            name=definition.name,
            definition=definition.to_json(),
            metric_version=metric.version,
        )
    engine.wake(tasks.pump)
    return run


def _refuse_impossible(
    version: Version, candidates: Sequence[Candidate], metrics: Sequence[ChosenMetric]
) -> None:
    if not version.usable:
        raise ValidationError(
            _(
                "This version has bad rows. Repair them, or leave them out on the version's page, then start the run."
            )
        )
    if not candidates:
        raise ValidationError(
            _(
                "There are no answers to judge: choose a version with model_outputs, and at least one candidate."
            )
        )
    if any(candidate.version_id != version.pk for candidate in candidates):
        raise ValidationError(_("A candidate belongs to another version."))
    names = [metric.definition.name for metric in metrics]
    if not names or len(set(names)) < len(names):
        raise ValidationError(_("Choose at least one metric, each only once."))


def free_name(project: Project, wanted: str) -> str:
    """`wanted` with the first number that no run of the project has: "physics 3"."""
    taken = set(Run.objects.filter(project=project, name__startswith=wanted).values_list("name", flat=True))
    return next(f"{wanted} {n}" for n in range(1, len(taken) + 2) if f"{wanted} {n}" not in taken)


def run_pause(run: Run) -> bool:
    """Ask no further; replies under way are stored. False if it was not running."""
    return bool(Run.objects.filter(pk=run.pk, state=RunState.RUNNING).update(state=RunState.PAUSED))


@transaction.atomic
def run_resume(run: Run, *, only_worker: str = "") -> bool:
    """Go on with a paused, cancelled or failed run. False if it was none. A run without a plan yet is planned."""
    stopped = Run.objects.filter(pk=run.pk, state__in=(RunState.PAUSED, RunState.CANCELLED, RunState.FAILED))
    planned = run.chunks.exists()
    state = RunState.RUNNING if planned else RunState.PLANNING
    if not stopped.update(
        state=state, finished_at=None, only_worker=only_worker, problem="", problem_detail=""
    ):
        return False
    if not (planned and store.finish_if_done(run.pk)):
        engine.wake(tasks.pump)
    return True


def run_cancel(run: Run) -> bool:
    """End a run; what was judged stays, the rest is not run. False if it had ended before."""
    going = Run.objects.filter(pk=run.pk, state__in=(RunState.PLANNING, RunState.RUNNING, RunState.PAUSED))
    return bool(going.update(state=RunState.CANCELLED, finished_at=timezone.now()))


@transaction.atomic
def run_retry(run: Run, states: tuple[str, ...] = (JudgementState.ERROR,)) -> int:
    """New attempts at what failed; the old ones are kept. How many; 0 while the run is under way."""
    locked = Run.objects.select_for_update().get(pk=run.pk)
    chosen = tuple(state for state in states if state in RETRYABLE)
    if not locked.ended or not chosen:
        return 0
    made = planning.plan_again(locked, chosen)
    if made:
        locked.errors = 0 if JudgementState.ERROR in chosen else locked.errors
        locked.unparsed = 0 if JudgementState.UNPARSED in chosen else locked.unparsed
        locked.state, locked.finished_at, locked.only_worker = RunState.RUNNING, None, ""
        locked.revision += 1
        locked.save()
        engine.wake(tasks.pump)
    return made
