"""Which of a run's endpoints are down, for its page: since when, why, and when they are tried again; and which one
must be put right before it can go on."""

from __future__ import annotations

from dataclasses import dataclass

from django.urls import reverse
from django.utils.translation import gettext as _

from judging.core.judges.errors import MAYBE_SETTING_CODES
from judging.core.pipeline import JudgeModel, MetricDefinition
from judging.endpoints import limiter
from judging.endpoints.limiter import endpoint_key
from judging.endpoints.models import Endpoint
from judging.messages import why_down
from judging.runs.inferring import asked_of
from judging.runs.models import Reading, Run, RunState
from judging.runs.services import in_trouble

# A run froze what these are about: correcting the endpoint does not reach it.
FROZEN_CODES = frozenset(
    {"bad_url", "unknown_model", "not_found", "redirected", "endpoint_moved"} | MAYBE_SETTING_CODES
)


@dataclass(frozen=True, slots=True)
class EndpointOutage:
    """An endpoint that nobody asks for now: for how many seconds it has been so, and in how many it is tried. `why` is
    a sentence; `address` is that of its page, if it has one."""

    name: str
    seconds: float
    try_in: float
    why: str
    address: str


def down_endpoints(run: Run) -> list[EndpointOutage]:
    """Those that keep a running run waiting."""
    if run.state != RunState.RUNNING:
        return []
    judges = _asked_by(run)
    names = {endpoint_key(judge): (judge.url, "") for judge in judges}
    ids = [judge.endpoint for judge in judges if judge.endpoint]
    for pk, name in Endpoint.objects.filter(pk__in=ids).values_list("pk", "name"):
        names[f"endpoint {pk}"] = name, reverse("endpoints:endpoint", args=(run.project.slug, pk))
    if not names:
        return []
    found = []
    for key, seen in limiter.read_status(names).items():
        if seen.down_for is not None:
            (name, page), why = names[key], why_down(seen.problem, seen.detail)
            found.append(EndpointOutage(name, seen.down_for, seen.try_in, why, page))
    return found


def _asked_by(run: Run) -> list[JudgeModel]:
    """Everybody whom the run may ask: judge models, of a later version of a metric too, and candidates."""
    again = Reading.objects.filter(run_metric__run=run, asks=True)
    texts = [*run.metrics.values_list("definition", flat=True), *again.values_list("definition", flat=True)]
    judges = [judge for text in texts for judge in MetricDefinition.from_json(text).judges]
    return judges + [one.model.asked for one in asked_of(run)]


@dataclass(frozen=True, slots=True)
class EndpointToFix:
    """An endpoint that keeps a run paused. `frozen`: the run holds its own copy of what is wrong."""

    name: str
    address: str
    frozen: bool


def endpoint_to_fix(run: Run) -> EndpointToFix | None:
    """None where the run was paused by somebody, or not at all."""
    if not in_trouble(run):
        return None
    endpoints = Endpoint.objects.filter(project=run.project_id)
    found = next((one for one in endpoints if run.problem_detail.startswith(one.name)), None)
    slug, frozen = run.project.slug, run.problem in FROZEN_CODES
    if found is None:
        return EndpointToFix(str(_("Endpoints")), reverse("endpoints:list", args=(slug,)), frozen)
    return EndpointToFix(found.name, reverse("endpoints:endpoint", args=(slug, found.pk)), frozen)
