"""Deleting: what is deleted is hidden from all pages in one transaction, then a worker removes it in batches."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import CharField, Model, Q, Value
from django.db.models.functions import Cast, Coalesce, Concat, Greatest
from django.utils import timezone
from django.utils.translation import gettext as _

from datasets.models import Dataset, RowEdit, Version
from datasets.services import OPEN_STATES
from datasets.versions import run_answers
from evalsite.accounts.models import Project, User
from evalsite.audit import Action, record
from evalsite.storage import files
from evalsite.tasks import jobs
from evalsite.tasks.jobs import Hold
from judging.deletion.kinds import KINDS, Scope, contents, file_names, version_name
from judging.deletion.models import Deletion
from judging.deletion.rows import delete_rows, still_used
from judging.engine.candidates import source_of
from judging.people.import_models import ImportState, RatingsImport
from judging.people.models import Evaluation
from judging.records.models import IMPORTED, INFER, PEOPLE, WORKED_ON, Run
from judging.transfer.results_import.models import ResultsImport, ResultsImportState
from judging.trust.models import Split
from judging.trust.selectors import splits_on_labels_of

JOB = "remove_deleted"
RETRY_PAUSE = timedelta(seconds=15)
_LISTED = 5  # names in a refusal


def obstacle(kind: str, pk: int, *, with_runs: bool) -> str:
    """Why an object cannot be deleted now, as a sentence; '' if it can be."""
    scope = KINDS[kind].scope(pk)
    if names := _listed(_active_runs(scope).values_list("name", flat=True)):
        return _("Running: %(names)s. Wait for the end, or cancel or pause first.") % {"names": names}
    if names := _listed(map(version_name, _versions_in_progress(scope))):
        return _("Being read: %(names)s. Wait for the end, or cancel reading first.") % {"names": names}
    if _importing(scope):
        return _("Results or ratings are being imported. Wait for the end.")
    if kind in ("run", "evaluation") and (names := _listed(_splits_on_labels(scope))):
        return _("The tests of judges rest on its labels of people: %(names)s. So it is kept.") % {
            "names": names
        }
    if kind in ("version", "dataset") and (names := _listed(_splits_on_rows(scope))):
        return _("The tests of judges were drawn from its rows: %(names)s. So it is kept.") % {"names": names}
    if KINDS[kind].uses and not with_runs:
        runs = scope.runs.filter(deleted_at=None)
        if names := _listed(runs.order_by("-pk").values_list("name", flat=True)):
            return _("Used by runs or evaluations: %(names)s. Delete them as well, or keep it.") % {
                "names": names
            }
    return ""


def _splits_on_labels(scope: Scope) -> list[str]:
    """The metrics whose tests took their labels from these evaluations and imports, each with its data set."""
    runs = scope.runs.filter(kind__in=(PEOPLE, IMPORTED), deleted_at=None)
    splits = [split for run in runs for split in splits_on_labels_of(run)]
    return [f"{split.metric.name} · {split.dataset.name}" for split in splits]


def _splits_on_rows(scope: Scope) -> list[str]:
    """The metrics whose tests were drawn from these data sets or versions, or whose labels would go with them."""
    drawn = Q(dataset__in=scope.datasets.values("pk")) | Q(test__version__in=scope.versions.values("pk"))
    splits = Split.objects.filter(drawn).select_related("metric", "dataset").order_by("pk")
    named = [f"{split.metric.name} · {split.dataset.name}" for split in splits]
    return list(dict.fromkeys([*named, *_splits_on_labels(scope)]))


def _listed(names: Any) -> str:
    """The first names, and how many there are in all."""
    every = list(names)
    listed = ", ".join(f"“{name}”" for name in every[:_LISTED])
    if len(every) > _LISTED:
        return _("%(names)s and %(n)s more") % {"names": listed, "n": len(every) - _LISTED}
    return listed


def _active_runs(scope: Scope) -> Any:
    return scope.runs.filter(state__in=WORKED_ON, deleted_at=None).exclude(kind=PEOPLE)


def _versions_in_progress(scope: Scope) -> Any:
    """Versions being read, also those that are being made from deleted ones or from answers of deleted runs."""
    condition = Q(pk__in=scope.versions.values("pk")) | Q(parent__in=scope.versions.values("pk"))
    for run in scope.runs.filter(kind=INFER):
        condition |= Q(repairs=[{"name": run_answers.STEP, "value": source_of(run)}])
    return Version.objects.filter(condition, state__in=OPEN_STATES).select_related("dataset")


def _importing(scope: Scope) -> bool:
    versions, runs = scope.versions.values("pk"), scope.runs.values("pk")
    results = ResultsImport.objects.filter(Q(run__in=runs) | Q(version__in=versions))
    ratings = RatingsImport.objects.filter(evaluation__in=scope.evaluations.values("pk"))
    return (
        results.filter(state=ResultsImportState.IMPORTING).exists()
        or ratings.filter(state__in=(ImportState.READING, ImportState.UNDOING)).exists()
    )


@transaction.atomic
def delete_begin(
    *, kind: str, thing: Model, by: User | None = None, with_runs: bool = False, wait: bool = False
) -> Deletion:
    """Hide an object and what goes with it, and have a worker remove them. With `wait`, the caller runs the job itself.

    Raises ValidationError if the object cannot be deleted, or if someone else deleted it.
    """
    definition = KINDS[kind]
    locked = definition.model._default_manager.select_for_update(of=("self",)).filter(pk=thing.pk)
    if not locked.exists():
        raise ValidationError(_("“%(name)s” was already deleted.") % {"name": definition.name(thing)})
    scope = definition.scope(thing.pk)
    list(scope.versions.select_for_update(of=("self",)).values_list("pk"))  # no run can begin to use them
    if why := obstacle(kind, thing.pk, with_runs=with_runs):
        raise ValidationError(why)
    _record(kind, thing, scope, by)
    deletion = Deletion.objects.create(
        kind=kind,
        object_id=thing.pk,
        files=sorted(file_names(scope)),
    )
    _hide(scope)
    jobs.request(JOB, deletion.pk, here=wait)
    return deletion


def _record(kind: str, thing: Any, scope: Scope, by: User | None) -> None:
    """An entry for the object with what goes with it, and one for each named object among that."""
    project = (
        thing if isinstance(thing, Project) else getattr(thing, "project", None) or thing.dataset.project
    )
    name = KINDS[kind].name(thing)
    record(KINDS[kind].action, project=project, thing=thing, name=name, by=by, **contents(kind, thing.pk))
    for dataset in scope.datasets.filter(deleted_at=None).exclude(pk=_own_id(thing, Dataset)):
        record(Action.DATASET_DELETED, project=project, thing=dataset, by=by, together_with=name)
    for run in scope.runs.filter(deleted_at=None).exclude(pk=_own_id(thing, Run)):
        action = Action.EVALUATION_DELETED if run.by_people else Action.RUN_DELETED
        record(action, project=project, thing=run, by=by, together_with=name)


def _own_id(thing: Model, model: type[Model]) -> int:
    return thing.pk if isinstance(thing, model) else 0


def _hide(scope: Scope) -> None:
    """Mark everything as deleted. Names become free for others."""
    hidden = {"deleted_at": timezone.now(), "archived_at": Coalesce("archived_at", timezone.now())}
    free_name = Concat(Value(f"deleted {uuid.uuid4().hex} "), Cast("pk", CharField()))
    runs = list(scope.runs.filter(deleted_at=None).values_list("pk", flat=True))
    versions = list(scope.versions.filter(deleted_at=None).values_list("pk", flat=True))
    Evaluation.all_objects.filter(run__in=runs, closed_at=None).update(closed_at=timezone.now())
    Evaluation.all_objects.filter(about_run__in=runs).update(about_run=None)
    resting = Run.all_objects.filter(pk__in=runs).exclude(~Q(kind=PEOPLE), state__in=WORKED_ON)
    if resting.update(**hidden, name=free_name) < len(runs):
        raise ValidationError(
            _("A run was resumed meanwhile. Wait for the end, or cancel or pause it first.")
        )
    for dataset, number in scope.versions.values_list("dataset", "number"):
        Dataset.all_objects.filter(pk=dataset).update(last_deleted=Greatest("last_deleted", number))
    Version.all_objects.filter(parent__in=versions).update(parent=None)
    edits = RowEdit.objects.filter(new_version__in=versions)
    edits.update(discarded=True, new_version=None)  # no draft again
    Version.all_objects.filter(pk__in=versions).update(deleted_at=hidden["deleted_at"])
    scope.datasets.filter(deleted_at=None).update(**hidden, name=free_name)
    slug = Concat(Value(f"deleted-{uuid.uuid4().hex}-"), Cast("pk", CharField()))
    scope.projects.filter(deleted_at=None).update(**hidden, slug=slug)


def _failed(hold: Hold, _deletion: Deletion, error: Exception) -> None:
    hold.problem(error)
    hold.release(RETRY_PAUSE)


@jobs.job(JOB, Deletion, failed=_failed)
def remove_deleted(hold: Hold, deletion: Deletion) -> None:
    """Remove what was deleted, or go on with it. The stored files go last: only then nothing refers to them."""

    def checkpoint() -> None:
        hold.renew_at_times()
        hold.pause()

    delete_rows(KINDS[deletion.kind].scope(deletion.object_id), checkpoint)
    files.delete(*set(deletion.files) - still_used(deletion.files))
    with transaction.atomic():
        hold.finish()
        deletion.delete()
        jobs.delete_orphans()
