"""Marks on answers (tags, assignments, exclusions): applying review actions, and queries.

Code that changes marks must lock the run's metrics first, like overrides. Actions on all matches of a filter are in
batches.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import Count, Exists, F, OuterRef

from evalsite.accounts.models import Project, User
from evalsite.audit import Action, record
from judging.records.json_text import storable
from judging.records.models import Judgement, JudgementQuerySet, Run
from judging.records.overrides import metrics_lock
from judging.teamwork import inbox
from judging.teamwork.models import FLAG, Mark, MarkKind, MarkQuerySet, ReviewAction

BATCH = 5_000  # answers per statement
Kind, State = ReviewAction.Kind, ReviewAction.State
MAKES = {Kind.TAG: MarkKind.TAG, Kind.ASSIGN: MarkKind.ASSIGNED, Kind.EXCLUDE: MarkKind.EXCLUDED}
REMOVES = {
    Kind.UNTAG: MarkKind.TAG,
    Kind.ASSIGN: MarkKind.ASSIGNED,
    Kind.UNASSIGN: MarkKind.ASSIGNED,
    Kind.FINISH: MarkKind.ASSIGNED,
    Kind.INCLUDE: MarkKind.EXCLUDED,
}
CHANGES = REMOVES | MAKES  # the kind of mark that an action is about
_AUDITED = {kind: Action(f"review.{kind}") for kind in CHANGES}

Pair = tuple[int, int]
"""(run metric id, response id)"""


class MarkConflict(Exception):
    """The mark was changed since the reviewer opened the page."""


@dataclass(frozen=True, slots=True)
class Change:
    """A requested change of marks. `name`: the tag, empty for the flag; `user`: the assignee."""

    kind: str
    name: str = ""
    user: User | None = None
    reason: str = ""


def current_marks(judgement: Judgement) -> list[Mark]:
    """The current marks on a judgement's answer and metric, with the actions that added them."""
    return list(marks_of([judgement]))


@transaction.atomic
def change_one(*, judgement: Judgement, change: Change, by: User, seen: int | None = None) -> ReviewAction:
    """Change the marks of one answer and metric. `seen`: id of the mark of this kind that the reviewer saw, 0 for none.
    Raises MarkConflict if it has changed since."""
    metrics_lock(judgement.run_id)
    pair = (judgement.run_metric_id, judgement.response_id)
    if seen is not None:
        kind = CHANGES[Kind(change.kind)]
        current = Mark.objects.current().filter(run_metric=pair[0], response=pair[1], kind=kind)
        if seen != (current.values_list("pk", flat=True).first() or 0):
            raise MarkConflict
    action = action_new(judgement.run, change, by, single=True)
    action_apply(action, [pair])
    if action.changed:
        action_finish(action, row=judgement.row.line)
    else:
        action.delete()
    return action


def marks_of(judgements: Iterable[Judgement]) -> MarkQuerySet:
    """Current marks on the answers and metrics of these judgements. May include other combinations of them."""
    judgements = list(judgements)
    marks = Mark.objects.current().filter(response__in={judgement.response_id for judgement in judgements})
    marks = marks.filter(run_metric__in={judgement.run_metric_id for judgement in judgements})
    return marks.select_related("action__by", "user").order_by("kind", "name")


def marks_by_judgement(judgements: Iterable[Judgement]) -> dict[int, list[Mark]]:
    """{judgement id: its current marks}, in one query."""
    rows = list(judgements)
    by_answer: dict[tuple[int, int], list[Mark]] = {}
    for mark in marks_of(rows):
        by_answer.setdefault((mark.run_metric_id, mark.response_id), []).append(mark)
    return {row.pk: by_answer.get((row.run_metric_id, row.response_id), []) for row in rows}


@dataclass(frozen=True, slots=True)
class MarkCounts:
    """`counts`: [(tag, assignee's username, count)] of marks of one kind. `marked`: the number of answer and metric
    pairs with any."""

    counts: list[tuple[str, str | None, int]]
    marked: int


def count_marks(pairs: Iterable[Pair], kind: str, **named: str) -> MarkCounts:
    """Count the current marks of the kind that an action `kind` changes, on some answers and metrics, optionally
    filtered by the fields in `named`."""
    totals, marked = Counter[tuple[str, str | None]](), 0
    for metric, responses in _parts(pairs):
        current = Mark.objects.current().filter(run_metric=metric, response__in=responses, **named)
        current = current.filter(kind=CHANGES[Kind(kind)])
        counts = current.values_list("name", "user__username").annotate(count=Count("*")).order_by()
        totals.update({(name, user): count for name, user, count in counts})
        marked += current.values("response").distinct().count()
    return MarkCounts([(name, user, count) for (name, user), count in totals.most_common()], marked)


def action_new(run: Run, change: Change, by: User, **more: Any) -> ReviewAction:
    reason = storable(change.reason) or ""
    return ReviewAction.objects.create(
        run=run, kind=change.kind, name=change.name, user=change.user, reason=reason, by=by, **more
    )


def action_apply(action: ReviewAction, pairs: Iterable[Pair]) -> None:
    """Remove and then add the action's marks. Call with the run's metrics locked."""
    kind = Kind(action.kind)
    for metric, responses in _parts(pairs):
        current = Mark.objects.current().filter(run_metric=metric, response__in=responses)
        if kind in REMOVES:
            removed = current.filter(kind=REMOVES[kind], name=action.name if kind == Kind.UNTAG else "")
            removed = removed.exclude(user=action.user) if kind == Kind.ASSIGN else removed
            action.removed += removed.update(removed_by=action)
        if kind in MAKES:
            mark: dict[str, Any] = {"kind": MAKES[kind], "name": action.name if kind == Kind.TAG else ""}
            already_marked = set(current.filter(**mark).values_list("response_id", flat=True))
            mark |= {"action": action, "run_id": action.run_id, "run_metric_id": metric, "user": action.user}
            marks = [
                Mark(response_id=response, **mark) for response in responses if response not in already_marked
            ]
            action.added += len(Mark.objects.bulk_create(marks, batch_size=1_000))
    figures_change(action)


def _parts(pairs: Iterable[Pair]) -> Iterator[tuple[int, list[int]]]:
    """Group pairs by metric into batches of responses, each for one statement."""
    by_metric: dict[int, list[int]] = {}
    for metric, response in pairs:
        by_metric.setdefault(metric, []).append(response)
    for metric, responses in by_metric.items():
        for at in range(0, len(responses), BATCH):
            yield metric, responses[at : at + BATCH]


def figures_change(action: ReviewAction) -> None:
    """Increase the run's revision if the action affects figures, so that they are recomputed."""
    if action.kind in (Kind.EXCLUDE, Kind.INCLUDE):
        Run.objects.filter(pk=action.run_id).update(revision=F("revision") + 1)


def action_finish(action: ReviewAction, **detail: Any) -> None:
    action.state = State.DONE
    action.save()
    record(
        _AUDITED[Kind(action.kind)],
        project=action.run.project,
        thing=action.run,
        by=action.by,
        judgements=action.changed,
        tag=action.name,
        user=action.user.username if action.user else "",
        reason=action.reason,
        filter=action.query,
        **detail,
    )
    if action.kind == Kind.ASSIGN and action.added:
        inbox.notify_assigned(action)


MOST_OFFERED = 100


def tag_names(project: Project | None = None, *, run: Run | None = None) -> list[str]:
    """Tag names used in a project or in one run, at most MOST_OFFERED."""
    actions = run.review_actions.all() if run else ReviewAction.objects.filter(run__project=project)
    tags = actions.filter(kind=ReviewAction.Kind.TAG).exclude(name=FLAG).order_by("name")
    return list(tags.values_list("name", flat=True).distinct()[:MOST_OFFERED])


def exclusions_of(run: Run) -> MarkQuerySet:
    """The current exclusions from the run's figures."""
    return Mark.objects.current().filter(run=run, kind=MarkKind.EXCLUDED)


def without_excluded(run: Run, judgements: JudgementQuerySet) -> JudgementQuerySet:
    """The judgements without excluded ones. The query is unchanged if the run has no exclusions."""
    if not exclusions_of(run).exists():
        return judgements
    same = {"run_metric": OuterRef("run_metric"), "kind": MarkKind.EXCLUDED, "name": ""}
    excluded = Mark.objects.current().filter(**same)
    included = judgements.filter(~Exists(excluded.filter(response=OuterRef("response"))))
    if run.by_workers:
        return included
    return included.filter(~Exists(excluded.filter(response=OuterRef("other_response"))))


def excluded_by(run: Run) -> list[dict[str, Any]]:
    """The run's exclusions grouped by user and reason: `by`, `reason`, `judgements` (count)."""
    exclusions = exclusions_of(run).values_list("action__by__username", "action__reason")
    counted = exclusions.annotate(count=Count("*")).order_by(
        "-count", "action__reason", "action__by__username"
    )
    return [{"by": by, "reason": reason, "judgements": count} for by, reason, count in counted]


def exclusions_among(judgements: Iterable[Judgement]) -> dict[tuple[int, int], Mark]:
    """{(metric id, response id): exclusion} of the excluded judgements."""
    excluded = marks_of(judgements).filter(kind=MarkKind.EXCLUDED)
    return {(mark.run_metric_id, mark.response_id): mark for mark in excluded}
