"""Draw the answers that people are asked about next."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext as _

from datasets.models import Candidate
from evalsite.accounts.models import User
from evalsite.audit import Action
from judging.core.people.asking import poisson_draw, probabilities
from judging.people.asking.items import drawn_items_withdraw, items_add
from judging.people.asking.models import AnswerDraw
from judging.people.asking.pool import Pool, pool_of, random_items
from judging.people.assignments import audit, locked
from judging.people.judgements import figures_change
from judging.people.models import Evaluation, Item, OpensAs
from judging.people.presets import criteria_of_run
from judging.people.sampling import ItemChoice, Thing
from judging.people.selectors import evaluations_of
from judging.people.services import MOST_ITEMS, Terms, evaluation_create
from judging.records.models import Run, RunMetric
from judging.runs.services import free_name

SEEDS = 2**31


@dataclass(frozen=True, slots=True)
class NewStudy:
    """A new evaluation for the drawn answers: who rates, and how many of them each answer."""

    raters: Sequence[User] = ()
    overlap: int = 1


def receiving(run: Run, metric: str) -> list[Evaluation]:
    """The evaluations of a run's answers that a draw can be added to, newest first."""
    return [
        evaluation
        for evaluation in reversed(evaluations_of(run))
        if evaluation.closed_at is None
        and evaluation.state != "closed"
        and evaluation.opens_as == OpensAs.SINGLE
        and any(criterion.name == metric for criterion in evaluation.criteria.values())
    ]


def unrated_items(run: Run) -> int:
    """How many answers were drawn earlier and have no rating yet: a further draw ends theirs."""
    waiting = (random_items(each).filter(needed__gt=0, rated=0) for each in evaluations_of(run))
    return sum(items.count() for items in waiting)


@transaction.atomic
def answers_draw(
    *,
    run: Run,
    run_metric: RunMetric,
    size: int,
    into: Evaluation | NewStudy,
    user: User,
    seed: int | None = None,
    even: bool = False,
) -> AnswerDraw:
    """Draw about `size` of the run's answers that were not rated yet, each by itself with a probability that grows
    with the judge's expected error (with `even`: all with the same), and have people rate them.

    Earlier draws end: their answers without a rating are no longer asked for. Raises ValidationError if nothing can be
    drawn or rated; nothing is stored then.
    """
    seed = random.randrange(SEEDS) if seed is None else seed
    Run.objects.select_for_update().get(pk=run.pk)
    earlier = [locked(evaluation) for evaluation in evaluations_of(run)]
    number = AnswerDraw.objects.filter(about_run=run).count() + 1
    for evaluation in earlier:
        random_items(evaluation).filter(rated__gt=0, known_to=0).update(known_to=number)
        drawn_items_withdraw(evaluation)
    pool = pool_of(run, run_metric)
    if size > MOST_ITEMS:
        raise ValidationError(_("That is too many items to rate. Choose a smaller sample size."))
    things = _drawn(pool, size, seed, even=even)
    if not things:
        raise ValidationError(_("No answer was drawn. Draw more of them."))
    draw = AnswerDraw(
        about_run=run,
        number=number,
        metric=run_metric.name,
        size=size,
        frame=pool.frame.size,
        about_rows=run.rows,
        learnt=pool.learnt is not None and not even,
        seed=seed,
        created_by=user,
    )
    _ask(draw, things, into, user)
    return draw


def _drawn(pool: Pool, size: int, seed: int, *, even: bool) -> list[Thing]:
    errors = np.ones(pool.frame.size) if even else pool.errors[pool.frame]
    chances = probabilities(errors, size)
    drawn = poisson_draw(chances, seed)
    places = pool.frame[drawn]
    return [
        Thing(
            int(pool.rows[place]),
            int(pool.responses[place]),
            None,
            (int(pool.candidates[place]),),
            "",
            chance,
        )
        for place, chance in zip(places.tolist(), chances[drawn].tolist(), strict=True)
    ]


def _ask(draw: AnswerDraw, things: Sequence[Thing], into: Evaluation | NewStudy, user: User) -> None:
    rated_before: list[int] = []
    if isinstance(into, NewStudy):
        evaluation = _study(draw, things, into, user)
        Item.objects.filter(evaluation=evaluation, gold="", repeat_of=None).update(draw=draw.number)
    else:
        evaluation = locked(into)
        if evaluation.state == "closed":
            raise ValidationError(_("This evaluation was closed. Reopen it, or choose another one."))
        rated_before = items_add(evaluation, things, seed=draw.seed, draw=draw.number).rated_before
    draw.evaluation, draw.rated_before = evaluation, rated_before
    draw.waiting = len(things) - len(rated_before)
    draw.save()
    figures_change(evaluation)
    audit(Action.ANSWERS_DRAWN, evaluation, user, draw=draw.number, items=len(things), metric=draw.metric)


def _study(draw: AnswerDraw, things: Sequence[Thing], new: NewStudy, user: User) -> Evaluation:
    run = draw.about_run
    criteria = [criterion for criterion in criteria_of_run(run) if criterion.name == draw.metric]
    if not criteria:
        raise ValidationError(_("People cannot rate on the scale of this metric."))
    candidates = Candidate.objects.filter(pk__in=run.run_candidates.values("candidate"))
    return evaluation_create(
        project=run.project,
        name=free_name(run.project, draw.metric),
        choice=ItemChoice(
            run.version, candidates=list(candidates.order_by("pk")), about=run, things=things, seed=draw.seed
        ),
        criteria=criteria,
        raters=new.raters,
        user=user,
        terms=Terms(overlap=new.overlap),
    )
