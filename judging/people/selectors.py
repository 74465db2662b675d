"""Reading evaluations: an organiser's list, a rater's queue, an evaluation's items."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Count, F, OuterRef, Q, QuerySet, Subquery, Sum

from evalsite.accounts.models import Membership, Project, Role, User
from judging.people.looking import seen_open
from judging.people.models import Assignment, AssignmentState, Evaluation, EvaluationRater, Item

PER_PAGE = 50


def evaluations_page(
    project: Project, *, archived: bool = False, before: int | None = None
) -> tuple[list[Evaluation], int | None]:
    """Evaluations with `given` and `needed` ratings, newest first, and where the next page begins (None: nowhere)."""
    usual = Item.objects.filter(evaluation=OuterRef("pk"), needed__gt=0).order_by().values("evaluation")
    found = Evaluation.objects.filter(run__project=project, run__archived_at__isnull=not archived)
    found = found.select_related("run__version__dataset", "other_version__dataset").annotate(
        given=Subquery(usual.annotate(sum=Sum("given")).values("sum")),
        needed=Subquery(usual.annotate(sum=Sum("needed")).values("sum")),
        rater_count=Count("raters", filter=Q(raters__left_at=None)),
    )
    if before is not None:
        found = found.filter(pk__lt=before)
    page: list[Evaluation] = list(found.order_by("-pk")[: PER_PAGE + 1])
    return page[:PER_PAGE], page[PER_PAGE - 1].pk if len(page) > PER_PAGE else None


@dataclass(frozen=True, slots=True)
class Duty:
    """An evaluation in which somebody rates: what is done, and about how many items are left."""

    evaluation: Evaluation
    project: Project
    given: int
    left: int


def duties(user: User, projects: QuerySet[Project]) -> list[Duty]:
    """Where somebody is to rate in these projects; what has work left first."""
    parts = EvaluationRater.objects.filter(
        user=user,
        left_at=None,
        evaluation__closed_at=None,
        evaluation__run__archived_at=None,
        evaluation__run__project__in=projects.values("pk"),
    ).select_related("evaluation__run__project")
    found = [_duty(part) for part in parts.order_by("evaluation")]
    return sorted(found, key=lambda one: not one.left)


def _duty(part: EvaluationRater) -> Duty:
    own = Assignment.objects.filter(rater=part)
    opened = Item.objects.filter(evaluation=part.evaluation_id, free__gt=0).count()
    left = opened - seen_open(part) + own.filter(state=AssignmentState.LEASED).count()
    given = own.filter(state=AssignmentState.GIVEN).count()
    return Duty(part.evaluation, part.evaluation.run.project, given, left)


def possible_raters(project: Project) -> QuerySet[User]:
    """Who may rate in a project, by name; superusers too, who may do everything."""
    members = Membership.objects.filter(project=project, role__in=(Role.RATER, Role.ADMIN))
    active = User.objects.filter(is_active=True)
    return active.filter(Q(pk__in=members.values("user")) | Q(is_superuser=True)).order_by("username")


WHICH = ("all", "open", "held", "done", "skipped", "gold", "repeats")


def items_page(evaluation: Evaluation, which: str, after: int = 0) -> tuple[list[Item], int | None]:
    """Items of a kind by number, with who has them, and where the next page begins (None: nowhere)."""
    found = _which(Item.objects.filter(evaluation=evaluation, number__gt=after), which).distinct()
    parts = ("row", "response__candidate", "other_response__candidate")
    page = list(found.select_related(*parts).order_by("number")[: PER_PAGE + 1])
    return page[:PER_PAGE], page[PER_PAGE - 1].number if len(page) > PER_PAGE else None


def _which(found: QuerySet[Item], which: str) -> QuerySet[Item]:
    usual = found.filter(needed__gt=0)
    if which == "gold":
        return found.exclude(gold="")
    if which == "repeats":
        return found.filter(repeat_of__isnull=False)
    if which == "open":
        return usual.filter(free__gt=0)
    if which == "held":
        return found.filter(assignments__state=AssignmentState.LEASED)
    if which == "done":
        return usual.filter(given__gte=F("needed"))
    if which == "skipped":
        return found.filter(assignments__state=AssignmentState.SKIPPED)
    return usual
