"""Judges, as the API shows them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.http import HttpRequest
from ninja import Router, Schema

from evalsite import access
from evalsite.access import May
from evalsite.api.lists import Cursor, Limit, Page, cursor_of, text_at
from judging.trust.drill_pages.models import Drill
from judging.trust.judges import Judge, judges_of
from judging.trust.report_figures import licence_entry
from judging.trust.watch.results import watch_out

router = Router()


class AgreementOut(Schema):
    """The share of answers on which judge and people say the same, in the licence's test, with its interval."""

    rate: float | None
    low: float | None
    high: float | None


class JudgeRunOut(Schema):
    id: int
    name: str


class DrillOut(Schema):
    """A finished fire drill. `document`: as of `drill --json`; `run`: null once it was deleted."""

    id: int
    run: int | None
    dataset: str
    version: int
    rows: int
    seed: int
    finished_at: datetime
    document: dict[str, Any]


class WatchOut(Schema):
    """The watch of a judge that has not ended. `state`: learning, watching, paused or alarm; `problem`: why paused.
    `schedule`: five cron fields, empty for checks after runs; `due_at`: of the next one by schedule. `checks`: how many
    count since the baseline began; `last`: of the newest {number, at, share, agreement, shift, nearness, alarm}, null
    before the first. `sight`: {sentinels, by_itself, turned, found}, null while it learns."""

    id: int
    state: str
    problem: str
    sentinels: int
    schedule: str
    due_at: datetime | None
    ceiling_calls: int
    checks: int
    last: dict[str, Any] | None
    sight: dict[str, Any] | None


class JudgeOut(Schema):
    """A version of a metric with judge models. `licence`: as in the report's `licences`, with its `id`; null without
    one. `drill`: the newest that finished, null without one. `watch`: of that licence, null without one. `runs`: those
    that used the version, newest first."""

    metric: str
    metric_id: int
    version: int
    judges: list[str]
    agreement: AgreementOut | None
    watch: WatchOut | None
    licence: dict[str, Any] | None
    drill: DrillOut | None
    runs: list[JudgeRunOut]


@router.get("projects/{slug}/judges", response=Page[JudgeOut], summary="Judges and their licences")
def judges(request: HttpRequest, slug: str, limit: Limit = 100, cursor: Cursor = "") -> dict[str, Any]:
    """By metric, newest version first. `limit` counts metrics: a page holds all versions of each that have a judge
    model."""
    project = access.get_project(request, slug, May.READ_JUDGEMENTS)
    page, further = judges_of(project, text_at(cursor), limit)
    return {"items": [_out(judge) for judge in page], "next": cursor_of(further or None)}


def _out(judge: Judge) -> dict[str, Any]:
    metric, licence, agreement = judge.version.metric, judge.licence, judge.agreement
    return {
        "metric": metric.name,
        "metric_id": metric.pk,
        "version": judge.version.number,
        "judges": judge.names,
        "agreement": agreement and {"rate": agreement.rate, "low": agreement.low, "high": agreement.high},
        "licence": {"id": licence.pk, **licence_entry(metric.name, licence, licence.judge, judge.state)}
        if licence
        else None,
        "drill": judge.drill and _drill_out(judge.drill),
        "watch": watch_out(judge.watch) if judge.watch else None,
        "runs": [{"id": run.pk, "name": run.name} for run in judge.runs],
    }


def _drill_out(drill: Drill) -> dict[str, Any]:
    return {
        "id": drill.pk,
        "run": drill.run_id,
        "dataset": drill.dataset_name,
        "version": drill.dataset_version,
        "rows": drill.rows,
        "seed": drill.seed,
        "finished_at": drill.finished_at,
        "document": drill.document,
    }
