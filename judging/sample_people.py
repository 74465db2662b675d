"""People's part in the sample projects: something to rate, and ratings, an override and a comment written for them."""

from __future__ import annotations

import time

from django.db import transaction

from datasets.core.kinds import CATEGORY, PASS_FAIL, SCORE
from evalsite.accounts.models import SAMPLE_SLUGS, Membership, Project, Role, User
from evalsite.accounts.services import local_administrator_create
from judging import sample_files
from judging.core.people.criteria import Criterion
from judging.core.results_file.rating_lines import RatingLine
from judging.people.assignments import locked
from judging.people.models import Evaluation, Item, Scheme
from judging.people.rating_batch import RatingBatch
from judging.people.sampling import ItemChoice
from judging.people.services import Terms, evaluation_close, evaluation_create
from judging.records.models import WORKED_ON, Judgement, Run, RunState
from judging.records.overrides import override_add
from judging.sample import SAMPLES, SampleProject
from judging.teamwork.comments import comment_add

RATED_ANSWERS, RATED_SEED = 40, 24
TRIED_ROWS = 12
RATERS = ("sample-rater-1", "sample-rater-2")
REVIEWER = "sample-reviewer"
TRAP_ROW = 2  # the bat and the ball
STRONG, WEAK = "heron-large", "wren-small"  # whose answers to it are right and wrong
LONGEST_WAIT = 120.0
"""Seconds to wait for the samples' runs before people's part is left to the next start."""


def add_people() -> None:
    """Add people's part to the samples: something to rate at once, the rest when their runs have ended."""
    for sample in SAMPLES:
        add_task(sample)
    until = time.monotonic() + LONGEST_WAIT
    waiting = list(SAMPLES)
    while waiting and time.monotonic() < until:
        waiting = [sample for sample in waiting if not people_added(sample)]
        if waiting:
            time.sleep(0.25)


def run_of(sample: SampleProject) -> Run | None:
    """The run of its questions; None if it was deleted, or an earlier release made the sample."""
    runs = Run.objects.filter(project__slug=SAMPLE_SLUGS[sample.language], name=sample.questions.name)
    return runs.filter(metrics__name=sample.metrics[PASS_FAIL]).first()


def add_task(sample: SampleProject) -> None:
    """Add an open evaluation, without verdicts, for users to try rating, unless there was one."""
    run = run_of(sample)
    if run is None or run.created_by is None:
        return
    if Evaluation.all_objects.filter(run__project=run.project_id, about_run=None).exists():
        return
    evaluation_create(
        project=run.project,
        name=sample.evaluation,
        choice=ItemChoice(
            run.version,
            candidates=list(run.version.candidates.order_by("pk")),
            scheme=Scheme.EVERY_PAIR,
            sample_size=TRIED_ROWS,
            seed=1,
        ),
        criteria=[Criterion(name=sample.criterion, scale="steps", both_bad=True, guideline=sample.guideline)],
        raters=[run.created_by],
        user=run.created_by,
    )


def people_added(sample: SampleProject) -> bool:
    """Add a finished evaluation, an override and a comment if there are none yet. False while the run is worked on."""
    run = run_of(sample)
    if run is None or Evaluation.all_objects.filter(about_run=run).exists():
        return True
    if run.state in WORKED_ON:
        return False
    if run.state == RunState.FINISHED:
        with transaction.atomic():
            add_ratings(sample, run)
            add_review(sample, run)
    return True


def add_ratings(sample: SampleProject, run: Run) -> None:
    """Add an evaluation of a random part of the run's answers, which both raters have rated and which is closed."""
    organiser = run.created_by or local_administrator_create()
    evaluation = evaluation_create(
        project=run.project,
        name=sample.rated,
        choice=ItemChoice(
            run.version,
            candidates=list(run.version.candidates.order_by("pk")),
            about=run,
            sample_size=RATED_ANSWERS,
            seed=RATED_SEED,
        ),
        criteria=[
            Criterion(name=sample.metrics[PASS_FAIL], scale="pass_fail"),
            Criterion(name=sample.metrics[SCORE], scale="five"),
            Criterion(
                name=sample.metrics[CATEGORY],
                scale="categories",
                categories=tuple(label for label, _meaning in sample.labels),
            ),
        ],
        raters=[person(name, run.project, Role.RATER) for name in RATERS],
        user=organiser,
        terms=Terms(overlap=len(RATERS)),
    )
    RatingBatch(locked(evaluation), rating_lines(sample, evaluation)).import_lines()
    evaluation_close(evaluation=evaluation, by=organiser)


def rating_lines(sample: SampleProject, evaluation: Evaluation) -> list[RatingLine]:
    """The written ratings of the evaluation's items."""
    drawn = set(
        Item.objects.filter(evaluation=evaluation).values_list("row__line", "response__candidate__name")
    )
    names = [sample.metrics[kind] for kind in (PASS_FAIL, SCORE, CATEGORY)]
    return [
        RatingLine(
            line=number,
            rater=RATERS[rating["rater"] - 1],
            values=dict(zip(names, rating["values"], strict=True)),
            row=rating["row"],
            candidate=rating["candidate"],
            seconds=rating["seconds"],
            comment=rating.get("comment", ""),
        )
        for number, rating in enumerate(sample_files.ratings(sample.language), 1)
        if (rating["row"], rating["candidate"]) in drawn
    ]


def add_review(sample: SampleProject, run: Run) -> None:
    """A reviewer corrects the judge where it failed a right answer, and comments where it passed a wrong one."""
    reviewer = person(REVIEWER, run.project, Role.REVIEWER)
    about = Judgement.objects.filter(
        run=run, run_metric__name=sample.metrics[PASS_FAIL], row__line=TRAP_ROW, current=True
    )
    override_add(
        judgement=about.get(candidate__name=STRONG), value=True, reason=sample.override_reason, by=reviewer
    )
    comment_add(judgement=about.get(candidate__name=WEAK), text=sample.comment, by=reviewer)


def person(name: str, project: Project, role: Role) -> User:
    """A made-up member of a sample, as whom nobody can sign in."""
    user, created = User.objects.get_or_create(username=name, defaults={"is_active": False})
    if created:
        user.set_unusable_password()
        user.save(update_fields=["password"])
    Membership.objects.get_or_create(user=user, project=project, role=role)
    return user
