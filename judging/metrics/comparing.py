"""Two versions of a metric side by side, in words."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET

from judging.core.metric_difference import Part, TextChange, as_text, difference
from judging.core.pipeline import MetricDefinition
from judging.endpoints.models import Endpoint
from judging.metrics import selectors
from judging.metrics.access import get_metric
from judging.metrics.models import Metric, MetricVersion

NAMES: dict[str, Promise | str] = {
    "name": gettext_lazy("Name"),
    "min_score": gettext_lazy("Lowest score"),
    "max_score": gettext_lazy("Highest score"),
    "undefined": gettext_lazy("A name that a row does not have"),
    "sandbox": gettext_lazy("Scripts run"),
    "jury": gettext_lazy("Several judges, or repeats, come to"),
    "quorum": gettext_lazy("Votes that must be readable"),
    "endpoint": gettext_lazy("Endpoint"),
    "url": gettext_lazy("Address"),
    "model": gettext_lazy("Model"),
    "api_key_env": gettext_lazy("Variable of the key"),
    "params": gettext_lazy("Generation parameters"),
    "parse": gettext_lazy("Read from the reply"),
    "repeats": gettext_lazy("Times asked"),
    "both_orders": gettext_lazy("Asked in both orders"),
    "system_prompt": gettext_lazy("System prompt"),
    "template": gettext_lazy("Prompt template"),
    "preprocess": "preprocess",
    "rules": gettext_lazy("Rule program"),
    "postprocess": "postprocess",
}


@dataclass(frozen=True, slots=True)
class PartShown:
    """A part of the difference with its names in the reader's language."""

    part: Part
    settings: list[tuple[str, str, str]]
    texts: list[tuple[str, TextChange]]


@login_required
@require_GET
def compare(request: HttpRequest, slug: str, metric: int) -> HttpResponse:
    """Versions `from` and `to`; by default the newest and the one before it."""
    found = get_metric(request, slug, metric)
    versions = list(selectors.versions_of(found))
    by_number = {str(one.number): one for one in versions}
    after = by_number.get(request.GET.get("to", ""), versions[0])
    earlier = versions[min(versions.index(after) + 1, len(versions) - 1)]
    before = by_number.get(request.GET.get("from", ""), earlier)
    context = {
        "metric": found,
        "versions": versions,
        "before": before,
        "after": after,
        "parts": parts_between(found, before, after),
    }
    return render(request, "metrics/compare.html", context)


def parts_between(metric: Metric, before: MetricVersion, after: MetricVersion) -> list[PartShown]:
    """What differs between two versions."""
    definitions = [MetricDefinition.from_json(one.definition) for one in (before, after)]
    return parts_of_definitions(metric.project_id, *definitions)


def parts_of_definitions(project: int, before: MetricDefinition, after: MetricDefinition) -> list[PartShown]:
    """What differs between two definitions of a project's metric."""
    endpoints = dict(Endpoint.objects.filter(project=project).values_list("pk", "name"))
    return [_shown(part, endpoints) for part in difference(before, after)]


def _shown(part: Part, endpoints: dict[int, str]) -> PartShown:
    def text(name: str, value: object) -> str:
        return endpoints.get(value, "") if name == "endpoint" and isinstance(value, int) else as_text(value)

    settings = [
        (str(NAMES[one.name]), text(one.name, one.before), text(one.name, one.after)) for one in part.settings
    ]
    return PartShown(part, settings, [(str(NAMES[one.name]), one) for one in part.texts])
