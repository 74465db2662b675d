"""Groups of a project's raters, who are added to evaluations together."""

from __future__ import annotations

from collections.abc import Collection

from django.db import transaction
from django.db.models import Count, Q, QuerySet

from evalsite.accounts.models import Project, User
from evalsite.audit import Action, record
from judging.people.assignments import raters_add
from judging.people.inviting.models import RaterGroup
from judging.people.models import Evaluation
from judging.people.selectors import possible_raters


def groups_of(project: Project) -> QuerySet[RaterGroup]:
    """A project's groups by name, each with the number of its `people`."""
    return RaterGroup.objects.filter(project=project).annotate(people=Count("users")).order_by("name")


@transaction.atomic
def group_save(
    *, project: Project, group: RaterGroup | None, name: str, users: Collection[User], by: User
) -> RaterGroup:
    """Create a group, or change one. Raises IntegrityError if the name is taken."""
    group = group or RaterGroup(project=project)
    group.name = name
    group.save()
    group.users.set(users)
    record(Action.RATER_GROUP_SAVED, project=project, thing=group, by=by, people=len(users))
    return group


@transaction.atomic
def group_delete(*, group: RaterGroup, by: User) -> None:
    """Delete a group; its people stay members and raters."""
    record(Action.RATER_GROUP_DELETED, project=group.project, thing=group, by=by)
    group.delete()


@transaction.atomic
def group_add(*, evaluation: Evaluation, group: RaterGroup, by: User) -> tuple[list[User], int]:
    """Add a group's people as raters. Returns those who were added, and how many can't rate in the project any
    more."""
    users = list(possible_raters(evaluation.run.project).filter(pk__in=group.users.values("pk")))
    current = set(evaluation.raters.filter(left_at=None).values_list("user", flat=True))
    raters_add(evaluation=evaluation, users=users, by=by)
    return [user for user in users if user.pk not in current], group.users.count() - len(users)


def group_members(group: RaterGroup) -> QuerySet[User]:
    """Its people by name, also those who can't rate any more."""
    return User.objects.filter(Q(pk__in=group.users.values("pk"))).order_by("username")
