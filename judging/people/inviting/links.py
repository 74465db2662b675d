"""Links that make raters of an evaluation: one for each person, or one that many share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction
from django.db.models import QuerySet, Sum
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from evalsite.accounts.invitations import (
    NoInvitation,
    Purpose,
    invitation_revoke,
    open_invitations,
    rater_links_create,
    shared_link_create,
)
from evalsite.accounts.models import Invitation, User
from evalsite.templatetags.show import duration, moment, number
from judging.people.assignments import locked, raters_add
from judging.people.inviting.models import StudyLink
from judging.people.models import Evaluation, Item
from judging.people.quota import most_items, seconds_an_item

JOINS = "study"
MOST_USES, MOST_DAYS = 500, 30


@dataclass(frozen=True, slots=True)
class PersonLink:
    """A new link for one person. Its secret is stored nowhere."""

    invitation: Invitation
    secret: str


def study_links(evaluation: Evaluation) -> QuerySet[Invitation]:
    """The evaluation's links that can still be used, newest first."""
    return open_invitations().filter(study_link__evaluation=evaluation)


@transaction.atomic
def person_links_create(
    *, evaluation: Evaluation, notes: Sequence[str], days: int, by: User
) -> list[PersonLink]:
    """A link for each person; an unused one that the same person has is revoked."""
    evaluation = locked(evaluation)
    run = evaluation.run
    for earlier in study_links(evaluation).filter(note__in=notes, most_uses=None):
        invitation_revoke(invitation=earlier)
    links = rater_links_create(
        project=run.project, notes=notes, joins=JOINS, name=run.name, days=min(days, MOST_DAYS), by=by
    )
    StudyLink.objects.bulk_create(
        StudyLink(evaluation=evaluation, invitation=invitation) for invitation, _secret in links
    )
    return [PersonLink(invitation, secret) for invitation, secret in links]


@transaction.atomic
def study_link_create(
    *, evaluation: Evaluation, most_uses: int, days: int, by: User
) -> tuple[Invitation, str]:
    """A link that several people can use; at most 500, for at most 30 days."""
    evaluation = locked(evaluation)
    run = evaluation.run
    invitation, secret = shared_link_create(
        project=run.project,
        joins=JOINS,
        name=run.name,
        most_uses=min(most_uses, MOST_USES),
        days=min(days, MOST_DAYS),
        by=by,
    )
    StudyLink.objects.create(evaluation=evaluation, invitation=invitation)
    return invitation, secret


def people_needed(evaluation: Evaluation) -> int:
    """The number of seats that are free, at most 500: as many people can get an item each, or all of their quota; no
    fewer than rate an item."""
    free = Item.objects.filter(evaluation=evaluation).aggregate(free=Sum("free", default=0))["free"]
    return int(min(MOST_USES, max(evaluation.overlap, -(-free // (evaluation.quota or 1)))))


def purpose(invitation: Invitation) -> Purpose | None:
    """What a link joins, for who opens it; None if the evaluation takes nobody any more."""
    link = StudyLink.objects.filter(invitation=invitation).first()
    evaluation = (
        link and Evaluation.objects.filter(pk=link.evaluation_id).select_related("run__project").first()
    )
    if not evaluation or evaluation.state == "closed" or evaluation.run.archived_at is not None:
        return None
    return Purpose(
        evaluation.run.name,
        facts_of(evaluation),
        _address(evaluation),
        lambda user: _join(evaluation, user),
        waits=evaluation.state == "draft" or evaluation.pilot_below is not None,
    )


def facts_of(evaluation: Evaluation) -> list[tuple[str, str]]:
    """What somebody who is invited should know: the work, and until when."""
    items = most_items(evaluation)
    facts = [(_("Your part"), work_sentence(items, items * seconds_an_item(evaluation)))]
    if evaluation.ends_at is not None:
        facts.append((_("Deadline"), moment(evaluation.ends_at)))
    return facts


def work_sentence(items: int, seconds: float) -> str:
    """At most 24 items, about 12 min: in whole minutes."""
    values = {"n": number(items), "time": duration(max(1, round(seconds / 60)) * 60)}
    return (
        ngettext("at most %(n)s item, about %(time)s", "at most %(n)s items, about %(time)s", items) % values
    )


def _address(evaluation: Evaluation) -> str:
    slug = evaluation.run.project.slug
    if evaluation.open and evaluation.pilot_below is None:
        return reverse("desk:page", args=[slug, evaluation.run_id])
    return reverse("rating:queue", args=[slug])


def _join(evaluation: Evaluation, user: User) -> None:
    evaluation = locked(evaluation)
    row = evaluation.raters.filter(user=user).first()
    if evaluation.state == "closed" or (row is not None and row.left_at is not None):
        raise NoInvitation  # who was removed does not come back by a link
    raters_add(evaluation=evaluation, users=[user], by=user)
