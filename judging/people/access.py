"""Access to human evaluations, their items, and what raters hold of them.

Raters can see only evaluations in which they rate, and only their own items; anything else answers 404.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.http import Http404, HttpRequest

from evalsite import access
from evalsite.access import May
from evalsite.accounts.models import Project
from judging.people.models import Assignment, Evaluation, EvaluationRater, Item
from judging.runs.models import Run


def get_evaluation(request: HttpRequest, slug: str, pk: int, may: May) -> Evaluation:
    """An evaluation of the project called `slug`, by the number of its run; for May.RATE the user's own only.

    Raises Http404 or PermissionDenied.
    """
    project = access.get_project(request, slug, may)
    found = Evaluation.objects.select_related("run__version__dataset").filter(run__project=project, run=pk)
    if may == May.RATE:
        found = found.filter(raters__user=access.signed_in(request), raters__left_at=None)
    evaluation = found.first()
    if evaluation is None:
        raise Http404
    evaluation.run.project = project
    return evaluation


def get_item(evaluation: Evaluation, number: int) -> Item:
    """An item of an evaluation, with its row and answers. Raises Http404."""
    parts = ("row", "response__candidate", "other_response__candidate", "repeat_of")
    numbered = Item.objects.filter(evaluation=evaluation, number=number)
    found = numbered.select_related(*parts).first() if number < 2**31 else None
    if found is None:
        raise Http404
    found.evaluation = evaluation
    return found


def get_own_assignment(request: HttpRequest, slug: str, pk: int) -> Assignment:
    """An item in the asking rater's hands, or that was. Raises Http404 for anything else, PermissionDenied
    for a member who does not rate."""
    project = access.get_project(request, slug, May.RATE)
    own = Assignment.objects.filter(
        pk=pk, evaluation__run__project=project, rater__user=access.signed_in(request)
    )
    parts = ("evaluation__run", "rater", "item__row", "item__response", "item__other_response", "rating")
    assignment = own.select_related(*parts).first()
    if assignment is None:
        raise Http404
    return assignment


def blind_evaluations(request: HttpRequest, project: Project) -> set[int]:
    """Ids of the project's evaluations in which the request's user still rates and organises nothing: what others say
    there is hidden from them until it is closed."""
    parts = EvaluationRater.objects.filter(user=access.signed_in(request), left_at=None)
    parts = parts.filter(evaluation__closed_at=None, evaluation__run__project=project)
    found = set(parts.values_list("evaluation", flat=True))
    return found if found and May.RUN not in access.permissions(request, project) else set()


def hidden_among(request: HttpRequest, runs: Sequence[Run]) -> list[Run]:
    """Those of some runs, of any projects, whose results the request's user must not see yet: `rates_here`."""
    projects = {run.project_id: run.project for run in runs}
    parts = EvaluationRater.objects.filter(user=access.signed_in(request), left_at=None)
    parts = parts.filter(evaluation__closed_at=None, evaluation__run__project__in=projects)
    concerned: set[int] = set()
    for project, *pair in parts.values_list(
        "evaluation__run__project", "evaluation__run", "evaluation__about_run"
    ):
        if May.RUN not in access.permissions(request, projects[project]):
            concerned.update(pair)
    return [run for run in runs if run.pk in concerned]


def rates_here(request: HttpRequest, run: Run) -> bool:
    """Raters who are not organisers see no results while there is something left to rate."""
    return bool(hidden_among(request, [run]))


def ratings_hidden(request: HttpRequest, run: Run) -> bool:
    """Are the run's judgements ratings of an evaluation in which the request's user still rates?"""
    return run.by_people and rates_here(request, run)
