"""Create, close, reopen and archive a human evaluation."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext as _

from datasets.core.kinds import CHECKLIST
from datasets.models import Version
from datasets.services import version_lock
from evalsite import archiving, clock
from evalsite.accounts.models import Project, User
from evalsite.audit import Action, record
from evalsite.webhooks.kinds import Event
from judging.core.people.criteria import Criterion
from judging.core.people.ranking import FEWEST_RANKED, MOST_RANKED
from judging.core.people.sampling import first_sides, shuffled
from judging.core.people.spans import MOST_LABELS
from judging.engine.rubric_rows import unreadable_rows
from judging.people.assignments import audit, locked, raters_add, release, tell_raters
from judging.people.blindness import HIDEABLE, checked_names, proposed_names
from judging.people.further_answers import further_add, repeats_create
from judging.people.item_criteria import judgements_each
from judging.people.models import (
    Assignment,
    AssignmentState,
    Evaluation,
    Item,
    OpensAs,
    Order,
    Scheme,
)
from judging.people.sampling import ItemChoice, SampledItems, Thing, sample_items
from judging.records.models import PEOPLE, Run, RunCandidate, RunMetric, RunState
from judging.records.run_events import emit_run
from judging.records.seal import in_split
from judging.runs.services import free_name

MOST_ITEMS = 200_000


@dataclass(frozen=True, slots=True)
class Terms:
    """Settings of an evaluation, as its model names them: raters per item, order, gold items and repeats."""

    overlap: int = 1
    order: str = Order.RANDOM
    lease_minutes: int = 30
    gold_share: float = 0.0
    repeat_share: float = 0.0
    shows_reference: bool = False
    hidden_roles: list[str] = field(default_factory=list)
    guideline: str = ""
    draft: bool = False


@transaction.atomic
def evaluation_create(
    *,
    project: Project,
    name: str,
    choice: ItemChoice,
    criteria: Sequence[Criterion],
    raters: Sequence[User],
    user: User | None,
    terms: Terms | None = None,
) -> Evaluation:
    """Create an evaluation, open unless it is to be a draft, and draw its items. Raises ValidationError with a message
    for users."""
    terms, choice = terms or Terms(), _with_names(choice)
    version_lock(choice.version)
    if choice.other_version:
        version_lock(choice.other_version)
    _refuse_impossible(choice, criteria, terms)
    sampled = sample_items(choice)
    left_out = 0
    if any(criterion.gives == CHECKLIST for criterion in criteria):
        sampled, left_out = _with_rubrics(sampled, choice.version)
    if not sampled.things:
        raise ValidationError(_("Nothing to rate: none of the selected rows has the required answers."))
    if len(sampled.things) * max(1, terms.overlap) > MOST_ITEMS:
        raise ValidationError(_("That is too many items to rate. Choose a smaller sample size."))
    run = _run(project, name, choice, sampled, criteria, user, terms)
    if left_out:
        run.rubric_rows_left_out = left_out
        run.save(update_fields=["rubric_rows_left_out"])
    evaluation = _evaluation(run, choice, len(sampled.things), terms)
    for number, criterion in enumerate(criteria):
        RunMetric.objects.create(run=run, number=number, name=criterion.name, definition=criterion.to_json())
    record(Action.EVALUATION_CREATED, project=project, thing=run, by=user, items=len(sampled.things))
    items = items_add(evaluation, sampled.things)
    repeats_add(evaluation, items, after=len(items))
    raters_add(evaluation=evaluation, users=raters, by=user)
    return evaluation


def _with_names(choice: ItemChoice) -> ItemChoice:
    """Set the names of two compared files: as chosen, else proposed from the files."""
    if choice.scheme != Scheme.VERSIONS or choice.other_version is None:
        return replace(choice, side_names=("", ""))
    proposed = proposed_names(choice.version, choice.other_version)
    here, there = (
        name.strip() or proposal for name, proposal in zip(choice.side_names, proposed, strict=True)
    )
    return replace(choice, side_names=checked_names(here, there))


def _refuse_impossible(choice: ItemChoice, criteria: Sequence[Criterion], terms: Terms) -> None:
    if not choice.version.usable:
        raise ValidationError(
            _(
                "This version has invalid rows, or its file was not read completely. Fix them, or choose to exclude "
                "them on the version's page."
            )
        )
    if any(role not in HIDEABLE for role in terms.hidden_roles):
        raise ValidationError(_("These turns cannot be hidden from raters."))
    if any(candidate.version_id != choice.version.pk for candidate in choice.candidates):
        raise ValidationError(_("A candidate belongs to another version."))
    rated = choice.scheme in (Scheme.REFERENCE, Scheme.VERSIONS) or not choice.candidates
    if rated and terms.shows_reference:
        raise ValidationError(
            _("The reference is one of the rated answers, so showing it would reveal which one it is.")
        )
    names = [criterion.name for criterion in criteria]
    if not names or len(set(names)) < len(names):
        raise ValidationError(_("Add at least one criterion; names must be unique."))
    _refuse_spans(choice, criteria)
    compares = any(criterion.compares for criterion in criteria)
    if not choice.scheme and compares:
        raise ValidationError(_("A comparison needs two answers side by side."))
    if choice.scheme and any(criterion.gives == CHECKLIST for criterion in criteria):
        raise ValidationError(_("A checklist is about a single answer: rate the answers one at a time."))
    if (choice.scheme == Scheme.RANK) != any(criterion.ranks for criterion in criteria) or (
        choice.scheme == Scheme.RANK and not all(criterion.ranks for criterion in criteria)
    ):
        raise ValidationError(
            _("Answers that are ranked need a ranking under every criterion, and only they do.")
        )
    if choice.scheme == Scheme.RANK and not FEWEST_RANKED <= len(choice.candidates) <= MOST_RANKED:
        raise ValidationError(_("Choose three to six candidates to rank."))
    if choice.scheme and not compares:
        raise ValidationError(_("Side by side, at least one criterion must say which answer is better."))


def _refuse_spans(choice: ItemChoice, criteria: Sequence[Criterion]) -> None:
    spans = [criterion for criterion in criteria if criterion.marks_spans]
    if spans and choice.scheme:
        raise ValidationError(_("Spans are marked in a single answer: rate the answers one at a time."))
    if len(spans) > 1:
        raise ValidationError(_("Only one criterion can mark spans; give it all labels."))
    if any(not 0 < len(criterion.categories) <= MOST_LABELS for criterion in spans):
        raise ValidationError(_("Spans need 1 to 9 labels."))


def _with_rubrics(sampled: SampledItems, version: Version) -> tuple[SampledItems, int]:
    """The items whose rows have a rubric that can be read, and how many rows have none. Raises ValidationError if
    none is left."""
    unreadable = unreadable_rows(version)
    things = [thing for thing in sampled.things if thing.row not in unreadable]
    if sampled.things and not things:
        raise ValidationError(
            _(
                "None of these rows has a rubric that a checklist can be read from. Repair them on the version's "
                "page, or choose another scale."
            )
        )
    left_out = {thing.row for thing in sampled.things} & unreadable
    return replace(sampled, things=things), len(left_out)


def _run(
    project: Project,
    name: str,
    choice: ItemChoice,
    sampled: SampledItems,
    criteria: Sequence[Criterion],
    user: User | None,
    terms: Terms,
) -> Run:
    run = Run.objects.create(
        project=project,
        name=name or free_name(project, choice.version.dataset.name),
        version=choice.version,
        kind=PEOPLE,
        state=RunState.RUNNING,
        sample_size=sampled.rows if choice.about else choice.sample_size,
        seed=choice.seed,
        bad_rows_left_out=choice.version.bad_rows,
        rows=len({thing.row for thing in sampled.things}),
        total=terms.overlap * sum(judgements_each(criteria, thing.answers) for thing in sampled.things),
        created_by=user,
        started_at=clock.now(),
    )
    RunCandidate.objects.bulk_create([RunCandidate(run=run, candidate_id=pk) for pk in sampled.candidates])
    return run


def _evaluation(run: Run, choice: ItemChoice, items: int, terms: Terms) -> Evaluation:
    return Evaluation.objects.create(
        run=run,
        about_run=choice.about,
        about_rows=choice.about.rows if choice.about else None,
        opens_as=OpensAs.SIDE_BY_SIDE if choice.scheme else OpensAs.SINGLE,
        scheme=choice.scheme,
        pairs_per_item=choice.pairs_per_item if choice.scheme == Scheme.BALANCED else None,
        baseline=choice.baseline,
        other_version=choice.other_version,
        seed=choice.seed,
        stratify_by=choice.stratify_by,
        items_count=items,
        **asdict(terms),
    )


def items_add(
    evaluation: Evaluation, things: Sequence[Thing], *, after: int = 0, rank_after: int = 0
) -> list[Item]:
    """Store ordinary items in a random order, numbered after `after`, with ranks from `rank_after` on."""
    ranks = shuffled(len(things), evaluation.seed)
    sides = first_sides([thing.candidates for thing in things], evaluation.seed)
    items = [
        Item(
            evaluation=evaluation,
            number=number,
            rank=rank_after + rank,
            row_id=thing.row,
            response_id=thing.response,
            other_response_id=thing.other,
            stratum=thing.stratum,
            drawn_with=thing.drawn_with,
            first_side=side if thing.answers == 2 else None,
            needed=evaluation.overlap,
            free=evaluation.overlap,
        )
        for number, (thing, rank, side) in enumerate(zip(things, ranks, sides, strict=True), after + 1)
    ]
    items = Item.objects.bulk_create(items, batch_size=500)
    further_add(zip(items, (thing.further for thing in things), strict=True))
    return items


def repeats_add(evaluation: Evaluation, items: Sequence[Item], *, after: int) -> None:
    """Add hidden repeats of some of these new items, drawn with the seed and numbered after `after`; the item's raters
    may get them. Rows of a judge's split have none."""
    if not evaluation.repeat_share:
        return
    order = random.Random(f"repeats:{evaluation.seed}:{items[0].number}")
    measured = in_split(evaluation.run.version)
    repeatable = [item for item in items if item.row_id not in measured]
    count = min(len(repeatable), max(1, round(len(items) * evaluation.repeat_share)))
    repeats_create(order.sample(repeatable, count), after=after)


@transaction.atomic
def evaluation_close(*, evaluation: Evaluation, by: User | None) -> bool:
    """Close the evaluation: reserved items are released, drafts are kept. False if it was already closed."""
    evaluation = locked(evaluation)
    if evaluation.closed_at is not None:
        return False
    evaluation.closed_at = clock.now()
    evaluation.save(update_fields=["closed_at"])
    release(list(Assignment.objects.filter(evaluation=evaluation, state=AssignmentState.LEASED)))
    Run.objects.filter(pk=evaluation.run_id).update(state=RunState.FINISHED, finished_at=clock.now())
    audit(Action.EVALUATION_CLOSED, evaluation, by)
    emit_run(Event.EVALUATION_FINISHED, evaluation.run_id)
    return True


@transaction.atomic
def evaluation_reopen(*, evaluation: Evaluation, by: User) -> bool:
    """Reopen the evaluation, so that raters may continue; an end that has passed is taken away. False if it was not
    closed."""
    evaluation = locked(evaluation)
    if evaluation.state != "closed":
        return False
    evaluation.closed_at = evaluation.paused_at = None
    evaluation.draft = False
    if evaluation.ends_at is not None and evaluation.ends_at <= clock.now():
        evaluation.ends_at = None
    evaluation.save(update_fields=["closed_at", "paused_at", "draft", "ends_at"])
    Run.objects.filter(pk=evaluation.run_id).update(state=RunState.RUNNING, finished_at=None)
    audit(Action.EVALUATION_REOPENED, evaluation, by)
    tell_raters(evaluation)
    return True


@transaction.atomic
def evaluation_archive(*, evaluation: Evaluation, by: User) -> bool:
    """Archive and close the evaluation; nothing is deleted. False if it was archived."""
    evaluation_close(evaluation=evaluation, by=by)
    return archiving.archive(evaluation.run, Action.RUN_ARCHIVED, evaluation.run.project, by)


def evaluation_restore(*, evaluation: Evaluation, by: User) -> bool:
    """Restore it from the archive, still closed. False if it was not archived."""
    return archiving.restore(evaluation.run, Action.RUN_RESTORED, evaluation.run.project, by)
