"""Create human evaluations with the real services: side by side, or one answer at a time."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Sequence
from typing import Any
from uuid import uuid4

from datasets.models import Candidate, Dataset, Response, Row, Version, VersionState
from evalsite.accounts.models import Project, User
from judging.core.people.criteria import Criterion, canonical
from judging.people import assignments, ratings
from judging.people.guidelines.reading import guideline_understood
from judging.people.models import Assignment, Evaluation, EvaluationRater, Item, Rating, Scheme
from judging.people.presets import criteria_of_run
from judging.people.rating_export import jsonl_lines
from judging.people.sampling import ItemChoice
from judging.people.selectors import RaterProgress, progress
from judging.people.services import Terms, evaluation_create
from judging.records.models import Run
from tests.make import a_version

_numbers = itertools.count(1)
PREFERENCE = Criterion(name="preference", scale="steps", both_bad=True, guideline="Which one **helps** more?")
QUALITY = Criterion(name="quality", scale="five", guideline="How good is it?")
CRITERION = {
    "criteria-TOTAL_FORMS": "1",
    "criteria-INITIAL_FORMS": "0",
    "criteria-0-name": "Preference",
    "criteria-0-scale": "steps",
    "criteria-0-required": "on",
}


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
    name: str = "",
    scheme: str = Scheme.EVERY_PAIR,
    seed: int = 7,
    choice: dict[str, Any] | None = None,
    **terms: Any,
) -> Evaluation:
    """An open evaluation over `version` or a new one. `choice` is passed to ItemChoice, `terms` to Terms."""
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
        choice=ItemChoice(version, **wanted),
        criteria=criteria or ([PREFERENCE] if side_by_side else [QUALITY]),
        raters=raters,
        user=None,
        terms=Terms(**terms),
    )


def about(
    run: Run,
    raters: Sequence[User],
    *,
    criteria: Sequence[Criterion] = (),
    sample: dict[str, Any] | None = None,
    **terms: Any,
) -> Evaluation:
    """An open evaluation of all answers a run judged, with criteria derived from its metrics by default. `sample`: how
    a sample of them is drawn, as in ItemChoice."""
    return make_evaluation(
        run.project,
        raters,
        version=run.version,
        side_by_side=False,
        criteria=criteria or criteria_of_run(run),
        choice={"about": run, **(sample or {})},
        **terms,
    )


def has_read(evaluation: Evaluation, *users: User) -> None:
    """Let raters have understood the guideline, so that their desk doesn't open it first."""
    for user in users:
        guideline_understood(evaluation=evaluation, user=user, version=evaluation.guideline_version)


def give(assignment: Assignment, *values: Any, **more: Any) -> Rating:
    """Submit a rating: one value per criterion, in order and as shown to the rater."""
    sent = {"key": uuid4(), "seconds": 5, **more}
    return ratings.submit(assignment=assignment, values=dict(enumerate(values)), **sent)


def rate_each(evaluation: Evaluation, user: User, value: Callable[[Item], Any]) -> None:
    """Rate every item the rater can claim. In the values of `value(item)`, `A` is the item's response."""
    criteria = evaluation.criteria
    while found := assignments.claim(evaluation=evaluation, user=user, count=50):
        for held in found:
            give(held, canonical(criteria, {0: value(held.item)}, held.shown_first)[0])


def rate_all(evaluation: Evaluation, user: User, *values: Any) -> None:
    """Give the same rating to every item the rater can claim."""
    while found := assignments.claim(evaluation=evaluation, user=user, count=50):
        for held in found:
            give(held, *values)


def sample_sent(run: Run, rater: User, **more: Any) -> dict[str, Any]:
    """Form data for an evaluation in which `rater` rates a sample of the run's answers."""
    metric = run.metrics.get().name
    return {
        "run": run.pk, "kind": "single", "candidates": [one.pk for one in run.version.candidates.all()],
        "sample_size": 6, "seed": 5, "overlap": 1, "order": "random", "lease_minutes": 30, "gold_share": 0,
        "repeat_share": 0, "raters": [rater.pk], "name": "Round one", "criteria-TOTAL_FORMS": 1,
        "criteria-INITIAL_FORMS": 0, "criteria-0-name": metric, "criteria-0-scale": "ten",
        "criteria-0-required": "on", **more,
    }  # fmt: skip


def lines_of(evaluation: Evaluation, **more: Any) -> list[dict[str, Any]]:
    """The lines of the evaluation's rating export."""
    return [json.loads(line) for line in jsonl_lines(evaluation, **more)]


def legacy(
    project: Project, answered: bool = True, name: str = "old", prompts: tuple[str, ...] = ("p1", "p2")
) -> Version:
    dataset = Dataset.objects.create(project=project, name=name)
    count = len(prompts)
    version = Version.objects.create(
        dataset=dataset,
        number=1,
        state=VersionState.READY,
        format="legacy_jsonl",
        rows=count,
        valid_rows=count,
    )
    model = (
        Candidate.objects.create(version=version, name="qwen", rows=count, responses=count)
        if answered
        else None
    )
    for line, prompt in enumerate(prompts, 1):
        raw = {"conversation": [{"prompt": prompt, "response": f"{name} expects {prompt}"}]}
        row = Row.objects.create(version=version, line=line, valid=True, raw=json.dumps(raw))
        if model:
            Response.objects.create(
                row=row, candidate=model, number=1, raw=json.dumps({"content": f"says {prompt}"})
            )
    return version


def sent(version: Version, raters: list[User], **more: Any) -> dict[str, Any]:
    return {
        "version": version.pk,
        "candidates": [one.pk for one in version.candidates.all()],
        "raters": [one.pk for one in raters],
        "kind": "every_pair",
        "overlap": 1,
        "order": "random",
        "repeat_share": 0,
        "gold_share": 0,
        "lease_minutes": 30,
        "name": "Round one",
        "seed": 5,
        **CRITERION,
        **more,
    }


def answered(version: Version) -> Version:
    version.candidates.update(responses=version.rows)
    return version


def progress_of(evaluation: Evaluation, user: User) -> RaterProgress:
    """A rater's progress, as stored now."""
    return progress(
        EvaluationRater.objects.select_related("evaluation").get(evaluation=evaluation, user=user)
    )
