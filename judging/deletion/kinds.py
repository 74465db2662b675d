"""The kinds of objects that can be deleted: what goes with each of them, and what prevents it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import Model, Q, QuerySet, Sum

from datasets.models import Attachment, Candidate, Dataset, FileImport, SearchIndex, Version
from datasets.versions.search import index_name
from evalsite.accounts.models import Project
from evalsite.audit import Action
from evalsite.derived import of_subjects
from evalsite.web.numbers import whole
from judging.look.models import Note
from judging.people.import_models import RatingsImport
from judging.people.models import Evaluation, Rating
from judging.people.rater_figures import FIGURES as RATER_FIGURES
from judging.records.models import PEOPLE, Judgement, Override, Run
from judging.reports.comparison.stored import changes_of_runs
from judging.reports.models import ReportLink
from judging.reports.stored import OF_RUN
from judging.teamwork.models import Comment, Mark
from judging.transfer.results_import.models import ResultsImport


@dataclass(frozen=True, slots=True)
class Scope:
    """All objects that are deleted together, including those that were deleted before and not removed yet."""

    projects: QuerySet[Project]
    datasets: QuerySet[Dataset]
    versions: QuerySet[Version]
    runs: QuerySet[Run]

    @property
    def evaluations(self) -> QuerySet[Evaluation]:
        return Evaluation.all_objects.filter(run__in=self.runs)

    @property
    def of_runs(self) -> Q:
        """Selects what has a `run` among those of the scope."""
        return Q(run__in=self.runs.values("pk"))


def _scope(
    projects: Q | None = None, datasets: Q | None = None, versions: Q | None = None, runs: Q | None = None
) -> Scope:
    """The objects that the conditions select; without one, none."""
    none = Q(pk__in=[])
    return Scope(
        Project.all_objects.filter(projects or none).order_by("pk"),
        Dataset.all_objects.filter(datasets or none).order_by("pk"),
        Version.all_objects.filter(versions or none).order_by("pk"),
        Run.all_objects.filter(runs or none).order_by("pk"),
    )


def _of_run(pk: int) -> Scope:
    return _scope(runs=Q(pk=pk))


def _of_version(pk: int) -> Scope:
    return _scope(versions=Q(pk=pk), runs=Q(version=pk) | Q(evaluation__other_version=pk))


def _of_dataset(pk: int) -> Scope:
    runs = Q(version__dataset=pk) | Q(evaluation__other_version__dataset=pk)
    return _scope(datasets=Q(pk=pk), versions=Q(dataset=pk), runs=runs)


def _of_project(pk: int) -> Scope:
    return _scope(Q(pk=pk), Q(project=pk), Q(dataset__project=pk), Q(project=pk))


def _runs_called(name: str) -> QuerySet[Any]:
    runs = Run.objects.exclude(kind=PEOPLE)
    return runs.filter(name=name) or runs.filter(pk=whole(name) or 0)


def _evaluations_called(name: str) -> QuerySet[Any]:
    runs = Run.objects.filter(kind=PEOPLE)
    return runs.filter(name=name) or runs.filter(pk=whole(name) or 0)


def _datasets_called(name: str) -> QuerySet[Any]:
    return Dataset.objects.filter(name=name) or Dataset.objects.filter(pk=whole(name) or 0)


def _projects_called(name: str) -> QuerySet[Any]:
    return Project.objects.filter(slug=name) or Project.objects.filter(name=name)


_VERSION_NAME = re.compile(r"(?P<dataset>.+?)(?:\s*[:@/#]\s*v?|\s+v|\s+version\s+)(?P<number>\d+)", re.DOTALL)


def _versions_called(name: str) -> QuerySet[Any]:
    """A version as `version_name` writes it, or with another separator; a data set's only version by its name."""
    versions = Version.objects.filter(number__gt=0, dataset__deleted_at=None).select_related("dataset")
    if match := _VERSION_NAME.fullmatch(name):
        named = versions.filter(dataset__name=match["dataset"], number=whole(match["number"]) or 0)
        if named:
            return named
    return versions.filter(dataset__name=name)


def version_name(version: Any) -> str:
    return f"{version.dataset.name} v{version.number}"


def _own_name(thing: Any) -> str:
    return str(thing.name)


@dataclass(frozen=True, slots=True)
class Kind:
    """`called`: the objects with a name given on the command line. `uses`: whether runs only use it, so that deleting
    them needs a word of its own."""

    model: type[Model]
    action: Action
    scope: Callable[[int], Scope]
    called: Callable[[str], QuerySet[Any]]
    name: Callable[[Any], str] = _own_name
    uses: bool = False


KINDS = {
    "run": Kind(Run, Action.RUN_DELETED, _of_run, _runs_called),
    "version": Kind(Version, Action.VERSION_DELETED, _of_version, _versions_called, version_name, uses=True),
    "dataset": Kind(Dataset, Action.DATASET_DELETED, _of_dataset, _datasets_called, uses=True),
    "evaluation": Kind(Run, Action.EVALUATION_DELETED, _of_run, _evaluations_called),
    "project": Kind(Project, Action.PROJECT_DELETED, _of_project, _projects_called),
}

CONTENTS: dict[str, Callable[[Scope], int]] = {
    "datasets": lambda scope: scope.datasets.count(),
    "versions": lambda scope: scope.versions.filter(number__gt=0).count(),
    "rows": lambda scope: scope.versions.aggregate(sum=Sum("rows"))["sum"] or 0,
    "answers": lambda scope: _answers(scope),
    "runs": lambda scope: scope.runs.exclude(kind=PEOPLE).count(),
    "evaluations": lambda scope: scope.runs.filter(kind=PEOPLE).count(),
    "judgements": lambda scope: Judgement.objects.filter(scope.of_runs).count(),
    "ratings": lambda scope: Rating.objects.filter(assignment__evaluation__in=scope.evaluations).count(),
    "overrides": lambda scope: Override.objects.filter(judgement__run__in=scope.runs.values("pk")).count(),
    "comments": lambda scope: Comment.objects.filter(scope.of_runs).count(),
    "marks": lambda scope: Mark.objects.current().filter(scope.of_runs).count(),
    "notes": lambda scope: Note.objects.filter(
        Q(answer__look__run__in=scope.runs.values("pk"))
        | Q(answer__look__version__in=scope.versions.values("pk"))
    ).count(),
    "links": lambda scope: ReportLink.objects.filter(scope.of_runs).count(),
    "derived": lambda scope: _derived(scope),
    "files": lambda scope: len(file_names(scope)),
}
"""What can go with an object: {kind: how many there are}."""


def contents(kind: str, pk: int) -> dict[str, int]:
    """What goes with an object, without the object itself: {kind: number}, without zeros."""
    scope = KINDS[kind].scope(pk)
    counts = {name: count(scope) for name, count in CONTENTS.items()}
    counts[f"{kind}s"] = counts.get(f"{kind}s", 1) - 1
    return {name: count for name, count in counts.items() if count > 0}


def _answers(scope: Scope) -> int:
    candidates = Candidate.objects.filter(version__in=scope.versions.filter(number__gt=0).values("pk"))
    return candidates.aggregate(sum=Sum("responses"))["sum"] or 0


def _derived(scope: Scope) -> int:
    runs = list(scope.runs.values_list("pk", flat=True))
    return changes_of_runs(runs).count() + of_subjects([*OF_RUN, RATER_FIGURES], runs).count()


def file_names(scope: Scope) -> set[str]:
    """Names of the stored files that belong to the objects. Other objects may use some of them, too."""
    versions, runs = scope.versions.values("pk"), scope.runs.values("pk")
    imports = Q(run__in=runs) | Q(version__in=versions)
    ratings = RatingsImport.objects.filter(evaluation__in=scope.evaluations.values("pk"), ended_at=None)
    indexes = SearchIndex.objects.filter(version__in=versions).values_list("version", flat=True)
    return {
        *files_of_versions(scope.versions),
        *files_of_attachments(
            Attachment.objects.filter(Q(version__in=versions) | Q(new_version__in=versions))
        ),
        *files_of_drafts(file_imports(scope)),
        *ResultsImport.objects.filter(imports, ended_at=None).values_list("stored_as", flat=True),
        *ratings.values_list("stored_as", flat=True),
        *map(index_name, indexes),
    } - {""}


def file_imports(scope: Scope) -> QuerySet[FileImport]:
    """The imports of other tools' files that ended in the versions, or that are drafts from them; of a project, all."""
    versions = scope.versions.values("pk")
    return FileImport.objects.filter(
        Q(new_version__in=versions)
        | Q(version__in=versions, new_version=None)
        | Q(project__in=scope.projects.values("pk"))
    )


def files_of_versions(versions: QuerySet[Version]) -> set[str]:
    names = set(versions.values_list("stored_as", flat=True))
    return names | _stored(versions.exclude(parts=[]).values_list("parts", flat=True))


def files_of_attachments(attachments: QuerySet[Attachment]) -> set[str]:
    stored_names = attachments.values_list("stored_as", "merged_as", "unmatched_as")
    return {name for names in stored_names for name in names}


def files_of_drafts(drafts: QuerySet[FileImport]) -> set[str]:
    names = set(drafts.values_list("verdicts_as", flat=True))
    return names | _stored(drafts.values_list("files", flat=True))


def _stored(lists: Iterable[list[dict[str, Any]]]) -> set[str]:
    return {file["stored_as"] for files in lists for file in files if "stored_as" in file}
