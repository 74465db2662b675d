"""Removes the rows of deleted objects from the database in batches, each in a transaction, so that others can write
meanwhile. Rows that refer to others go first. Whoever goes on after a killed worker begins again with what is left."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from django.db import connection, transaction
from django.db.models import Model, Q, QuerySet

from datasets.models import (
    Attachment,
    Candidate,
    Dataset,
    Difference,
    DifferenceRow,
    FileImport,
    FindingLines,
    Response,
    Row,
    RowEdit,
    SavedColumns,
    SearchIndex,
    StoredFinding,
    Version,
)
from evalsite.accounts.models import ApiToken, Draft, Invitation, InvitationUse, Membership, Project, User
from evalsite.derived import of_subjects
from evalsite.models import StoredReply
from evalsite.webhooks.models import Delivery, Webhook
from judging.deletion.kinds import (
    Scope,
    file_imports,
    files_of_attachments,
    files_of_drafts,
    files_of_versions,
)
from judging.endpoints.models import Endpoint
from judging.engine.candidates import source_of
from judging.evidence.models import EvidenceRules
from judging.look.models import (
    GroupedNote,
    GroupProposal,
    Look,
    LookAnswer,
    Note,
    NoteGroup,
    SetAside,
    TrainLabel,
)
from judging.metrics.lint import OF_VERSION as LINTS_OF_VERSION
from judging.metrics.models import GalleryEntry, Metric, MetricVersion
from judging.people.asking.models import AnswerDraw, Sending, SendingRule
from judging.people.guidelines.models import GuidelineReading, GuidelineVersion, VersionRepeat
from judging.people.import_models import RatingsImport
from judging.people.inviting.models import RaterGroup, StudyLink
from judging.people.models import (
    Adjudication,
    Assignment,
    Evaluation,
    EvaluationRater,
    FurtherAnswer,
    Item,
    Rating,
    SentItem,
)
from judging.people.qualification.models import (
    EntryAssignment,
    Qualification,
    QualificationTry,
    TrainingItem,
)
from judging.people.questions.models import Question
from judging.people.rater_figures import FIGURES as RATER_FIGURES
from judging.records.models import (
    BatchRequest,
    CachedReply,
    Chunk,
    Generation,
    Judgement,
    JudgeReply,
    Override,
    Reading,
    Rejudging,
    RequestBatch,
    Run,
    RunCandidate,
    RunMetric,
    VerdictSource,
)
from judging.reports.comparison.stored import changes_of_runs, delete_comparisons
from judging.reports.models import ReportLink
from judging.reports.stored import OF_RUN as DERIVED_OF_RUN
from judging.review.models import SavedView
from judging.rubrics.models import RubricDraft
from judging.teamwork.models import Comment, Mark, Notice, ReviewAction
from judging.transfer.results_import.models import OpenedEvidence, ResultsImport
from judging.trust.drill_pages.models import Drill
from judging.trust.models import (
    FurtherDraw,
    Licence,
    LicenceThresholds,
    Measurement,
    Opening,
    PromptSuggestion,
    SealedTest,
    Split,
    SplitRow,
    Suspension,
)
from judging.trust.succession.models import Succession
from judging.trust.watch.models import Sitting, Watch

BATCH = 1_000
Checkpoint = Callable[[], None]
Act = Callable[[type[Model], Sequence[int]], None]

OF_RUN: tuple[tuple[type[Model], str], ...] = (
    (GroupedNote, "group__look__run"),
    (NoteGroup, "look__run"),
    (GroupProposal, "look__run"),
    (Note, "answer__look__run"),
    (LookAnswer, "look__run"),
    (Look, "run"),
    (SetAside, "run"),
    (TrainLabel, "run"),
    (Notice, "comment__run"),
    (Notice, "action__run"),
    (Comment, "run"),
    (Mark, "run"),
    (Rejudging, "run"),
    (ReviewAction, "run"),
    (GuidelineReading, "rater__evaluation__run"),
    (GuidelineVersion, "evaluation__run"),
    (QualificationTry, "rater__evaluation__run"),
    (Qualification, "evaluation__run"),
    (EvaluationRater, "evaluation__run"),
    (StudyLink, "evaluation__run"),
    (RatingsImport, "evaluation__run"),
    (ReportLink, "run"),
    (OpenedEvidence, "results_import__run"),
    (ResultsImport, "run"),
    (VerdictSource, "run"),
    (Reading, "run_metric__run"),
    (Measurement, "labels__run"),
    (BatchRequest, "run"),
    (RequestBatch, "run"),
    (RunMetric, "run"),
    (RunCandidate, "run"),
)
"""What belongs to a run besides its chunks, judgements, answers and items, and the path to it, in an order in which
nothing that is left refers to what is gone."""

OF_VERSION: tuple[tuple[type[Model], str], ...] = (
    (GroupedNote, "group__look__version"),
    (NoteGroup, "look__version"),
    (GroupProposal, "look__version"),
    (Note, "answer__look__version"),
    (LookAnswer, "look__version"),
    (Look, "version"),
    (SetAside, "version"),
    (TrainLabel, "version"),
    (StoredFinding, "version"),
    (FindingLines, "version"),
    (SearchIndex, "version"),
    (Attachment, "version"),
    (Attachment, "new_version"),
    (RubricDraft, "version"),
    (RowEdit, "version"),
    (OpenedEvidence, "results_import__version"),
    (ResultsImport, "version"),
    (Candidate, "version"),
)
"""What belongs to a version besides its rows with their answers, and its differences to others."""

OF_PROJECT: tuple[tuple[type[Model], str], ...] = (
    (StoredReply, "token__project"),
    (ApiToken, "project"),
    (Draft, "project"),
    (InvitationUse, "invitation__project"),
    (Invitation, "project"),
    (RaterGroup.users.through, "ratergroup__project"),
    (RaterGroup, "project"),
    (Membership, "project"),
    (SavedColumns, "project"),
    (SavedView, "project"),
    (Notice, "project"),
    (Delivery, "webhook__project"),
    (Webhook, "project"),
    (CachedReply, "project"),
    (LicenceThresholds, "project"),
    (Measurement, "project"),
    (EvidenceRules, "project"),
    (Drill, "project"),
    (Succession, "project"),
    (Sitting, "watch__licence__metric_version__metric__project"),
    (Watch, "licence__metric_version__metric__project"),
    (Suspension, "licence__metric_version__metric__project"),
    (Licence, "metric_version__metric__project"),
    (TrainLabel, "metric__project"),
    (GalleryEntry, "metric__project"),
    (MetricVersion, "metric__project"),
    (Metric, "project"),
)


def delete_rows(scope: Scope, checkpoint: Checkpoint) -> None:
    """Remove the objects with all that belongs to them. `checkpoint` is called between batches; it may
    raise WorkStopped."""
    for run in scope.runs:
        _delete_run(run, checkpoint)
        checkpoint()
    _delete_drafts(scope)
    for version in scope.versions.order_by("-number"):
        _delete_version(version, checkpoint)
        checkpoint()
    for dataset in scope.datasets:
        _delete_splits(dataset, checkpoint)
    in_batches(scope.datasets, checkpoint)
    for project in scope.projects:
        _delete_project(project, checkpoint)


def in_batches(
    rows: QuerySet[Any],
    checkpoint: Checkpoint,
    act: Act | None = None,
    *,
    along: str = "",
    batch: int = BATCH,
) -> None:
    """Delete the rows, or do `act`, which deletes them, with their keys. With `along`, a unique column with an index,
    from its highest value to the lowest, because some rows refer to earlier ones of the same table."""
    act, last = act or delete_ids, None
    rows = rows.order_by(f"-{along}") if along else rows.order_by()
    while True:
        with transaction.atomic():
            part = rows if last is None else rows.filter(**{f"{along}__lt": last})
            keys = list(part.values_list("pk", along or "pk")[:batch])
            if keys:
                act(rows.model, [pk for pk, _place in keys])
        if len(keys) < batch:
            return
        last = keys[-1][1] if along else None
        checkpoint()


def delete_ids(model: type[Model], ids: Collection[int], column: str = "") -> None:
    """Delete rows by key, or by another column, without looking for what refers to them."""
    if not ids:
        return
    of = model._meta.pk.column if not column else model._meta.get_field(column).column  # type: ignore[union-attr]
    places = ", ".join(["%s"] * len(ids))
    with connection.cursor() as cursor:
        cursor.execute(f'DELETE FROM "{model._meta.db_table}" WHERE "{of}" IN ({places})', list(ids))  # noqa: S608


def _delete_run(run: Run, checkpoint: Checkpoint) -> None:
    """Chunks go first: whoever judges in one of them can store nothing any more."""
    in_batches(Chunk.objects.filter(run=run), checkpoint)
    in_batches(Judgement.objects.filter(run=run), checkpoint, delete_judgements, along="position")
    _delete_generated(run, checkpoint)
    in_batches(Adjudication.objects.filter(item__evaluation__run=run), checkpoint)
    in_batches(SentItem.objects.filter(item__evaluation__run=run), checkpoint)
    in_batches(EntryAssignment.objects.filter(assignment__evaluation__run=run), checkpoint)
    in_batches(Question.objects.filter(rater__evaluation__run=run), checkpoint)
    in_batches(TrainingItem.objects.filter(item__evaluation__run=run), checkpoint)
    in_batches(VersionRepeat.objects.filter(version__evaluation__run=run), checkpoint)
    in_batches(Assignment.objects.filter(evaluation__run=run), checkpoint, _delete_assignments)
    in_batches(FurtherAnswer.objects.filter(item__evaluation__run=run), checkpoint)
    in_batches(Item.objects.filter(evaluation__run=run), checkpoint, along="number")
    in_batches(AnswerDraw.objects.filter(Q(evaluation__run=run) | Q(about_run=run)), checkpoint)
    in_batches(Sending.objects.filter(Q(run=run) | Q(rule__evaluation__run=run)), checkpoint)
    in_batches(SendingRule.objects.filter(evaluation__run=run), checkpoint)
    in_batches(of_subjects([*DERIVED_OF_RUN, RATER_FIGURES], [run.pk]), checkpoint)
    in_batches(changes_of_runs([run.pk]), checkpoint, lambda _model, ids: delete_comparisons(ids), batch=10)
    Succession.objects.filter(old__run=run).update(old=None)
    for model, path in OF_RUN:
        in_batches(model._default_manager.filter(**{path: run}), checkpoint)
    for draws in (SealedTest, FurtherDraw):
        draws.objects.filter(evaluation__run=run).update(evaluation=None)
    in_batches(Evaluation.all_objects.filter(run=run), checkpoint)
    Opening.objects.filter(run=run).update(run=None)
    PromptSuggestion.objects.filter(run=run).update(run=None)
    Drill.objects.filter(run=run).update(run=None)
    Succession.objects.filter(run=run).update(run=None)
    Drill.objects.filter(answers_in=run).update(answers_in=None)
    Sitting.objects.filter(run=run).update(run=None)
    delete_ids(Run, [run.pk])


def _delete_splits(dataset: Dataset, checkpoint: Checkpoint) -> None:
    """A data set's splits with their tests; the licences that these gave keep their figures."""
    Licence.objects.filter(opening__test__split__dataset=dataset).update(opening=None)
    in_batches(Opening.objects.filter(test__split__dataset=dataset), checkpoint)
    in_batches(FurtherDraw.objects.filter(test__split__dataset=dataset), checkpoint)
    in_batches(SealedTest.objects.filter(split__dataset=dataset), checkpoint)
    in_batches(SplitRow.objects.filter(split__dataset=dataset), checkpoint)
    in_batches(PromptSuggestion.objects.filter(split__dataset=dataset), checkpoint)
    in_batches(Split.objects.filter(dataset=dataset), checkpoint)


def _delete_assignments(_model: type[Model], ids: Sequence[int]) -> None:
    """Assignments and their ratings, which refer to each other."""
    Assignment.objects.filter(pk__in=ids).update(rating=None)
    delete_ids(Rating, ids, "assignment")
    delete_ids(Assignment, ids)


def delete_judgements(_model: type[Model], judgements: Sequence[int]) -> None:
    replies = JudgeReply.objects.filter(judgement__in=judgements).values_list("pk", flat=True)
    delete_ids(CachedReply, list(replies), "reply")
    delete_ids(JudgeReply, judgements, "judgement")
    delete_ids(Override, judgements, "judgement")
    delete_ids(Judgement, judgements)


def _delete_generated(run: Run, checkpoint: Checkpoint) -> None:
    """The answers that the run generated, unless people rate them in an evaluation of its answers."""
    generated = Candidate.objects.filter(version=run.version_id, source=source_of(run))
    own = list(generated.values_list("pk", flat=True))
    if not own:
        return
    used = RunCandidate.objects.exclude(run=run).filter(candidate__in=own).values_list("candidate", flat=True)
    unused = set(own) - set(used)

    def delete(_model: type[Model], rows: Sequence[int]) -> None:
        answers = Response.objects.filter(row__in=rows, candidate__in=own)
        ids = dict(answers.values_list("pk", "candidate_id"))
        delete_ids(Generation, list(ids), "response")
        delete_ids(Response, [pk for pk, candidate in ids.items() if candidate in unused])

    in_batches(Row.objects.filter(version=run.version_id), checkpoint, delete, along="line")
    in_batches(RunCandidate.objects.filter(run=run), checkpoint)
    delete_ids(Candidate, unused)


def _delete_version(version: Version, checkpoint: Checkpoint) -> None:
    rows = Row.objects.filter(version=version)
    in_batches(rows, checkpoint, lambda _model, ids: _delete_data(version, ids), along="line")
    hidden = Version.all_objects.filter(dataset=version.dataset_id, number=0)
    references = Candidate.objects.filter(version__in=hidden, source=f"v{version.number}"[:10])
    in_batches(references, checkpoint)
    for difference in Difference.objects.filter(Q(old=version) | Q(new=version)):
        in_batches(DifferenceRow.objects.filter(difference=difference), checkpoint, along="position")
        delete_ids(Difference, [difference.pk])
    in_batches(of_subjects(LINTS_OF_VERSION, [version.pk]), checkpoint)
    for model, path in OF_VERSION:
        in_batches(model._default_manager.filter(**{path: version}), checkpoint)
    FileImport.objects.filter(version=version).update(version=None)
    for draws in (SealedTest, FurtherDraw):
        draws.objects.filter(version=version).update(version=None)
    Drill.objects.filter(version=version).update(version=None)
    Watch.objects.filter(version=version).update(version=None)
    delete_ids(Version, [version.pk])


def _delete_data(version: Version, rows: Sequence[int]) -> None:
    """Rows with their answers, and with their references, which are answers to rows of version 0."""
    references = Row.objects.filter(version__dataset=version.dataset_id, version__number=0, line__in=rows)
    every = [*rows, *references.values_list("pk", flat=True)]
    delete_ids(Response, every, "row")
    delete_ids(Row, every)


def _delete_drafts(scope: Scope) -> None:
    delete_ids(FileImport, list(file_imports(scope).values_list("pk", flat=True)))


def _delete_project(project: Project, checkpoint: Checkpoint) -> None:
    for model, path in OF_PROJECT:
        in_batches(model._default_manager.filter(**{path: project}), checkpoint)
    User.objects.filter(created_for=project).update(created_for=None)
    Endpoint.objects.filter(project=project).delete()  # replies that remain lose their endpoint
    ResultsImport.objects.filter(project=project).delete()
    delete_ids(Project, [project.pk])


def still_used(names: Collection[str]) -> set[str]:
    """Those of these files that other objects use, too: versions made from the same bytes, for example."""
    drafts = FileImport.objects.filter(Q(new_version=None) | Q(verdicts_as__in=names))
    imports = ResultsImport.objects.filter(stored_as__in=names).values_list("stored_as", flat=True)
    used = files_of_versions(Version.all_objects.all()) | files_of_attachments(Attachment.objects.all())
    return (used | files_of_drafts(drafts) | set(imports)) & set(names)
