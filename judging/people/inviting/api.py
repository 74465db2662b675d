"""Raters, the quota and groups of raters in the API. Links that make accounts are made on pages only, because a token
can't manage accounts."""

from __future__ import annotations

from typing import Any

from django.db import IntegrityError, transaction
from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _
from ninja import Field, Router, Schema, Status

from evalsite import access
from evalsite.access import May
from evalsite.accounts.models import Project, User
from evalsite.api.errors import ApiError
from evalsite.api.lists import Cursor, Id, Limit, Page, cursor_of, text_at
from judging.people.access import get_evaluation
from judging.people.api_forms import Changed, Confirmable
from judging.people.assignments import raters_add
from judging.people.change_effects import quota_effects
from judging.people.inviting.groups import group_add, group_delete, group_members, group_save, groups_of
from judging.people.inviting.models import RaterGroup
from judging.people.inviting.offers import offer_set
from judging.people.inviting.quota_change import quota_change
from judging.people.models import Evaluation
from judging.people.selectors import possible_raters
from judging.runs.api import refuse_unknown

router = Router()
EVALUATION = "projects/{slug}/evaluations/{evaluation}"
GROUPS = "projects/{slug}/rater-groups"


class RatersIn(Schema):
    """User names of members who can rate, and names of groups. Raters who left come back."""

    users: list[str] = Field([], max_length=1000)
    groups: list[str] = Field([], max_length=100)


class RatersAdded(Schema):
    """`raters`: all user names now. `left_out`: how many people of the groups can't rate any more."""

    raters: list[str]
    left_out: int


class QuotaIn(Confirmable):
    """Items that a rater gets at most; null: no limit."""

    quota: int | None = Field(ge=1, le=200_000)


class QuotaOut(Changed):
    """`share`: what each rater is told, and gets at most; null without a quota."""

    quota: int | None
    share: int | None


class OfferIO(Schema):
    """Whether all raters of the project may join."""

    to_all: bool


class GroupIn(Schema):
    name: str = Field(min_length=1, max_length=100)
    users: list[str] = Field(max_length=1000)


class GroupOut(Schema):
    id: int
    name: str
    users: list[str]


@router.post(f"{EVALUATION}/raters/add", response=RatersAdded, summary="Add raters")
def add_raters(request: HttpRequest, slug: str, evaluation: Id, body: RatersIn) -> dict[str, Any]:
    """Nothing changes for those who rate already. 422: a user or a group is unknown, and nobody was added."""
    row = get_evaluation(request, slug, evaluation, May.RUN)
    users, by = _users(row.run.project, body.users), access.signed_in(request)
    groups = {group.name: group for group in groups_of(row.run.project).filter(name__in=body.groups)}
    refuse_unknown("groups", body.groups, groups)
    with transaction.atomic():
        raters_add(evaluation=row, users=users, by=by)
        left_out = sum(group_add(evaluation=row, group=group, by=by)[1] for group in groups.values())
    current = row.raters.filter(left_at=None).order_by("pk")
    return {"raters": list(current.values_list("user__username", flat=True)), "left_out": left_out}


@router.post(f"{EVALUATION}/quota", response=QuotaOut, summary="Items per rater, at most")
def change_quota(request: HttpRequest, slug: str, evaluation: Id, body: QuotaIn) -> dict[str, Any]:
    """Raters keep the number that they were told until they agree to more. While they rate it changes once
    `confirmed`."""
    row = get_evaluation(request, slug, evaluation, May.RUN)
    effects = quota_effects(row, body.quota)
    by, confirmed = access.signed_in(request), body.confirmed or not effects
    changed = confirmed and quota_change(evaluation=row, quota=body.quota, by=by)
    stored = Evaluation.objects.get(pk=row.pk)
    return {"changed": changed, "effects": effects, "quota": stored.quota, "share": stored.share}


@router.post(f"{EVALUATION}/offer", response=OfferIO, summary="Open to all raters of the project")
def offer(request: HttpRequest, slug: str, evaluation: Id, body: OfferIO) -> OfferIO:
    """Their list offers it, also to members who come later. Who joined stays when it is no longer offered."""
    row = get_evaluation(request, slug, evaluation, May.RUN)
    offer_set(evaluation=row, to_all=body.to_all, by=access.signed_in(request))
    return body


@router.get(GROUPS, response=Page[GroupOut], summary="Groups of raters")
def groups(request: HttpRequest, slug: str, limit: Limit = 100, cursor: Cursor = "") -> dict[str, Any]:
    """By name."""
    project = access.get_project(request, slug, May.RUN)
    page = list(groups_of(project).filter(name__gt=text_at(cursor))[: limit + 1])
    following = page[limit - 1].name if len(page) > limit else None
    return {"items": list(map(_group_out, page[:limit])), "next": cursor_of(following)}


@router.post(GROUPS, response={201: GroupOut}, summary="Save a group of raters")
def save_group(request: HttpRequest, slug: str, body: GroupIn) -> Status[Any]:
    """Replaces the group of this name, if there is one."""
    project = access.get_project(request, slug, May.RUN)
    group = RaterGroup.objects.filter(project=project, name=body.name).first()
    users = _users(project, body.users)
    try:
        with transaction.atomic():
            stored = group_save(
                project=project, group=group, name=body.name, users=users, by=access.signed_in(request)
            )
    except IntegrityError:
        raise ApiError(409, "name_taken", _("A group of this name exists. Choose another name.")) from None
    return Status(201, _group_out(stored))


@router.delete(f"{GROUPS}/{{group}}", response={204: None}, summary="Delete a group of raters")
def delete_group(request: HttpRequest, slug: str, group: Id) -> Status[None]:
    """Its people stay members and raters."""
    project = access.get_project(request, slug, May.RUN)
    group_delete(group=get_object_or_404(RaterGroup, project=project, pk=group), by=access.signed_in(request))
    return Status(204, None)


def _users(project: Project, names: list[str]) -> list[User]:
    users = {user.username: user for user in possible_raters(project).filter(username__in=names)}
    refuse_unknown("users", names, users)
    return list(users.values())


def _group_out(group: RaterGroup) -> dict[str, Any]:
    users = list(group_members(group).values_list("username", flat=True))
    return {"id": group.pk, "name": group.name, "users": users}
