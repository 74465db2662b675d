"""Queries for the home page and project pages: a project's progress and its latest runs."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from django.db.models import F, QuerySet, Window
from django.db.models.functions import RowNumber

from datasets.selectors import usable_versions
from evalsite.accounts.models import SAMPLE_SLUGS, Project
from judging.endpoints.models import Endpoint
from judging.metrics.models import Metric
from judging.records.models import PEOPLE, Run, RunState

RUNS_ON_A_CARD = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupStep:
    """One step from a data set to a report; `state` is done, next (the first that is not) or later."""

    code: str
    state: str
    count: int


def latest_runs(projects: QuerySet[Project], limit: int) -> dict[int, list[Run]]:
    """{project id: its newest `limit` runs that workers process}, without archived runs, and without projects that
    have none."""
    newest_first = Window(RowNumber(), partition_by=F("project_id"), order_by=F("pk").desc())
    runs = (
        Run.objects.filter(project__in=projects.values("pk"), archived_at=None)
        .exclude(kind=PEOPLE)
        .annotate(place=newest_first)
        .filter(place__lte=limit)
        .select_related("project", "version__dataset")
        .order_by("-pk")
    )
    by_project: dict[int, list[Run]] = {}
    for run in runs:
        by_project.setdefault(run.project_id, []).append(run)
    return by_project


def project_steps(project: Project) -> list[SetupStep]:
    """A project's steps, in the order for newcomers."""
    versions = usable_versions(project)
    runs = Run.objects.filter(project=project, archived_at=None).exclude(kind=PEOPLE)
    counts = {
        "dataset": versions.values("dataset").distinct().count(),
        "endpoint": Endpoint.objects.filter(project=project, archived_at=None, draft=False).count(),
        "metric": Metric.objects.filter(project=project, archived_at=None).count(),
        "run": runs.count(),
        "report": runs.filter(state=RunState.FINISHED).count(),
    }
    following = next((code for code, count in counts.items() if not count), None)
    return [
        SetupStep(code=code, state="done" if count else "next" if code == following else "later", count=count)
        for code, count in counts.items()
    ]


def samples_in_other_languages(projects: Collection[str], language: str) -> list[str]:
    """Slugs of the samples to hide because the sample in the reader's language is among the projects."""
    own = SAMPLE_SLUGS[language]
    return [slug for slug in SAMPLE_SLUGS.values() if slug != own and own in projects]
