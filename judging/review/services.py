"""What reviewers do to a judgement: they add to it."""

from __future__ import annotations

from django.db import transaction
from django.db.models import F

from evalsite.accounts.models import User
from evalsite.audit import Action, record
from judging.core.values import Outcome, Value
from judging.review.models import Override
from judging.runs.models import Judgement, Run
from judging.runs.plain import storable


@transaction.atomic
def override_add(*, judgement: Judgement, value: Value, reason: str, by: User) -> Override:
    """A value in place of the judgement's; the first one stays, and whoever shows figures of the run hears of it."""
    outcome = Outcome("scored", value)
    made = Override.objects.create(
        judgement=judgement,
        value=storable(outcome.value_json) or "",
        score=outcome.score,
        reason=storable(reason) or "",
        by=by,
    )
    run = judgement.run
    record(
        Action.OVERRIDE_ADDED,
        project=run.project,
        thing=judgement,
        name=run.name,
        by=by,
        run=run.pk,
        row=judgement.row.line,
        value=outcome.value_json,
        reason=made.reason,
    )
    Run.objects.filter(pk=judgement.run_id).update(revision=F("revision") + 1)
    return made
