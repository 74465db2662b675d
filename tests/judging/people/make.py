"""Human evaluations for tests, made by the real services: side by side or one answer at a time."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from datasets.models import Version
from evalsite.accounts.models import Project, User
from judging.core.people.criteria import Criterion
from judging.people import desk
from judging.people.gathering import Choice
from judging.people.models import Assignment, Evaluation, Rating, Scheme
from judging.people.organising import Gold, Terms, evaluation_create
from tests.make import a_version

_numbers = itertools.count(1)
PREFERENCE = Criterion(name="preference", scale="steps", both_bad=True, guideline="Which one **helps** more?")
QUALITY = Criterion(name="quality", scale="five", guideline="How good is it?")


def make_evaluation(
    project: Project,
    raters: Sequence[User] = (),
    *,
    rows: int = 3,
    models: Sequence[str] = ("alpha", "beta"),
    answers: int = 1,
    criteria: Sequence[Criterion] = (),
    side_by_side: bool = True,
    version: Version | None = None,
    gold: Sequence[Gold] = (),
    name: str = "",
    scheme: str = Scheme.EVERY_PAIR,
    seed: int = 7,
    choice: dict[str, Any] | None = None,
    **terms: Any,
) -> Evaluation:
    """An open evaluation over a new version (or `version`); `choice` and `terms` go to Choice and Terms."""
    version = version or a_version(project, rows=rows, models=models, answers=answers)
    candidates = list(version.candidates.order_by("pk"))
    wanted = {
        "candidates": candidates,
        "scheme": scheme if side_by_side else "",
        "seed": seed,
        **(choice or {}),
    }
    return evaluation_create(
        project=project,
        name=name or f"people {next(_numbers)}",
        choice=Choice(version, **wanted),
        criteria=criteria or ([PREFERENCE] if side_by_side else [QUALITY]),
        raters=raters,
        user=None,
        terms=Terms(**terms),
        gold=gold,
    )


def give(assignment: Assignment, *values: Any, **more: Any) -> Rating:
    """A verdict as its rater gives it: the values of the criteria in their order, as shown."""
    sent = {"key": uuid4(), "shown": assignment.shown_first, "seconds": 5, **more}
    return desk.submit(assignment=assignment, values=dict(enumerate(values)), **sent)
