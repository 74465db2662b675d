"""How a run's endpoints answer, and the one that must be fixed before the run can continue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.urls import reverse
from django.utils.translation import gettext as _

from judging.core.judges.errors import MAYBE_SETTING_CODES
from judging.core.judges.limits import FEWEST_TRIED
from judging.core.metric_definition import JudgeModel, MetricDefinition
from judging.endpoints import limiter
from judging.endpoints.limiter import Status, endpoint_key
from judging.endpoints.models import Endpoint
from judging.engine.candidates import generating_candidates
from judging.engine.stopping import stopped_by_endpoint
from judging.messages import in_short, why_down
from judging.records.models import Reading, Run, RunState

# Errors about settings that are frozen in the run: editing the endpoint does not fix them.
FROZEN_CODES = frozenset(
    {"bad_url", "unknown_model", "not_found", "redirected", "endpoint_moved"} | MAYBE_SETTING_CODES
)


SHOWN_FROM = 0.1  # failed part of the recent calls


@dataclass(frozen=True, slots=True)
class EndpointState:
    """How an endpoint answers: how many of the recent calls failed, of how many, and how (`short`: in a word or as a
    status; `why`: in a sentence). `down_for`: seconds, None if it answers. `address`: its page, if any."""

    name: str
    failed: int
    recent: int
    short: str
    why: str
    down_for: float | None
    address: str

    @property
    def is_down(self) -> bool:
        return self.down_for is not None


def endpoint_states(run: Run) -> list[EndpointState]:
    """All endpoints that a running run may call and whose state is known."""
    if run.state != RunState.RUNNING:
        return []
    judges = _called_by(run)
    names = {endpoint_key(judge): (judge.url, "") for judge in judges}
    ids = [judge.endpoint for judge in judges if judge.endpoint]
    for pk, name in Endpoint.objects.filter(pk__in=ids).values_list("pk", "name"):
        names[f"{limiter.KEY}{pk}"] = name, reverse("endpoints:endpoint", args=(run.project.slug, pk))
    return [_state(*names[key], status) for key, status in limiter.read_status(names).items()]


def _state(name: str, address: str, status: Status) -> EndpointState:
    problem = status.problem
    return EndpointState(
        name,
        status.failed,
        len(status.recent),
        in_short(problem.code, problem.status),
        why_down(problem.code, problem.detail),
        status.down_for,
        address,
    )


def failing(states: Sequence[EndpointState]) -> list[EndpointState]:
    """Those of which a considerable part of the recent calls failed."""
    return [
        state
        for state in states
        if state.is_down or state.failed > SHOWN_FROM * max(FEWEST_TRIED, state.recent)
    ]


def nothing_answers(states: Sequence[EndpointState]) -> bool:
    """Whether all endpoints are down, so that nothing can go on."""
    return bool(states) and all(state.is_down for state in states)


def _called_by(run: Run) -> list[JudgeModel]:
    """All models that the run may call: judges (including those of re-judging with other versions) and candidates."""
    again = Reading.objects.filter(run_metric__run=run, sends_requests=True)
    texts = [metric.definition for metric in run.metrics.all()] + list(
        again.values_list("definition", flat=True)
    )
    judges = [judge for text in texts for judge in MetricDefinition.from_json(text).judges]
    return judges + [candidate.model.connection_settings for candidate in generating_candidates(run)]


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
    endpoint = next(
        (endpoint for endpoint in endpoints if run.problem_detail.startswith(endpoint.name)), None
    )
    slug, frozen = run.project.slug, run.problem in FROZEN_CODES
    if endpoint is None:
        return EndpointToFix(str(_("Endpoints")), reverse("endpoints:list", args=(slug,)), frozen)
    return EndpointToFix(endpoint.name, reverse("endpoints:endpoint", args=(slug, endpoint.pk)), frozen)
