"""Where a rater stands before the real queue: training, qualification, failed, or through."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from django.db.models import Exists, QuerySet

from judging.people.models import Assignment, AssignmentState, Evaluation, EvaluationRater, Item
from judging.people.qualification.models import Qualification, QualificationTry

Stage = Literal["training", "qualification", "waiting", "failed"]
DONE = (AssignmentState.RATED, AssignmentState.SKIPPED)


@dataclass(frozen=True, slots=True)
class Entry:
    """A rater's stage before the real queue. `done` of `total` items of it. "waiting": there is too little gold for the
    qualification; "failed": the last try is over."""

    stage: Stage
    done: int = 0
    total: int = 0
    mark: float = 0.0
    current: QualificationTry | None = None

    @property
    def rates(self) -> bool:
        """Whether the rater has items to rate in it."""
        return self.stage in ("training", "qualification")


def has_entry(evaluation: Evaluation) -> bool:
    """Whether anything stands before the real queue. One query: each request of the desk asks."""
    qualification = Qualification.objects.filter(evaluation=evaluation)
    either = Exists(qualification) | Exists(training_items(evaluation))
    return Evaluation.objects.filter(either, pk=evaluation.pk).exists()


def gold_in_use(evaluation: Evaluation) -> QuerySet[Item]:
    """The gold items that were not removed, training items among them."""
    gold = Item.objects.filter(evaluation=evaluation, needed=0, repeat_of=None, gold_removed=False)
    return gold.exclude(gold="")


def training_items(evaluation: Evaluation) -> QuerySet[Item]:
    """The training items in use, in the order in which raters get them."""
    gold = Item.objects.filter(evaluation=evaluation, needed=0, gold_removed=False)
    return gold.filter(training__isnull=False).order_by("number")


def unused_gold(evaluation: Evaluation, rater: EvaluationRater) -> QuerySet[Item]:
    """Gold items for a qualification of this rater: those that they have not had, without training items."""
    return gold_in_use(evaluation).filter(training=None).exclude(assignments__rater=rater)


def entry_of(evaluation: Evaluation, rater: EvaluationRater) -> Entry | None:
    """The stage in which a rater stands; None once they may rate the real queue. Who has rated in it before a training
    or a qualification was set up needs neither."""
    own = Assignment.objects.filter(rater=rater)
    if own.filter(entry=None, state__in=DONE).exists():
        return None
    training = training_items(evaluation)
    total = training.count()
    done = own.filter(item__in=training.values("pk"), state__in=DONE).count() if total else 0
    if done < total:
        return Entry("training", done, total)
    settings = Qualification.objects.filter(evaluation=evaluation).first()
    return _qualification(evaluation, rater, settings) if settings else None


def _qualification(evaluation: Evaluation, rater: EvaluationRater, settings: Qualification) -> Entry | None:
    current = QualificationTry.objects.filter(rater=rater).order_by("-number").first()
    if current is None:
        enough = unused_gold(evaluation, rater).count() >= settings.items
        return Entry("qualification" if enough else "waiting", 0, settings.items, settings.mark)
    if current.passed or current.let_in_at is not None:
        return None
    if current.ended_at is not None:
        return Entry("failed", current.items, current.items, current.mark, current)
    own = items_of_try(current)
    missing = current.items - own.count()
    enough = missing <= 0 or unused_gold(evaluation, rater).count() >= missing
    done = own.filter(state__in=DONE).count()
    stage: Stage = "qualification" if enough else "waiting"
    return Entry(stage, done, current.items, current.mark, current)


def items_of_try(current: QualificationTry) -> QuerySet[Assignment]:
    """The assignments of a try, without gold that was removed since."""
    return Assignment.objects.filter(entry__qualification_try=current, item__gold_removed=False)


def failed_tries(evaluations: Collection[int]) -> list[QualificationTry]:
    """The newest tries of these evaluations' active raters who have not passed and wait for an organiser's decision."""
    tries = QualificationTry.objects.filter(rater__evaluation__in=evaluations, rater__left_at=None)
    newest = {row.rater_id: row for row in tries.select_related("rater__user").order_by("number")}
    return [row for row in newest.values() if row.ended_at and not row.passed and row.let_in_at is None]


def lacks_gold(evaluation: Evaluation) -> bool:
    """Whether new raters wait because there is too little gold for the qualification."""
    settings = Qualification.objects.filter(evaluation=evaluation).first()
    gold = gold_in_use(evaluation).filter(training=None)
    return settings is not None and gold.count() < settings.items
