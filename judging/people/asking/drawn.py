"""How the items of an evaluation were drawn, for figures."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Q

from judging.core.statistics.corrected import SENT
from judging.people.asking.models import AnswerDraw
from judging.people.models import Evaluation, Item
from judging.records.models import Judgement, Run


@dataclass(frozen=True, slots=True)
class DrawnItem:
    """An item's draw (0: the first of its run, -1: a rule sent it), its probability times the share of the draw that
    was rated, and the first draw that takes its rating as known."""

    draw: int
    drawn_with: float | None
    known_to: int


Answers = tuple[int, int | None]


def drawn_items(run: Run) -> dict[Answers, DrawnItem]:
    """{(response, other response): its item} for an evaluation's items that a rule sent, or that belong to a later draw
    or were known to one; items of a first draw alone are left out."""
    if not run.by_people:
        return {}
    items = Item.objects.filter(evaluation__run=run, gold="", repeat_of=None)
    apart = Q(sent_by_rule=True) | Q(for_improving=True) | ~Q(draw=0) | ~Q(known_to=0)
    marked = items.filter(apart)
    shares = shares_rated(run)
    parts = ("response", "other_response", "draw", "drawn_with", "known_to", "sent_by_rule", "for_improving")
    drawn = {}
    for response, other, draw, chance, known_to, sent, improving in marked.values_list(*parts):
        share = shares[draw].of(response) if draw in shares else 1.0
        number = SENT if (sent or improving) and not draw else draw
        drawn[response, other] = DrawnItem(number, None if chance is None else chance * share, known_to)
    return drawn


def sent_ratings(evaluations: Iterable[Evaluation]) -> int:
    """How many labels are of answers that a rule sent and no draw drew: reports leave them out."""
    sent = {"rating__assignment__item__sent_by_rule": True, "rating__assignment__item__draw": 0}
    runs = [evaluation.run_id for evaluation in evaluations]
    return Judgement.objects.filter(run__in=runs, current=True, **sent).count() if runs else 0


def rows_for_improving(evaluation: Evaluation) -> frozenset[int]:
    """Lines of the rows that were drawn unfairly to improve a judge: in the report of the judged run they are left
    out."""
    items = Item.objects.filter(evaluation=evaluation, for_improving=True)
    return frozenset(items.values_list("row__line", flat=True))


@dataclass(frozen=True, slots=True)
class ShareRated:
    """How much of a draw was rated: an unfinished draw is a smaller one. `part`: of those rated before it."""

    share: float
    part: float
    rated_before: frozenset[int]

    def of(self, response: int) -> float:
        return self.part if response in self.rated_before else self.share


def shares_rated(run: Run) -> dict[int, ShareRated]:
    """{number of the draw: share} of the draws whose items are in an evaluation."""
    shares = {}
    for draw in AnswerDraw.objects.filter(evaluation__run=run).select_related("about_run"):
        items = Item.objects.filter(evaluation=draw.evaluation_id, draw=draw.number, rated__gt=0)
        rated = items.exclude(response__in=draw.rated_before).count()
        share = min(1.0, rated / draw.waiting) if draw.waiting else 1.0
        part = min(1.0, draw.about_rows / (draw.about_run.rows or 1))  # which rows came first was random, too
        shares[draw.number] = ShareRated(share * part, part, frozenset(draw.rated_before))
    return shares
