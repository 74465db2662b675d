"""Change the quota of a study."""

from __future__ import annotations

from django.db import transaction

from evalsite.accounts.models import User
from evalsite.audit import Action
from judging.people.assignments import audit, locked
from judging.people.models import Evaluation
from judging.people.quota import promise_accept, promises_store


@transaction.atomic
def quota_change(*, evaluation: Evaluation, quota: int | None, by: User) -> bool:
    """Set how many items a rater gets at most; None: no limit. Raters keep the number that they were told until they
    agree to more. False if it is the same."""
    evaluation = locked(evaluation)
    if evaluation.quota == quota:
        return False
    evaluation.quota = quota
    evaluation.save(update_fields=["quota"])
    promises_store(evaluation)
    audit(Action.QUOTA_CHANGED, evaluation, by, quota=quota)
    return True


@transaction.atomic
def promise_agree(*, evaluation: Evaluation, user: User) -> bool:
    """A rater goes on to the number of items that is asked for now. False if it was not raised."""
    evaluation = locked(evaluation)
    if not promise_accept(evaluation=evaluation, user=user):
        return False
    audit(Action.QUOTA_RAISED, evaluation, user, items=evaluation.share)
    return True
