"""Fire drills begun from a page: prepared by a job, judged by the workers as a run of its own, then computed."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import override

from evalsite import archiving
from evalsite.accounts.models import Project, User
from evalsite.audit import Action, record
from evalsite.names import join_sentences
from evalsite.tasks import jobs
from evalsite.tasks.jobs import UNEXPECTED, Hold
from judging.core.metric_definition import MetricDefinition
from judging.metrics.models import MetricVersion
from judging.records.models import Run, RunState
from judging.trust.drill_pages.models import Drill
from judging.trust.drill_pages.sources import DrillSource
from judging.trust.drills import defects_plant, drill_result, drill_run_create, refuse_undrillable

JOB = "drill"


def refuse_no_judge(definition: MetricDefinition) -> None:
    """Raise ValidationError if a metric can't be drilled."""
    if not definition.judges:
        raise ValidationError(_("This metric asks no judge model, so there is nothing to drill."))
    refuse_undrillable(definition)


@transaction.atomic
def drill_begin(
    *,
    metric_version: MetricVersion,
    source: DrillSource,
    rows: int,
    user: User,
    model: str = "",
    seed: int = 0,
) -> Drill:
    """Have workers drill a metric's judge; the same drill that is not over yet is returned. Raises ValidationError if
    it is impossible."""
    metric, version = metric_version.metric, source.version
    refuse_no_judge(MetricDefinition.from_json(metric_version.definition))
    if not version.usable or not source.candidates:
        raise ValidationError(_("The data set has no answer to plant defects in."))
    project = Project.objects.select_for_update().get(pk=metric.project_id)
    same: dict[str, Any] = {"metric_version": metric_version, "version": version, "answers_in": source.run}
    same |= {"model": model, "rows": rows, "seed": seed}
    if earlier := Drill.objects.filter(project=project, finished_at=None, **same).first():
        return earlier
    data: dict[str, Any] = {"dataset_name": version.dataset.name, "dataset_version": version.number}
    drill = Drill.objects.create(project=project, created_by=user, **data, **same)
    detail: dict[str, Any] = {"version": metric_version.number, "dataset": version.dataset.name, "rows": rows}
    record(Action.DRILL_BEGUN, project=project, thing=metric, by=user, **detail)
    jobs.request(JOB, drill.pk)
    return drill


def _failed(hold: Hold, drill: Drill, error: Exception) -> None:
    """Store why it could not be prepared; a document that could not be computed is computed again later."""
    problem = hold.problem(error) if not isinstance(error, ValidationError) else ""
    if drill.run is not None:
        hold.fail(problem or UNEXPECTED)
        return
    text = join_sentences(error.messages) if isinstance(error, ValidationError) else ""
    text = text or _("It could not be prepared. Begin it again; if that does not help, ask an administrator.")
    with transaction.atomic():
        hold.finish()
        Drill.objects.filter(pk=drill.pk).update(problem=text, finished_at=timezone.now())


@jobs.job(JOB, Drill, failed=_failed, most_tries=3)
def drill_work(hold: Hold, drill: Drill) -> None:
    """Prepare the drill's run, or compute its document when that has ended."""
    if drill.run is None:
        if not drill.document and not drill.problem:
            user = drill.created_by
            with override((user.language if user else "") or settings.LANGUAGE_CODE):
                _prepare(hold, drill)
    elif drill.run.state == RunState.FINISHED and drill.revision != drill.run.revision:
        _compute(hold, drill, drill.run)


def _prepare(hold: Hold, drill: Drill) -> None:
    if drill.version is None:
        raise ValidationError(_("This version was deleted."))
    user, metric = drill.created_by, MetricDefinition.from_json(drill.metric_version.definition)
    drilled = defects_plant(
        version=drill.version,
        metric=metric,
        user=user,
        model=drill.model,
        rows=drill.rows,
        seed=drill.seed,
        answers_in=drill.answers_in,
    )
    with transaction.atomic():
        hold.finish()
        run = drill_run_create(drilled=drilled, metric=metric, user=user, seed=drill.seed)
        Drill.objects.filter(pk=drill.pk).update(run=run)
        # Planted answers are no data to choose for other runs.
        archiving.archive(drilled.dataset, Action.DATASET_ARCHIVED, drill.project, user)


def _compute(hold: Hold, drill: Drill, run: Run) -> None:
    document, revision = drill_result(run), run.revision
    with transaction.atomic():
        hold.finish()
        Drill.objects.filter(pk=drill.pk).update(
            document=document, revision=revision, finished_at=drill.finished_at or timezone.now()
        )
        # Its candidates are defects, which lists of results and leaderboards must not show as models.
        archiving.archive(run, Action.RUN_ARCHIVED, drill.project, drill.created_by)


def drills_finish() -> None:
    """Have the documents of drills computed whose runs have finished, or were changed since; called by the
    reconciler."""
    changed = Q(revision=None) | ~Q(revision=F("run__revision"))
    ended = Drill.objects.filter(changed, run__state=RunState.FINISHED, run__deleted_at=None)
    for pk in ended.values_list("pk", flat=True):
        jobs.request(JOB, pk)
