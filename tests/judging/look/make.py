"""Runs to look at, and looks with notes."""

from __future__ import annotations

from collections.abc import Callable

from datasets.models import Version
from evalsite.accounts.models import Project, User
from judging.look.models import Look, Note
from judging.look.services import look_create, note_save
from judging.records.models import Run
from tests.judging.judged import JUDGE_URL, judge, said
from tests.make import a_metric, a_run, a_version


def a_run_of(
    project: Project,
    rows: int = 10,
    scores: Callable[[int], float] = lambda place: place % 10 + 1,
    version: Version | None = None,
) -> Run:
    """A judged run over one candidate's answers."""
    version = version or a_version(project, rows=rows, models=("alpha",))
    return judge(a_run(version, a_metric(JUDGE_URL)), lambda place: said(scores(place)))


def a_look(project: Project, user: User, rows: int = 50, size: int = 20) -> Look:
    """A look at `size` answers of a judged run."""
    run = a_run_of(project, rows=rows)
    return look_create(project=project, version=run.version, run=run, user=user, size=size, seed=1)


def noted(
    look: Look, user: User, place: int, text: str = "wrong", *, passed: bool = False, new_kind: bool = False
) -> Note:
    """A stored note of a person on the answer at this place."""
    return note_save(
        answer=look.answers.get(place=place), user=user, text=text, passed=passed, new_kind=new_kind, seen=0
    )
