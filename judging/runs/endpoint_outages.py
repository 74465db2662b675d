"""A run's endpoints that are down, and the one that must be fixed before the run can continue."""

from __future__ import annotations

from dataclasses import dataclass

from django.urls import reverse
from django.utils.translation import gettext as _

from judging.core.judges.errors import MAYBE_SETTING_CODES
from judging.core.metric_definition import JudgeModel, MetricDefinition
from judging.endpoints import limiter
from judging.endpoints.limiter import endpoint_key
from judging.endpoints.models import Endpoint
from judging.messages import why_down
from judging.runs.candidates import asked_of
from judging.runs.models import Reading, Run, RunState
from judging.runs.stopping import stopped_by_endpoint

# Errors about settings that are frozen in the run: editing the endpoint does not fix them.
FROZEN_CODES = frozenset(
    {"bad_url", "unknown_model", "not_found", "redirected", "endpoint_moved"} | MAYBE_SETTING_CODES
)


@dataclass(frozen=True, slots=True)
class EndpointOutage:
    """An endpoint that is down: for how many seconds, and seconds until the next probe. `address`: its page, if any."""

    name: str
    seconds: float
    probe_in: float
    why: str
    address: str


def down_endpoints(run: Run) -> list[EndpointOutage]:
    """Endpoints that a running run is waiting for."""
    if run.state != RunState.RUNNING:
        return []
    judges = _called_by(run)
    names = {endpoint_key(judge): (judge.url, "") for judge in judges}
    ids = [judge.endpoint for judge in judges if judge.endpoint]
    for pk, name in Endpoint.objects.filter(pk__in=ids).values_list("pk", "name"):
        names[f"{limiter.KEY}{pk}"] = name, reverse("endpoints:endpoint", args=(run.project.slug, pk))
    if not names:
        return []
    return [
        EndpointOutage(
            names[key][0], seen.down_for, seen.probe_in, why_down(seen.problem, seen.detail), names[key][1]
        )
        for key, seen in limiter.read_status(names).items()
        if seen.down_for is not None
    ]


def _called_by(run: Run) -> list[JudgeModel]:
    """All models that the run may call: judges (including those of re-judging with other versions) and candidates."""
    again = Reading.objects.filter(run_metric__run=run, asks=True)
    texts = [one.definition for one in run.metrics.all()] + list(again.values_list("definition", flat=True))
    judges = [judge for text in texts for judge in MetricDefinition.from_json(text).judges]
    return judges + [one.model.asked for one in asked_of(run)]


@dataclass(frozen=True, slots=True)
class EndpointToFix:
    """The endpoint that paused a run. `frozen`: the faulty setting is frozen in the run."""

    name: str
    address: str
    frozen: bool


def endpoint_to_fix(run: Run) -> EndpointToFix | None:
    """The endpoint that must be fixed; None unless the run was paused by an endpoint problem."""
    if not stopped_by_endpoint(run):
        return None
    endpoints = Endpoint.objects.filter(project=run.project_id)
    found = next((one for one in endpoints if run.problem_detail.startswith(one.name)), None)
    slug, frozen = run.project.slug, run.problem in FROZEN_CODES
    if found is None:
        return EndpointToFix(str(_("Endpoints")), reverse("endpoints:list", args=(slug,)), frozen)
    return EndpointToFix(found.name, reverse("endpoints:endpoint", args=(slug, found.pk)), frozen)
