"""Evaluations that are open to all raters of their project: their lists offer them."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import transaction
from django.db.models import QuerySet

from evalsite.accounts.models import Project, User
from evalsite.audit import Action
from judging.people.assignments import audit, locked, raters_add
from judging.people.inviting.links import work_sentence
from judging.people.models import Evaluation, EvaluationRater
from judging.people.quota import most_items, seconds_an_item
from judging.people.selectors import possible_raters


@dataclass(frozen=True, slots=True)
class Offer:
    """An evaluation that a user may join: at most `items`."""

    evaluation: Evaluation
    project: Project
    items: int

    @property
    def work(self) -> str:
        return work_sentence(self.items, self.items * seconds_an_item(self.evaluation))


def offers_to(user: User, projects: QuerySet[Project]) -> list[Offer]:
    """The open evaluations of these projects that the user may join, newest first. Nobody is offered one from which
    they were removed."""
    open_to_all = Evaluation.objects.filter(
        open_to_all=True,
        closed_at=None,
        pilot_below=None,
        run__archived_at=None,
        run__project__in=projects.values("pk"),
    ).exclude(pk__in=EvaluationRater.objects.filter(user=user).values("evaluation"))
    rows = open_to_all.select_related("run__project").order_by("-pk")
    return [offer for row in rows if row.open and (offer := _offer(row)).items]


def _offer(evaluation: Evaluation) -> Offer:
    return Offer(evaluation, evaluation.run.project, most_items(evaluation))


@transaction.atomic
def offer_set(*, evaluation: Evaluation, to_all: bool, by: User) -> bool:
    """Offer the evaluation to all raters of the project, or no longer; who joined stays. False if it is so already."""
    evaluation = locked(evaluation)
    if evaluation.open_to_all == to_all:
        return False
    evaluation.open_to_all = to_all
    evaluation.save(update_fields=["open_to_all"])
    audit(Action.EVALUATION_OFFERED, evaluation, by, value="all" if to_all else "")
    return True


@transaction.atomic
def offer_join(*, evaluation: Evaluation, user: User) -> bool:
    """Join an evaluation that is offered. False if it isn't any more, or the user was removed; joining twice is
    joining once."""
    evaluation = locked(evaluation)
    row = evaluation.raters.filter(user=user).first()
    if row is not None:
        return row.left_at is None
    offered = evaluation.open and evaluation.open_to_all and evaluation.pilot_below is None
    if not offered or not possible_raters(evaluation.run.project).filter(pk=user.pk).exists():
        return False
    raters_add(evaluation=evaluation, users=[user], by=user)
    return True
