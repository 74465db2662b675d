"""Change a running study: more raters per item, another share of gold, more rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import F, Max, QuerySet
from django.utils.translation import gettext as _

from datasets.models import Candidate
from evalsite.accounts.models import User
from evalsite.audit import Action
from judging.core.people.sampling import draw
from judging.engine.rubric_rows import unreadable_rows
from judging.people.assignments import audit, locked, tell_raters
from judging.people.blindness import sides_of
from judging.people.item_criteria import has_checklist, judgements_each
from judging.people.judgements import figures_change
from judging.people.models import Evaluation, Item
from judging.people.quota import promises_store
from judging.people.sampling import ItemChoice, Thing, sample_items, strata_of_rows
from judging.people.services import MOST_ITEMS, items_add, repeats_add
from judging.records.models import Judgement, Run
from judging.records.seal import in_split

MOST_OVERLAP = 50


@dataclass(frozen=True, slots=True)
class StudyChange:
    """The raters per item and the share of gold (0…1) as they shall be, and how many rows are added."""

    overlap: int
    gold_share: float
    rows: int = 0


@transaction.atomic
def study_change(*, evaluation: Evaluation, change: StudyChange, by: User) -> bool:
    """Apply a change. Ratings so far are kept and count. False if nothing differs. Raises ValidationError."""
    evaluation = locked(evaluation)
    study_change_check(evaluation, change)
    done: dict[str, object] = {}
    if change.rows:
        done["rows"] = change.rows
        _rows_add(evaluation, change.rows)
    if change.overlap > evaluation.overlap:
        done["overlap"] = change.overlap
        _overlap_raise(evaluation, change.overlap)
    if change.gold_share != evaluation.gold_share:
        done["gold_share"] = evaluation.gold_share = change.gold_share
        evaluation.save(update_fields=["gold_share"])
    if not done:
        return False
    promises_store(evaluation)
    figures_change(evaluation)
    audit(Action.EVALUATION_CHANGED, evaluation, by, **done)
    tell_raters(evaluation)
    return True


def study_change_check(evaluation: Evaluation, change: StudyChange) -> None:
    """Raise ValidationError, by field, if a change is not possible."""
    problems: dict[str, str] = {}
    if evaluation.state == "closed":
        raise ValidationError(_("The evaluation is closed. Reopen it to change it."))
    if not evaluation.overlap <= change.overlap <= MOST_OVERLAP:
        problems["overlap"] = _("Enter a number from %(low)s to %(high)s: it can only grow.") % {
            "low": evaluation.overlap,
            "high": MOST_OVERLAP,
        }
    if not 0 <= change.gold_share <= 0.5:
        problems["gold_share"] = _("Enter a share from 0 to 50 %.")
    if change.rows and (why := rows_refused(evaluation)):
        problems["rows"] = why
    elif change.rows > (left := rows_left(evaluation)):
        problems["rows"] = _("Only %(n)s rows are not in this evaluation yet.") % {"n": left}
    if problems:
        raise ValidationError(problems)


def rows_refused(evaluation: Evaluation) -> str:
    """Why no rows can be added; '' if they can."""
    if evaluation.about_run_id is not None:
        return _("Answers of a run can't be added later: draw a further sample from the run.")
    if in_split(evaluation.run.version):
        return _("Rows of this version belong to a judge's test, so they can't be added here.")
    return ""


def rows_left(evaluation: Evaluation) -> int:
    """How many valid rows are not in the evaluation."""
    return len(_free_rows(evaluation, _frame(evaluation)))


def _frame(evaluation: Evaluation) -> dict[int, str]:
    """{row: stratum} of all rows that can be in the evaluation: with a checklist, those with a rubric."""
    version = evaluation.run.version
    without_rubric = unreadable_rows(version) if has_checklist(evaluation) else frozenset[int]()
    rows = zip(*strata_of_rows(version, evaluation.stratify_by), strict=True)
    return {row: stratum for row, stratum in rows if row not in without_rubric}


def _free_rows(evaluation: Evaluation, frame: Iterable[int]) -> list[int]:
    taken = set(evaluation.items.values_list("row", flat=True))
    return [row for row in frame if row not in taken]


def _rows_add(evaluation: Evaluation, count: int) -> None:
    """Draw further rows evenly from those that are not in the evaluation, by the same strata. Both draws together are
    one random sample, so every item has its probability."""
    run, strata = evaluation.run, _frame(evaluation)
    free = _free_rows(evaluation, strata)
    seed, stratified = evaluation.seed + len(free), bool(evaluation.stratify_by)
    places = draw([strata[row] for row in free], count, seed, stratified=stratified)
    drawn = [free[pick.place] for pick in places]
    waiting = set(free) - set(drawn)
    sizes = Counter(strata.values())
    left = Counter(strata[row] for row in waiting)
    chances: dict[str, float | None] = {name: 1 - left[name] / size for name, size in sizes.items()}
    ordinary = Item.objects.filter(evaluation=evaluation, needed__gt=0)
    if ordinary.filter(drawn_with=None).exists():  # what is there is no random sample
        chances = dict.fromkeys(sizes)
    sides = sides_of(evaluation)
    choice = ItemChoice(
        run.version,
        candidates=list(_candidates_of(run).order_by("pk")),
        scheme=evaluation.scheme,
        baseline=evaluation.baseline,
        other_version=evaluation.other_version,
        side_candidates=(sides[0].candidate, sides[1].candidate) if sides else None,
        pairs_per_item=evaluation.pairs_per_item or 1,
        rows={row: chances[strata[row]] for row in drawn},
        seed=seed,
    )
    things = [replace(thing, stratum=strata[thing.row]) for thing in sample_items(choice).things]
    if not things:
        raise ValidationError({"rows": _("None of the rows that were drawn has the required answers.")})
    if (evaluation.items_count + len(things)) * evaluation.overlap > MOST_ITEMS:
        raise ValidationError({"rows": _("That is too many items to rate. Add fewer rows.")})
    _probabilities_store(evaluation, chances)
    _store_things(evaluation, things)
    Run.objects.filter(pk=run.pk).update(sample_size=F("sample_size") + count)


def _candidates_of(run: Run) -> QuerySet[Candidate]:
    taking_part = run.run_candidates.values("candidate")
    return Candidate.objects.filter(pk__in=taking_part, version=run.version_id)


def _probabilities_store(evaluation: Evaluation, chances: Mapping[str, float | None]) -> None:
    """Store the probabilities by stratum with the items that are there, and with their judgements."""
    for stratum, chance in chances.items():
        items = Item.objects.filter(evaluation=evaluation, needed__gt=0, stratum=stratum)
        judged = Judgement.objects.filter(run=evaluation.run_id, row__in=items.values("row"))
        if chance is not None:
            judged.update(drawn_with=chance)
            items.update(drawn_with=chance)


def _store_things(evaluation: Evaluation, things: list[Thing]) -> None:
    last = evaluation.items.aggregate(number=Max("number"), rank=Max("rank"))
    number = last["number"] or 0
    items = items_add(evaluation, things, after=number, rank_after=(last["rank"] or 0) + 1)
    repeats_add(evaluation, items, after=number + len(items))
    evaluation.items_count += len(things)
    evaluation.save(update_fields=["items_count"])
    criteria = evaluation.criteria.values()
    total = evaluation.overlap * sum(judgements_each(criteria, thing.answers) for thing in things)
    rows = len({thing.row for thing in things})
    Run.objects.filter(pk=evaluation.run_id).update(total=F("total") + total, rows=F("rows") + rows)


def _overlap_raise(evaluation: Evaluation, overlap: int) -> None:
    more = overlap - evaluation.overlap
    ordinary = Item.objects.filter(evaluation=evaluation, needed__gt=0)
    ordinary.update(needed=F("needed") + more, free=F("free") + more)
    run = Run.objects.get(pk=evaluation.run_id)
    run.total += run.total // evaluation.overlap * more  # a ranking makes several judgements
    run.save(update_fields=["total"])
    evaluation.overlap = overlap
    evaluation.save(update_fields=["overlap"])
