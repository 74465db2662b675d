"""What must hold at the end of the simulated week."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from judging.people.models import Evaluation
    from tools.soak.raters import Rater


def problems(studies: Sequence[Evaluation], raters: Sequence[Rater]) -> list[str]:
    """A sentence for everything that was lost, stored twice, dealt unfairly or flagged wrongly."""
    return [
        *(surprise for rater in raters for surprise in rater.surprises),
        *(
            f"{rater.name}: {len(rater.unsent)} verdicts could never be sent"
            for rater in raters
            if rater.unsent
        ),
        *(problem for study in studies for problem in _ratings(study, raters)),
        *(problem for study in studies for problem in _items(study)),
        *(problem for study in studies for problem in _gold(study)),
        *(problem for place, study in enumerate(studies) for problem in _flags(study, place, raters)),
    ]


def _ratings(study: Evaluation, raters: Sequence[Rater]) -> Iterator[str]:
    """Every confirmed verdict is in force, with the choice that was confirmed; there is no other."""
    from judging.core.people.criteria import canonical
    from judging.people.models import Assignment, Rating

    stored = {
        str(assignment.token): assignment
        for assignment in Assignment.objects.filter(evaluation=study, rating__isnull=False).select_related(
            "rating"
        )
    }
    criteria = study.criteria
    confirmed = 0
    for rater in raters:
        for (number, token), verdict in rater.confirmed.items():
            if number != study.run_id:
                continue
            confirmed += 1
            assignment = stored.get(token)
            shown = {0: criteria[0].choices[verdict.choice]}
            if assignment is None or assignment.rating is None:
                yield f"{study.run.name}: a verdict of {rater.name} is lost"
            elif assignment.rating.values != json.dumps(
                canonical(criteria, shown, assignment.shown_first), ensure_ascii=False
            ):
                yield f"{study.run.name}: a verdict of {rater.name} is stored as {assignment.rating.values}"
    actions = Rating.objects.filter(assignment__evaluation=study).count()
    if not confirmed == len(stored) == actions:
        yield f"{study.run.name}: {confirmed} verdicts confirmed, {len(stored)} in force, {actions} stored"


def _items(study: Evaluation) -> Iterator[str]:
    """Every item has the ratings asked for; further ones are marked."""
    from judging.people.models import Assignment, Item

    seats: Counter[int] = Counter(
        Assignment.objects.filter(evaluation=study, rating__isnull=False, extra=False).values_list(
            "item", flat=True
        )
    )
    for item in Item.objects.filter(evaluation=study, needed__gt=0):
        if seats[item.pk] != item.needed:
            yield f"{study.run.name}: item {item.number} has {seats[item.pk]} ratings, not {item.needed}"
        if item.rated != seats[item.pk] or item.free != item.needed - seats[item.pk]:
            yield f"{study.run.name}: item {item.number} counts {item.rated} ratings and {item.free} free seats"


def _gold(study: Evaluation) -> Iterator[str]:
    """A rater's number of gold items is never more than one away from its share while there is gold left."""
    from judging.people.models import Assignment, Item

    gold = Item.objects.filter(evaluation=study).exclude(gold="").count()
    by_rater: dict[int, list[bool]] = defaultdict(list)
    rated = Assignment.objects.filter(evaluation=study, rating__isnull=False).order_by("rated_at")
    for rater, known in rated.values_list("rater", "item__gold"):
        by_rater[rater].append(bool(known))
    for rater, kinds in by_rater.items():
        had = 0
        for number, is_gold in enumerate(kinds, 1):
            had += is_gold
            if had < gold and abs(had - study.gold_share * number) > 1 + 1e-9:
                yield f"{study.run.name}: rater {rater} had {had} gold items among {number}"
                break


def _flags(study: Evaluation, place: int, raters: Sequence[Rater]) -> Iterator[str]:
    """The figures that must be flagged are, and no others but those that may be."""
    from evalsite.tasks import jobs
    from judging.people.models import EvaluationRater
    from judging.people.rater_figures import FIGURES, JOB, rater_figures

    jobs.request(JOB, FIGURES.place(study.run_id).pk, here=True)
    jobs.run(JOB, FIGURES.place(study.run_id).pk)  # what a worker does
    computed = rater_figures(study)
    if not computed.current:
        yield f"{study.run.name}: the raters' figures were not computed"
    figures = computed.by_rater
    for row in EvaluationRater.objects.filter(evaluation=study).select_related("user"):
        rater = next(rater for rater in raters if rater.name == row.user.username)
        flags = {figure.name for figure in figures.get(row.pk, ()) if figure.flagged}
        if missing := rater.kind.flags[place] - flags:
            yield f"{study.run.name}: {rater.name} is not flagged for {', '.join(sorted(missing))}"
        if wrong := flags - rater.kind.flags[place] - rater.kind.others:
            yield f"{study.run.name}: {rater.name} is flagged for {', '.join(sorted(wrong))}"
