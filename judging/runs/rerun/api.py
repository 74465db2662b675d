"""Judging again, as the API starts it."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext as _
from ninja import Field, Router, Schema

from evalsite import access
from evalsite.access import May
from evalsite.api.errors import ApiError
from evalsite.api.lists import Id
from judging.filters.addresses import filters_in
from judging.metrics.models import MetricVersion
from judging.records.access import get_run
from judging.records.models import Run
from judging.runs.api import Done, done
from judging.runs.rerun.rejudge import other_versions, run_rejudge
from judging.runs.rerun.rerun_batches import rejudge_begin, too_many_at_once
from judging.runs.rerun.selection import Selection

router = Router()


class JudgeAgainIn(Schema):
    """`judgement`: only this one. `version`: the number of a version of the only selected metric to judge with."""

    judgement: int | None = Field(None, ge=0, lt=2**63)
    version: int | None = Field(None, ge=1, lt=2**31)


@router.post("projects/{slug}/runs/{run}/judge-again", response=Done, summary="Judge again")
def judge_again(request: HttpRequest, slug: str, run: Id, body: JudgeAgainIn) -> dict[str, Any]:
    """New attempts for the judgements that match the list's filters in the query, all without any; earlier ones stay.
    `judgements` is null where there are so many that a worker selects them. `changed` is false while the run goes
    on."""
    row, user = get_run(request, slug, run, May.RUN), access.signed_in(request)
    selection = Selection(filters_in(request, row), body.judgement)
    version = _version(row, selection, body.version) if body.version else None
    if too_many_at_once(row, selection):
        action = rejudge_begin(run=row, selection=selection, user=user, version=version)
        return done(row, action is not None)
    judgements = run_rejudge(run=row, selection=selection, user=user, version=version)
    return done(row, judgements > 0) | {"judgements": judgements}


def _version(run: Run, selection: Selection, number: int) -> MetricVersion:
    metrics = selection.metrics(run)
    versions = other_versions(metrics[0]) if len(metrics) == 1 else []
    version = next((version for version in versions if version.number == number), None)
    if version is None:
        text = _("This metric version can't be used here. Select another one.")
        raise ApiError(422, message=text, fields={"version": text})
    return version
