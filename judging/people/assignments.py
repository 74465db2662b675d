"""Assignments of items to raters: leases, expiry, next items; adding and removing raters, reassigning items.

Each item counts its free seats.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Count, F, Q, QuerySet, Sum
from django.utils.translation import gettext as _

from evalsite import clock
from evalsite.accounts.models import Project, User
from evalsite.audit import Action, record, record_all
from evalsite.links import absolute_url
from evalsite.webhooks.events import emit
from evalsite.webhooks.kinds import Event
from judging.core.people.assignment import (
    MOST_AHEAD,
    Shares,
    Twin,
    fair_share,
    mixed,
    most_held,
    starting_rank,
)
from judging.core.people.ranking import shown_order
from judging.core.people.sampling import side_for
from judging.people.dealt import dealt_to, gold_left, items_dealt
from judging.people.guidelines.repeats import REPEAT_SHARE, version_twins
from judging.people.models import (
    Assignment,
    AssignmentState,
    Evaluation,
    EvaluationRater,
    Item,
    Order,
    Scheme,
)
from judging.people.quota import active_raters, done_by, limit_of, promises_store, room
from judging.people.selectors import in_play, pace
from judging.records.models import Run
from judging.records.seal import closed_for_rating

REFILL_BELOW = 2 / 3  # of what a rater may hold
_SHOWN = ("item__row", "item__response", "item__other_response", "rater")


def locked(evaluation: Evaluation | int, *, run: Run | None = None) -> Evaluation:
    """The evaluation, locked until the transaction ends. `run`: its run, if it is loaded."""
    pk = evaluation if isinstance(evaluation, int) else evaluation.pk
    rows = Evaluation.objects.select_for_update(of=("self",))
    row = (rows if run else rows.select_related("run")).get(pk=pk)
    if run is not None:
        row.run = run
    return row


def claim(
    *,
    evaluation: Evaluation,
    user: User,
    count: int = 2,
    loaded: Collection[int] = (),
    submitting: Collection[int] = (),
) -> list[Assignment]:
    """The next items of a user who rates in an evaluation; none for others."""
    rater = EvaluationRater.objects.filter(evaluation=evaluation, user=user, left_at=None).first()
    if rater is None:
        return []
    rater.evaluation = evaluation
    return claim_for(rater, count, loaded, submitting)


def claim_for(
    rater: EvaluationRater, count: int, loaded: Collection[int] = (), submitting: Collection[int] = ()
) -> list[Assignment]:
    """Lease a rater's next items, at most `count`: items held already come first, and all leases are renewed.

    `loaded`: assignment ids that the page already has; they are not returned again. `submitting`: ids whose verdicts
    are being sent. Items beyond a fair share of the remaining ones are released for other raters. Empty if the
    evaluation is not open, the rater has left, is paused or not in its pilot, or no items are available;
    also while the page has most of what its rater may hold. Rows and responses are prefetched.
    """
    evaluation = rater.evaluation
    if rater.left_at is not None or rater.stopped:
        return []
    if _has_enough(evaluation, rater, set(loaded), set(submitting)):
        return []
    return _claim(evaluation, rater, count, loaded, submitting)


def rater_reload(rater: EvaluationRater, evaluation: Evaluation) -> None:
    """Read a rater again once their evaluation is locked."""
    rater.refresh_from_db()
    rater.evaluation = evaluation


def _has_enough(
    evaluation: Evaluation, rater: EvaluationRater, loaded: set[int], submitting: set[int]
) -> bool:
    """Whether the page can go on with the items it has: nearly as many as its rater may hold, with fresh leases, and
    others have plenty. Then nothing is written, because verdicts wait while the evaluation is locked."""
    leased = dict(_leased(rater).values_list("pk", "lease_until"))
    held = leased.keys() - submitting
    if held != loaded or len(held) < REFILL_BELOW * most_held(pace(rater), MOST_AHEAD):
        return False
    if min(leased.values()) < lease_end(evaluation) - timedelta(minutes=evaluation.lease_minutes / 2):
        return False
    limit = limit_of(evaluation, rater)
    if limit is not None and done_by(rater) + len(leased) > limit:
        return False
    plenty = MOST_AHEAD * _raters_now(evaluation).count()
    return Item.objects.filter(in_play([evaluation]), free__gt=0)[:plenty].count() == plenty


@transaction.atomic
def _claim(
    evaluation: Evaluation,
    rater: EvaluationRater,
    count: int,
    loaded: Collection[int],
    submitting: Collection[int],
) -> list[Assignment]:
    evaluation = locked(evaluation, run=evaluation.run)
    rater_reload(rater, evaluation)
    if rater.left_at is not None or rater.stopped or not evaluation.open:
        return []
    if evaluation.pilot_below is not None and not rater.in_pilot:
        return []
    now = clock.now()
    expired = Assignment.objects.filter(
        evaluation=evaluation, state=AssignmentState.LEASED, lease_until__lt=now
    )
    release(list(expired.exclude(rater=rater)))  # this rater is active again
    limit = _most_held(evaluation, rater)
    held = _renewed(evaluation, _without_excess(rater, limit, submitting))
    on_page = _lease_again(evaluation, rater, limit - len(held), of=loaded)
    fresh = len([pk for pk in held if pk not in {*loaded, *submitting}])
    missing = min(limit - len(held) - on_page, count - fresh)
    for item in _next_items(evaluation, rater, missing) if missing > 0 else []:
        assign(evaluation, rater, item)
    assignments = list(_leased(rater).exclude(pk__in=[*loaded, *submitting]).select_related(*_SHOWN)[:count])
    for assignment in assignments:
        assignment.evaluation = evaluation
    return assignments


def held_by(rater: EvaluationRater) -> dict[UUID, datetime]:
    """A rater's current leases: {item's token: end of the lease}."""
    return dict(_leased(rater).values_list("token", "lease_until"))


def numbers_of(*, evaluation: Evaluation, user: User, items: Collection[UUID | int]) -> set[int]:
    """The ids of a rater's assignments with these tokens; an earlier release's pages kept ids, which are returned as
    they are."""
    numbers = {item for item in items if isinstance(item, int)}
    tokens = [item for item in items if isinstance(item, UUID)]
    own = Assignment.objects.filter(rater__evaluation=evaluation, rater__user=user)
    return numbers | set(own.filter(token__in=tokens).values_list("pk", flat=True))


def _held_by(evaluation: Evaluation, user: User) -> QuerySet[Assignment]:
    leased = Assignment.objects.filter(state=AssignmentState.LEASED)
    return leased.filter(rater__evaluation=evaluation, rater__user=user)


@transaction.atomic
def give_back(*, evaluation: Evaluation, user: User, items: Collection[int], until: datetime) -> int:
    """Release those of `items` (assignment ids) that have no draft, after a page was closed. Returns how many.

    `until`: the latest lease end that the page knew. Later leases were renewed by another page and are not released.
    """
    locked(evaluation)
    held = _held_by(evaluation, user).filter(pk__in=items, lease_until__lte=until, draft="")
    return release(list(held))


def _most_held(evaluation: Evaluation, rater: EvaluationRater) -> int:
    """The maximum number of items this rater may hold now; 0 once they have all that they were told."""
    opened = Item.objects.filter(in_play([evaluation]), free__gt=0)
    waiting = Assignment.objects.filter(
        evaluation=evaluation, state=AssignmentState.LEASED, item__needed__gt=0, extra=False
    )
    left = opened.aggregate(free=Sum("free", default=0))["free"] + waiting.count()
    active = list(_raters_now(evaluation))
    enough_for_all = left >= MOST_AHEAD * len(active)
    capacities = _capacities(evaluation, [rater] if enough_for_all else active)
    mine = capacities.pop(rater.pk)
    held = most_held(pace(rater), fair_share(left, mine, list(capacities.values())))
    within = room(evaluation, rater)
    return held if within is None else min(held, within)


def _raters_now(evaluation: Evaluation) -> QuerySet[EvaluationRater]:
    raters = active_raters([evaluation.pk])
    return raters if evaluation.pilot_below is None else raters.filter(in_pilot=True)


def _capacities(evaluation: Evaluation, raters: Collection[EvaluationRater]) -> dict[int, int]:
    """{rater: how many further items they could rate}."""
    ended = (AssignmentState.RATED, AssignmentState.SKIPPED, AssignmentState.REASSIGNED)
    usual = Assignment.objects.filter(rater__in=raters, state__in=ended, item__needed__gt=0).order_by()
    had = Counter(dict(usual.values_list("rater").annotate(items=Count("pk"))))
    items = evaluation.items_count if evaluation.pilot_below is None else evaluation.pilot_items or 0
    limits = {rater.pk: limit_of(evaluation, rater) for rater in raters}
    return {
        pk: max(0, (items if limit is None else min(items, limit)) - had[pk]) for pk, limit in limits.items()
    }


def _without_excess(rater: EvaluationRater, limit: int, submitting: Collection[int]) -> list[int]:
    """Release the last items, except those with a draft, because raters joined or fewer items are left. Returns what
    the rater holds then."""
    leased = list(_leased(rater))
    excess = [held for held in leased[limit:] if not held.draft and held.pk not in submitting]
    release(excess)
    return [held.pk for held in leased if held not in excess]


def _leased(rater: EvaluationRater) -> QuerySet[Assignment]:
    return Assignment.objects.filter(rater=rater, state=AssignmentState.LEASED).order_by("place")


def lease_end(evaluation: Evaluation) -> datetime:
    """The end of a lease that starts now."""
    return clock.now() + timedelta(minutes=evaluation.lease_minutes)


def release(assignments: list[Assignment]) -> int:
    """Release items: their seats become free, drafts are kept. Call with the evaluation locked."""
    for assignment in assignments:
        Assignment.objects.filter(pk=assignment.pk).update(state=AssignmentState.RELEASED)
        free_seat(assignment)
    return len(assignments)


def free_seat(assignment: Assignment) -> None:
    """Free the item's seat; extra assignments, gold items and repeats have none."""
    if not assignment.extra:
        Item.objects.filter(pk=assignment.item_id, needed__gt=0).update(free=F("free") + 1)


def take_seat(assignment: Assignment) -> bool:
    """Take a seat of the item; if all are taken, mark the assignment as extra and return False. Gold has no seats."""
    item = Item.objects.filter(pk=assignment.item_id)
    taken = bool(item.filter(free__gt=0).update(free=F("free") - 1)) or item.filter(needed=0).exists()
    if assignment.extra == taken:
        assignment.extra = not taken
        Assignment.objects.filter(pk=assignment.pk).update(extra=not taken)
    return taken


def _renewed(evaluation: Evaluation, held: list[int]) -> list[int]:
    Assignment.objects.filter(pk__in=held).update(lease_until=lease_end(evaluation))
    return held


def _lease_again(evaluation: Evaluation, rater: EvaluationRater, count: int, of: Collection[int]) -> int:
    """Lease those of this rater's released items that a page still shows again, if they have a free seat. Returns how
    many."""
    if count <= 0 or not of:
        return 0
    # Gold and repeats have no seats.
    available = Q(item__free__gt=0) | Q(item__needed=0, item__gold_removed=False)
    left = _released(rater).filter(available, pk__in=of, entry=None)
    taken = [assignment.pk for assignment in left.order_by("place")[:count] if take_seat(assignment)]
    Assignment.objects.filter(pk__in=taken).update(
        state=AssignmentState.LEASED, lease_until=lease_end(evaluation)
    )
    return len(taken)


def _released(rater: EvaluationRater) -> QuerySet[Assignment]:
    return Assignment.objects.filter(rater=rater, state=AssignmentState.RELEASED)


def _next_items(evaluation: Evaluation, rater: EvaluationRater, count: int) -> list[Item]:
    dealt = dealt_to(rater)
    rater.place = dealt.last_place
    of_version = version_twins(evaluation, rater)
    repeats = max(evaluation.repeat_share, REPEAT_SHARE) if of_version else evaluation.repeat_share
    twins = [*_twins(evaluation, rater), *of_version]
    chosen = mixed(
        _ordinary_items(evaluation, rater, count),
        _gold_items(evaluation, rater, count),
        sorted(twins, key=lambda twin: (-twin.ago, twin.pk)),
        count=count,
        place=dealt.items,
        gold_had=dealt.gold,
        shares=Shares(evaluation.gold_share, repeats),
        seed=evaluation.seed,
        rater=rater.pk,
    )
    items = Item.objects.in_bulk(chosen)
    return [items[pk] for pk in chosen]


def _ordinary_items(evaluation: Evaluation, rater: EvaluationRater, count: int) -> list[int]:
    """Items with a free seat: released ones of this rater, because there may be a draft, then those that this rater has
    not had, from the rater's starting rank on, wrapping around; by need only those with the most free seats."""
    open_items = Item.objects.filter(in_play([evaluation]), free__gt=0)
    open_items = open_items.exclude(row__in=closed_for_rating(evaluation.run))
    released = open_items.filter(assignments__rater=rater, assignments__state=AssignmentState.RELEASED)
    again = list(released.order_by("assignments__place").values_list("pk", flat=True)[:count])
    unseen = open_items.exclude(assignments__rater=rater)
    if evaluation.order == Order.NEED:
        most = unseen.order_by("-free").values_list("free", flat=True).first()
        unseen = unseen.filter(free=most) if most else unseen
    start = starting_rank(evaluation.seed, rater.pk, evaluation.pilot_below or evaluation.items_count)
    by_rank = unseen.order_by("rank").values_list("pk", flat=True)
    later = list(by_rank.filter(rank__gte=start)[:count])
    return [*again, *later, *by_rank.filter(rank__lt=start)[: count - len(later)]]


def _gold_items(evaluation: Evaluation, rater: EvaluationRater, count: int) -> list[int]:
    if not evaluation.gold_share:
        return []
    return list(gold_left(rater).order_by("rank").values_list("pk", flat=True)[:count])


def _twins(evaluation: Evaluation, rater: EvaluationRater) -> list[Twin]:
    """Repeats of items that this rater has rated, each with the number of items since then."""
    if not evaluation.repeat_share:
        return []
    rated = {"repeat_of__assignments__rater": rater, "repeat_of__assignments__state": AssignmentState.RATED}
    twins = Item.objects.filter(version_repeat=None, **rated).exclude(pk__in=items_dealt(rater))
    places = twins.values_list("pk", "repeat_of__assignments__place")
    return [Twin(pk, rater.place - place) for pk, place in places]


def assign(evaluation: Evaluation, rater: EvaluationRater, item: Item) -> Assignment:
    """Lease an item to a rater who has not had it, or whose lease was released. Call with the evaluation locked."""
    rater.place += 1
    rater.save(update_fields=["place"])
    released = _released(rater).filter(item=item).first()
    if released is not None:
        released.place, released.state = rater.place, AssignmentState.LEASED
        released.lease_until = lease_end(evaluation)
        released.save(update_fields=["place", "state", "lease_until"])
        take_seat(released)
        return released
    side = side_for(item.first_side, item.assigned) if item.first_side else None
    order = order_shown(evaluation, item)
    if item.repeat_of_id:  # swap the sides, so that raters can't repeat a remembered position
        side = _other_side(item.repeat_of_id, rater) or side
        order = _reversed_order(item.repeat_of_id, rater) or order
    assignment = Assignment.objects.create(
        evaluation=evaluation,
        item=item,
        rater=rater,
        place=rater.place,
        shown_first=side,
        shown_order=",".join(map(str, order)),
        lease_until=lease_end(evaluation),
    )
    Item.objects.filter(pk=item.pk).update(assigned=F("assigned") + 1)
    take_seat(assignment)
    return assignment


def order_shown(evaluation: Evaluation, item: Item) -> list[int]:
    """The order in which ranked answers are shown to the item's next rater; empty for other items."""
    if evaluation.scheme != Scheme.RANK:
        return []
    return shown_order(len(item.answers), evaluation.seed, item.number, item.assigned)


def _reversed_order(item_id: int, rater: EvaluationRater) -> list[int]:
    first = Assignment.objects.filter(item=item_id, rater=rater).first()
    return first.order[::-1] if first and first.shown_order else []


def _other_side(item_id: int, rater: EvaluationRater) -> int | None:
    side = Assignment.objects.filter(item=item_id, rater=rater).values_list("shown_first", flat=True).first()
    return 3 - side if side else None


@transaction.atomic
def raters_add(*, evaluation: Evaluation, users: Sequence[User], by: User | None = None) -> None:
    """Add raters, or bring them back, with a constant number of queries, because SQLite's only write lock is held."""
    evaluation = locked(evaluation)
    before = {rater.user_id: rater for rater in EvaluationRater.objects.filter(evaluation=evaluation)}
    new = [user for user in users if user.pk not in before]
    back = [user for user in users if user.pk in before and before[user.pk].left_at is not None]
    EvaluationRater.objects.bulk_create(
        EvaluationRater(evaluation=evaluation, user=user, pseudonym=f"R{number}")
        for number, user in enumerate(new, len(before) + 1)
    )
    EvaluationRater.objects.filter(evaluation=evaluation, user__in=back).update(left_at=None)
    if new or back:
        project = Project.objects.get(pk=evaluation.run.project_id)
        added = [{"rater": user.username} for user in users if user in new or user in back]
        record_all(Action.RATER_ADDED, added, project=project, thing=evaluation.run, by=by)
        tell_raters(evaluation)


def tell_raters(evaluation: Evaluation) -> None:
    """Store how many items raters get, and tell webhooks of those who have work now in an open evaluation, once for
    each. Call it where one opens, with the evaluation locked."""
    promises_store(evaluation)
    if not evaluation.open:
        return
    raters = EvaluationRater.objects.filter(evaluation=evaluation, left_at=None, work_told=False)
    if evaluation.pilot_below is not None:
        raters = raters.filter(in_pilot=True)
    count, run = raters.update(work_told=True), evaluation.run
    url = absolute_url("desk:page", run.project.slug, run.pk)
    emit(Event.RATING_ASSIGNED, run.project, pk=run.pk, name=run.name, state="open", url=url, times=count)


@transaction.atomic
def rater_leave(*, rater: EvaluationRater, by: User) -> None:
    """Remove a rater: reserved items are released, ratings are kept."""
    evaluation = locked(rater.evaluation_id)
    if not EvaluationRater.objects.filter(pk=rater.pk, left_at=None).update(left_at=clock.now()):
        return
    release(list(Assignment.objects.filter(rater=rater, state=AssignmentState.LEASED)))
    promises_store(evaluation)
    audit(Action.RATER_LEFT, evaluation, by, rater=rater.user.username)


@transaction.atomic
def item_reassign(*, assignment: Assignment, to: EvaluationRater | None, by: User) -> Assignment | None:
    """Take a reserved item from a rater and assign it to `to`, or to anyone if None.

    The first rater does not get it again, but a verdict that still arrives is stored. Raises ValidationError if it has
    been rated since, or if `to` has already had it.
    """
    evaluation = locked(assignment.evaluation_id)
    now = Assignment.objects.select_related("item", "rater").get(pk=assignment.pk)
    if now.state != AssignmentState.LEASED:
        raise ValidationError(_("That rater no longer holds this item."))
    if to is not None and Assignment.objects.filter(item=now.item, rater=to).exists():
        raise ValidationError(_("%(rater)s has already been assigned this item.") % {"rater": to.pseudonym})
    Assignment.objects.filter(pk=now.pk).update(state=AssignmentState.REASSIGNED)
    free_seat(now)
    reassigned = assign(evaluation, to, Item.objects.get(pk=now.item_id)) if to else None
    names = {"of": now.rater.user.username, "to": to.user.username if to else ""}
    audit(Action.ITEM_REASSIGNED, evaluation, by, item=now.item.number, **names)
    return reassigned


def audit(action: Action, evaluation: Evaluation, by: User | None, **detail: Any) -> None:
    """Write an organiser's action to the audit log."""
    project = Project.objects.get(pk=evaluation.run.project_id)
    record(action, project=project, thing=evaluation.run, by=by, **detail)
