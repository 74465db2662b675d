"""Queries for evaluations: an organiser's list, a rater's queue, an evaluation's items."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache, reduce
from operator import or_

from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Subquery, Sum

from evalsite import clock
from evalsite.accounts.models import Membership, Project, Role, User
from evalsite.web.paging import newest_first
from judging.core.people.assignment import gold_to_come
from judging.core.people.criteria import Criterion
from judging.core.values import Value
from judging.filters.row_filters import id_subquery
from judging.people.dealt import DEALT, gold_left
from judging.people.guidelines.repeats import version_repeats_to_come
from judging.people.item_view import ItemView, shown_in
from judging.people.labels import labelled_values, values_of
from judging.people.models import (
    SENT_ONLY,
    Adjudication,
    Assignment,
    AssignmentState,
    Evaluation,
    EvaluationRater,
    FurtherAnswer,
    Item,
)
from judging.people.quota import DONE, limit_of, raised_to, seconds_an_item
from judging.records.models import Judgement, Run
from judging.records.seal import sealed_items

PER_PAGE = 50


def in_play(evaluations: Collection[Evaluation]) -> Q:
    """Matches the items of these evaluations that can be assigned now: while a pilot runs only its own."""
    whole = Q(evaluation__in=[each.pk for each in evaluations if each.pilot_below is None])
    pilots = [each for each in evaluations if each.pilot_below is not None]
    return reduce(or_, (Q(evaluation=each.pk, rank__lt=each.pilot_below) for each in pilots), whole)


def rating_parts() -> QuerySet[EvaluationRater]:
    """The raters of the evaluations that show themselves to raters now: neither draft nor closed, and while a pilot
    runs only those in it."""
    now = clock.now()
    begun = Q(evaluation__draft=False) | Q(evaluation__starts_at__lte=now)
    unended = Q(evaluation__ends_at=None) | Q(evaluation__ends_at__gt=now)
    in_pilot = Q(evaluation__pilot_below=None) | Q(in_pilot=True)
    parts = EvaluationRater.objects.filter(begun, unended, in_pilot, left_at=None, evaluation__closed_at=None)
    return parts.filter(evaluation__run__archived_at=None)


def evaluations_page(
    project: Project,
    *,
    archived: bool = False,
    before: int | None = None,
    size: int = PER_PAGE,
    run: int | None = None,
) -> tuple[list[Evaluation], int | None]:
    """Evaluations with their `ratings` of `needed`, newest first, and the `before` of the next page (None: no more).
    `run`: only the one that is this run, and those of its answers."""
    usual = Item.objects.filter(evaluation=OuterRef("pk"), needed__gt=0).order_by().values("evaluation")
    evaluations = Evaluation.objects.filter(run__project=project, run__archived_at__isnull=not archived)
    if run is not None:
        evaluations = evaluations.filter(Q(run=run) | Q(about_run=run))
    evaluations = evaluations.select_related("run__version__dataset", "other_version__dataset").annotate(
        ratings=Subquery(usual.annotate(sum=Sum("rated")).values("sum")),
        needed=Subquery(usual.annotate(sum=Sum("needed")).values("sum")),
        rater_count=Count("raters", filter=Q(raters__left_at=None)),
    )
    return newest_first(evaluations, size, before)


@dataclass(frozen=True, slots=True)
class RatingTask:
    """An evaluation in which a user rates: items done, and at most how many are left; `raised`: the number of items
    that are asked for now, where it is more than what the user was told (`promised`)."""

    evaluation: Evaluation
    project: Project
    rated: int
    left: int
    promised: int | None = None
    raised: int | None = None

    @property
    def seconds_left(self) -> float:
        """About how long the rest takes, as raters are told. One query."""
        return self.left * seconds_an_item(self.evaluation)


def rating_tasks(user: User, projects: QuerySet[Project]) -> list[RatingTask]:
    """The open evaluations of these projects in which the user rates; those with items left first. Three queries,
    plus some for evaluations with gold items or repeats."""
    rating = rating_parts().filter(user=user, evaluation__run__project__in=projects.values("pk"))
    rating = rating.select_related("evaluation__run__project")
    parts = list(rating.order_by("evaluation"))
    opened, own = _open_items([part.evaluation for part in parts]), _counts_of([part.pk for part in parts])
    tasks = [
        RatingTask(
            part.evaluation,
            part.evaluation.run.project,
            own[part.pk].states[AssignmentState.RATED],
            _items_left(part, opened[part.evaluation_id], own[part.pk]),
            part.promised,
            raised_to(part.evaluation, part),
        )
        for part in parts
    ]
    return sorted(tasks, key=lambda task: not task.left)


def possible_raters(project: Project) -> QuerySet[User]:
    """Members who can rate in a project, by name, including superusers."""
    members = Membership.objects.filter(project=project, role__in=(Role.RATER, Role.ADMIN))
    active = User.objects.filter(is_active=True)
    return active.filter(Q(pk__in=members.values("user")) | Q(is_superuser=True)).order_by("username")


WHICH = {
    "all": Q(needed__gt=0),
    "open": Q(needed__gt=0, free__gt=0),
    "held": Q(assignments__state=AssignmentState.LEASED),
    "done": Q(needed__gt=0, rated__gte=F("needed")),
    "skipped": Q(assignments__state=AssignmentState.SKIPPED),
    "gold": ~Q(gold=""),
    "repeats": Q(repeat_of__isnull=False),
    "sent": SENT_ONLY,
}
"""The kinds of items that the list can show."""


def items_page(
    evaluation: Evaluation,
    which: str,
    after: int = 0,
    *,
    among: Collection[int] | None = None,
    rater: int | None = None,
    size: int = PER_PAGE,
) -> tuple[list[Item], int | None]:
    """Items of a kind (of WHICH; with `among` only of these, with `rater` only theirs) by number, with their raters,
    and the `after` of the next page (None: no more)."""
    own = Q() if rater is None else Q(assignments__rater=rater)
    items = Item.objects.filter(WHICH[which] & own, evaluation=evaluation, number__gt=after).distinct()
    if among is not None:
        items = items.filter(pk__in=id_subquery(list(among)))
    parts = ("row", "response__candidate", "other_response__candidate")
    page = list(items.select_related(*parts).order_by("number")[: size + 1])
    return page[:size], page[size - 1].number if len(page) > size else None


@dataclass(frozen=True, slots=True)
class ItemCounts:
    """Of an evaluation, without gold and repeats: `items` that were drawn, over so many `rows`, and items that rules
    have sent besides."""

    items: int
    rows: int
    sent: int


def item_counts(evaluation: Evaluation) -> ItemCounts:
    sent = evaluation.items.filter(SENT_ONLY, needed__gt=0).count()
    if not sent:
        return ItemCounts(evaluation.items_count, evaluation.run.rows, 0)
    drawn = evaluation.items.filter(~SENT_ONLY, needed__gt=0).aggregate(rows=Count("row", distinct=True))
    return ItemCounts(evaluation.items_count - sent, drawn["rows"], sent)


_PACE_OVER = 20  # recent verdicts that determine the pace


def evaluations_of(run: Run) -> list[Evaluation]:
    """The human evaluations that a run's report includes, oldest first: its own, or those created from its answers."""
    mine = Q(run=run) if run.by_people else Q(about_run=run)
    return list(Evaluation.objects.filter(mine).select_related("run").order_by("pk"))


def rater_names(evaluations: Sequence[Evaluation]) -> dict[int, str]:
    """{user: the rater's name in a report}, unique, although each evaluation numbers its raters from R1."""
    names: dict[int, str] = {}
    raters = EvaluationRater.objects.filter(evaluation__in=evaluations).order_by("pk")
    for user, pseudonym in raters.values_list("user", "pseudonym"):
        taken = set(names.values())
        free = (f"R{number}" for number in range(1, len(taken) + 2) if f"R{number}" not in taken)
        names.setdefault(user, pseudonym if pseudonym not in taken else next(free))
    return names


def mine(
    *, evaluation: Evaluation, user: User, before: int | None = None, limit: int = 20
) -> tuple[list[Assignment], int | None]:
    """A rater's earlier items (rated or skipped), newest first, and the `before` of the next page (None: no more)."""
    handled = (AssignmentState.RATED, AssignmentState.SKIPPED)
    assignments = Assignment.objects.filter(rater__evaluation=evaluation, rater__user=user, state__in=handled)
    if before is not None:
        assignments = assignments.filter(place__lt=before)
    parts = ("item__row", "item__response", "item__other_response", "rating", "rater")
    page = list(assignments.select_related(*parts).order_by("-place")[: limit + 1])
    return page[:limit], page[limit - 1].place if len(page) > limit else None


@dataclass(frozen=True, slots=True)
class RaterProgress:
    """A rater's progress: items done and left, with gold items and repeats, which raters can't tell apart;
    `seconds_each`: mean active time over the last `paced` of them. `paused`: the rater alone, not the evaluation.
    `raised`: as in RatingTask. `until`: the evaluation's end. `quota_reached`: the rater gets no more items."""

    done: int
    left: int
    seconds_each: float | None
    paused: bool = False
    raised: int | None = None
    until: datetime | None = None
    quota_reached: bool = False

    @property
    def total(self) -> int:
        return self.done + self.left

    @property
    def paced(self) -> int:
        return min(self.done, _PACE_OVER)

    @property
    def seconds_left(self) -> float | None:
        return None if self.seconds_each is None else self.seconds_each * self.left


def progress(rater: EvaluationRater) -> RaterProgress:
    """A rater's progress. The remaining number is a maximum, because other raters may take items."""
    evaluation = rater.evaluation
    own, opened = _counts_of([rater.pk])[rater.pk], _open_items([evaluation])[evaluation.pk]
    left, limit = _items_left(rater, opened, own), limit_of(evaluation, rater)
    return RaterProgress(
        own.states[AssignmentState.RATED],
        left,
        pace(rater),
        rater.stopped,
        raised_to(evaluation, rater),
        evaluation.ends_at,
        quota_reached=limit is not None and own.done >= limit,
    )


@dataclass(slots=True)
class _RaterCounts:
    """A rater's items of the real queue by state, the gold among those rated or held, and the items with a free seat
    that this rater has already had."""

    states: Counter[str] = field(default_factory=Counter)
    gold: int = 0
    seen_open: int = 0

    @property
    def done(self) -> int:
        return sum(self.states[state] for state in DONE)

    @property
    def dealt(self) -> int:
        return sum(self.states[state] for state in DEALT)


def _open_items(evaluations: Collection[Evaluation]) -> Counter[int]:
    """{evaluation: items with a free seat}."""
    opened = Item.objects.filter(in_play(evaluations), free__gt=0).order_by()
    return Counter(dict(opened.values_list("evaluation").annotate(items=Count("pk"))))


def _counts_of(raters: Collection[int]) -> dict[int, _RaterCounts]:
    own = Assignment.objects.filter(rater__in=raters, entry=None).order_by().values("rater", "state")
    counted = own.annotate(
        items=Count("pk"),
        gold_items=Count("pk", filter=~Q(item__gold="")),
        still_open=Count("pk", filter=Q(item__free__gt=0)),
    )
    by_rater: dict[int, _RaterCounts] = defaultdict(_RaterCounts)
    counts = counted.values_list("rater", "state", "items", "gold_items", "still_open")
    for rater, state, items, gold, still_open in counts:
        by_rater[rater].states[state] = items
        by_rater[rater].gold += gold if state in DEALT else 0
        if state != AssignmentState.RELEASED:
            by_rater[rater].seen_open += still_open
    return by_rater


def _items_left(rater: EvaluationRater, open_items: int, own: _RaterCounts) -> int:
    opened = open_items - own.seen_open
    held = own.states[AssignmentState.LEASED]
    repeats = _repeats_to_come(rater) + version_repeats_to_come(rater.evaluation, rater)
    left = held + opened + repeats + _gold_to_come(rater, opened + repeats, own)
    limit = limit_of(rater.evaluation, rater)
    return left if limit is None else min(left, max(0, limit - own.done))


def _repeats_to_come(rater: EvaluationRater) -> int:
    """Number of repeats still to come of items that the rater has rated, holds, or will get."""
    if not rater.evaluation.repeat_share:
        return 0
    own = Assignment.objects.filter(rater=rater).exclude(state=AssignmentState.RELEASED)
    first = own.filter(item=OuterRef("repeat_of"))
    may_come = Exists(first.exclude(state=AssignmentState.SKIPPED)) | (
        Q(repeat_of__free__gt=0) & ~Exists(first)
    )
    twins = Item.objects.filter(
        evaluation=rater.evaluation_id, needed=0, repeat_of__isnull=False, version_repeat=None
    )
    if rater.evaluation.pilot_below is not None:
        twins = twins.filter(repeat_of__rank__lt=rater.evaluation.pilot_below)
    return twins.filter(may_come).exclude(pk__in=own.values("item")).count()


def _gold_to_come(rater: EvaluationRater, others: int, own: _RaterCounts) -> int:
    """Number of gold items still to come with so many others."""
    evaluation = rater.evaluation
    if not evaluation.gold_share:
        return 0
    return gold_to_come(
        others,
        gold_left(rater).count(),
        share=evaluation.gold_share,
        place=own.dealt,
        gold_had=own.gold,
        seed=evaluation.seed,
        rater=rater.pk,
    )


def pace(rater: EvaluationRater) -> float | None:
    """Mean active time of the last verdicts after training and qualification in seconds; None before the first."""
    rated = Assignment.objects.filter(rater=rater, state=AssignmentState.RATED, seconds__gt=0, entry=None)
    times = list(rated.order_by("-place").values_list("seconds", flat=True)[:_PACE_OVER])
    return sum(times) / len(times) if times else None


MOST = 50


@dataclass(frozen=True, slots=True)
class PersonVerdict:
    """One person's verdict, or an adjudication (without a pseudonym). `values`: [(criterion, value in force, the
    person's own value if a reviewer overrode it, else '')]."""

    item: Item
    pseudonym: str
    values: list[tuple[str, str, str]]
    comment: str


@dataclass(frozen=True, slots=True)
class Seen:
    """An item as its raters saw it, the judged answer on the left, with the names that were hidden from them."""

    shown: ItemView
    names: list[str]


def seen_by_people(judgement: Judgement) -> Seen | None:
    """The item of a rating's judgement."""
    parts = ("evaluation__run__version", "evaluation__other_version", "row")
    items = Item.objects.select_related(*parts, "response__candidate", "other_response__candidate")
    items = items.filter(evaluation__run=judgement.run_id)
    about = {"response": judgement.response_id, "other_response": judgement.other_response_id}
    item = items.filter(**about).first() or items.filter(row=judgement.row_id).first()
    if item is None:
        return None
    if item.is_ranked:  # the judgement is about one pair
        pair = judgement.response, judgement.other_response
        item = Item(evaluation=item.evaluation, row=item.row, response=pair[0], other_response=pair[1])
    shown = shown_in(item.evaluation, item, 1, with_reference=not item.rates_reference)
    return Seen(shown, item.candidate_names)


@dataclass(frozen=True, slots=True)
class ItemsAbout:
    """Ordinary items that contain an answer, alone or next to another: ids of those whose ratings may be seen, the
    evaluations of the others, and how many are in a test that is sealed."""

    seen: list[int]
    hidden: set[int]
    sealed: int = 0


def items_about(response_id: int, blind: Callable[[], Set[int]] = frozenset) -> ItemsAbout:
    """`blind` returns the evaluations whose ratings must be hidden (access.blind_evaluations); called only if there
    are items."""
    here = Q(response=response_id) | Q(other_response=response_id)
    further = FurtherAnswer.objects.filter(response=response_id).values("item")
    about = Item.objects.filter(here | Q(pk__in=further), needed__gt=0)
    items = list(about.select_related("evaluation__run__version")[:MOST])
    hidden = blind() if items else frozenset[int]()
    seen = [item for item in items if item.evaluation_id not in hidden]
    rows_of = cache(lambda evaluation: sealed_items(evaluation.run))
    sealed = {item.pk for item in seen if item.row_id in rows_of(item.evaluation)}
    return ItemsAbout(
        [item.pk for item in seen if item.pk not in sealed],
        {item.evaluation_id for item in items if item.evaluation_id in hidden},
        len(sealed),
    )


def said_of(items: Sequence[int]) -> list[PersonVerdict]:
    """All current verdicts on these items, adjudications last."""
    if not items:
        return []
    assignments = Assignment.objects.counted().filter(item__in=items)
    parts = ("item__evaluation__run", "item__response__candidate", "item__other_response__candidate")
    rated = list(assignments.select_related("rater", "rating", *parts).order_by("pk")[:MOST])
    overridden = _overrides([assignment.rating_id for assignment in rated if assignment.rating_id])
    decided = list(Adjudication.objects.filter(item__in=items).select_related(*parts).order_by("pk")[:MOST])
    verdicts = [
        (
            assignment.item,
            assignment.rater.pseudonym,
            rating.values,
            rating.comment,
            overridden.get(rating.pk, {}),
        )
        for assignment in rated
        if (rating := assignment.rating)
    ]
    verdicts += [
        (adjudication.item, "", adjudication.values, adjudication.reason, {}) for adjudication in decided
    ]
    criteria = cache(lambda evaluation: evaluation.criteria)
    return [
        PersonVerdict(item, pseudonym, _in_force(item, criteria(item.evaluation), values, changed), comment)
        for item, pseudonym, values, comment, changed in verdicts
    ]


def _overrides(ratings: Sequence[int]) -> dict[int, dict[int, Value]]:
    """{rating: {criterion number: value set by a reviewer}}."""
    overrides: dict[int, dict[int, Value]] = {}
    judged = Judgement.objects.filter(rating__in=ratings, current=True, override_value__isnull=False)
    for rating, number, value in judged.values_list("rating", "run_metric__number", "override_value"):
        overrides.setdefault(rating, {})[number] = json.loads(value or "null")
    return overrides


def _in_force(
    item: Item, criteria: Mapping[int, Criterion], text: str, overridden: Mapping[int, Value]
) -> list[tuple[str, str, str]]:
    """A rating's stored values as in PersonVerdict."""
    values, names = values_of(text), item.candidate_names
    own = dict(labelled_values(criteria, {n: values[n] for n in overridden if n in values}, names))
    in_force = {number: overridden.get(number, value) for number, value in values.items()}
    return [(name, label, own.get(name, "")) for name, label in labelled_values(criteria, in_force, names)]
