"""Change a running study: more raters per item, another share of gold, more rows."""

from __future__ import annotations

import random
from dataclasses import dataclass

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import F, Max
from django.utils.translation import gettext as _

from datasets.core.kinds import CHECKLIST
from datasets.models import Candidate, Row
from evalsite.accounts.models import User
from evalsite.audit import Action
from judging.people.assignments import audit, locked, tell_raters
from judging.people.judgements import figures_change
from judging.people.models import Evaluation, Item, Scheme
from judging.people.quota import promises_store
from judging.people.sampling import ItemChoice, Thing, sample_items
from judging.people.services import MOST_ITEMS, items_add
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
    """Why no rows can be added; '' if they can. Of other draws the probabilities could not be told afterwards."""
    if evaluation.about_run_id is not None:
        return _("Answers of a run can't be added later: draw a further sample from the run.")
    if evaluation.stratify_by or evaluation.scheme == Scheme.VERSIONS:
        return _("Rows can be added only to plain random samples of one version.")
    if any(criterion.gives == CHECKLIST for criterion in evaluation.criteria.values()):
        return _("Rows can't be added to an evaluation with a checklist.")
    if any(criterion.ranks for criterion in evaluation.criteria.values()):
        return _("Rows can't be added to an evaluation that ranks.")
    if in_split(evaluation.run.version):
        return _("Rows of this version belong to a judge's test, so they can't be added here.")
    return ""


def _free_rows(evaluation: Evaluation) -> list[int]:
    rows = Row.objects.filter(version=evaluation.run.version_id, valid=True)
    return list(
        rows.exclude(pk__in=evaluation.items.values("row")).order_by("line").values_list("pk", flat=True)
    )


def rows_left(evaluation: Evaluation) -> int:
    """How many valid rows are not in the evaluation."""
    return len(_free_rows(evaluation))


def _rows_add(evaluation: Evaluation, count: int) -> None:
    """Draw further rows evenly from those that are not in the evaluation. Both draws together are one random sample, so
    every item has its probability."""
    run = evaluation.run
    free = _free_rows(evaluation)
    drawn = random.Random(f"more:{evaluation.seed}:{len(free)}").sample(free, count)
    valid = Row.objects.filter(version=run.version_id, valid=True).count()
    chance = min(1.0, (valid - len(free) + count) / valid)
    candidates = Candidate.objects.filter(pk__in=run.run_candidates.values("candidate"))
    of_version = candidates.filter(version=run.version_id)
    choice = ItemChoice(
        run.version,
        candidates=list(of_version.order_by("pk")),
        scheme=evaluation.scheme,
        baseline=evaluation.baseline,
        pairs_per_item=evaluation.pairs_per_item or 1,
        rows=dict.fromkeys(drawn, chance),
        seed=evaluation.seed + len(free),
    )
    things = sample_items(choice).things
    if not things:
        raise ValidationError({"rows": _("None of the rows that were drawn has the required answers.")})
    if (evaluation.items_count + len(things)) * evaluation.overlap > MOST_ITEMS:
        raise ValidationError({"rows": _("That is too many items to rate. Add fewer rows.")})
    _store_things(evaluation, things, count, chance)


def _store_things(evaluation: Evaluation, things: list[Thing], count: int, chance: float) -> None:
    own, run = Item.objects.filter(evaluation=evaluation), evaluation.run
    last = own.aggregate(number=Max("number"), rank=Max("rank"))
    items_add(evaluation, things, after=last["number"] or 0, rank_after=(last["rank"] or 0) + 1)
    own.filter(drawn_with__isnull=False).update(drawn_with=chance)
    Judgement.objects.filter(run=run, drawn_with__isnull=False).update(drawn_with=chance)
    evaluation.items_count += len(things)
    evaluation.save(update_fields=["items_count"])
    total = len(things) * evaluation.overlap * len(evaluation.metrics)
    rows = len({thing.row for thing in things})
    Run.objects.filter(pk=run.pk).update(
        total=F("total") + total, rows=F("rows") + rows, sample_size=F("sample_size") + count
    )


def _overlap_raise(evaluation: Evaluation, overlap: int) -> None:
    more = overlap - evaluation.overlap
    ordinary = Item.objects.filter(evaluation=evaluation, needed__gt=0)
    ordinary.update(needed=F("needed") + more, free=F("free") + more)
    run = Run.objects.get(pk=evaluation.run_id)
    run.total += run.total // evaluation.overlap * more  # a ranking makes several judgements
    run.save(update_fields=["total"])
    evaluation.overlap = overlap
    evaluation.save(update_fields=["overlap"])
