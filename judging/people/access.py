"""Access to human evaluations, their items and assignments.

Raters can see only the evaluations they rate in, and only their own items; anything else answers 404.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.db.models import Q
from django.http import Http404, HttpRequest
from django.shortcuts import get_object_or_404

from evalsite import access
from evalsite.access import May
from evalsite.accounts.models import Project, User
from judging.people.models import Assignment, Evaluation, EvaluationRater, Item
from judging.records.models import Run


def get_evaluation(request: HttpRequest, slug: str, pk: int, may: May) -> Evaluation:
    """Return a project's evaluation by the number of its run; with May.RATE only one in which the user rates, no draft,
    and while a pilot runs only for those in it.

    Raises Http404 or PermissionDenied.
    """
    project = access.get_project(request, slug, may)
    evaluations = Evaluation.objects.select_related("run__version__dataset").filter(
        run__project=project, run=pk
    )
    if may == May.RATE:
        user = access.signed_in(request)
        in_pilot = Q(pilot_below=None) | Q(raters__in_pilot=True)
        evaluations = evaluations.filter(in_pilot, raters__user=user, raters__left_at=None)
    evaluation = evaluations.first()
    if evaluation is None or (may == May.RATE and evaluation.state == "draft"):
        raise Http404
    evaluation.run.project = project
    access.loaded(request, evaluation.run)
    return evaluation


def get_item(evaluation: Evaluation, number: int) -> Item:
    """An item of an evaluation, with its row and answers. Raises Http404."""
    parts = ("row", "response__candidate", "other_response__candidate", "repeat_of")
    numbered = Item.objects.filter(evaluation=evaluation, number=number)
    item = numbered.select_related(*parts).first() if number < 2**31 else None
    if item is None:
        raise Http404
    item.evaluation = evaluation
    return item


def own_part(evaluation: Evaluation, user: User) -> EvaluationRater:
    """The user as a rater of an evaluation, also after leaving. Raises Http404."""
    rater = get_object_or_404(EvaluationRater, evaluation=evaluation, user=user)
    rater.evaluation = evaluation
    return rater


def get_rater(evaluation: Evaluation, pseudonym: str, *, former: bool = False) -> EvaluationRater:
    """A rater of an evaluation by pseudonym; with `former` also one who has left. Raises Http404."""
    raters = evaluation.raters.all() if former else evaluation.raters.filter(left_at=None)
    return get_object_or_404(raters, pseudonym=pseudonym)


def get_own_assignment(
    request: HttpRequest, slug: str, run_pk: int, token: UUID | int, *, with_texts: bool = False
) -> Assignment:
    """Return one of the user's own assignments, current or past; also after the rater has left, so that pending
    submissions are not lost. Raises Http404 for anything else, PermissionDenied for a member who does not rate.

    A number instead of a token: what an earlier release's page kept unsent. `with_texts`: with all that it takes to
    show the item; without, only with its item, evaluation and run, because each verdict asks."""
    project = access.get_project(request, slug, May.RATE)
    own = Assignment.objects.filter(
        **({"pk": token} if isinstance(token, int) else {"token": token}),
        evaluation__run=run_pk,
        evaluation__run__project=project,
        evaluation__run__deleted_at=None,
        rater__user=access.signed_in(request),
    )
    texts = ("rater", "rating", "item__row", "item__response", "item__other_response") if with_texts else ()
    assignment = own.select_related("evaluation__run", "item", *texts).first()
    if assignment is None:
        raise Http404
    assignment.evaluation.run.project = project
    access.loaded(request, assignment.evaluation.run)
    return assignment


def blind_evaluations(request: HttpRequest, project: Project) -> set[int]:
    """Ids of the project's open evaluations in which the user rates without being an organiser: other raters'
    verdicts are hidden from them until the evaluation is closed."""
    parts = EvaluationRater.objects.filter(user=access.signed_in(request), left_at=None)
    parts = parts.filter(evaluation__closed_at=None, evaluation__run__project=project)
    ids = set(parts.values_list("evaluation", flat=True))
    return ids if ids and May.RUN not in access.permissions(request, project) else set()


def hidden_among(request: HttpRequest, runs: Sequence[Run]) -> list[Run]:
    """The runs, possibly of several projects, whose results are hidden from the user; see `rates_here`."""
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
    """Whether results are hidden because the user, not an organiser, rates in an open evaluation of the run."""
    return bool(hidden_among(request, [run]))


def ratings_hidden(request: HttpRequest, run: Run) -> bool:
    """Whether the run's judgements are ratings of an open evaluation in which the user rates."""
    return run.by_people and rates_here(request, run)
