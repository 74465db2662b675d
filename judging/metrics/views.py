"""Pages about metrics: the list, a metric's versions and what changed between them, the reference pages of docs/."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET, require_POST

from evalsite import access
from evalsite.access import May, signed_in
from judging.core.metric_diff import Part, TextChange, as_text, difference
from judging.core.pipeline import MetricDefinition
from judging.markdown import html_of
from judging.metrics import selectors, services
from judging.metrics.access import get_metric, get_metric_version
from judging.metrics.models import Endpoint, Metric, MetricVersion
from judging.rule_messages import spoken

FIELD_NAMES: dict[str, Promise | str] = {
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
REFERENCE_PAGES = {
    name: {"en": f"{name}.md", "zh": f"{name}.zh.md"} for name in ("rules", "prompts", "metrics-file")
}


@login_required
@require_GET
def metrics(request: HttpRequest, slug: str) -> HttpResponse:
    """The project's metrics, or those that were archived."""
    project = access.get_project(request, slug, May.METRICS)
    archived = request.GET.get("archived") == "1"
    context = {"lines": selectors.metrics_of(project, archived=archived), "archived": archived}
    return render(request, "metrics/list.html", context)


@login_required
@require_POST
def copy(request: HttpRequest, slug: str, metric: int) -> HttpResponse:
    """A metric of its own that begins like this one."""
    made = services.metric_copy(metric=get_metric(request, slug, metric), user=signed_in(request))
    messages.success(request, _("This is the copy, “%(name)s”.") % {"name": made.name})
    return redirect("metrics:edit", slug, made.pk)


@login_required
@require_POST
def archive(request: HttpRequest, slug: str, metric: int) -> HttpResponse:
    """Out of the list; nothing is deleted."""
    found = get_metric(request, slug, metric)
    services.metric_archive(metric=found)
    text = _(
        "“%(name)s” is archived. Nothing was deleted; runs keep it. It can be restored from the archive."
    )
    messages.success(request, text % {"name": found.name})
    return redirect("metrics:list", slug)


@login_required
@require_POST
def restore(request: HttpRequest, slug: str, metric: int) -> HttpResponse:
    """Back into the list."""
    found = get_metric(request, slug, metric)
    services.metric_restore(metric=found)
    messages.success(request, _("“%(name)s” is back in the list.") % {"name": found.name})
    return redirect("metrics:edit", slug, found.pk)


# --- versions --------------------------------------------------------------------------------------------------


@login_required
@require_GET
def versions(request: HttpRequest, slug: str, metric: int) -> HttpResponse:
    """All versions, newest first."""
    found = get_metric(request, slug, metric)
    context = {"metric": found, "versions": selectors.versions_of(found)}
    return render(request, "metrics/versions.html", context)


@login_required
@require_GET
def version(request: HttpRequest, slug: str, metric: int, number: int) -> HttpResponse:
    """One version as it was saved."""
    found = get_metric_version(request, slug, metric, number)
    definition = MetricDefinition.from_json(found.definition)
    names = dict(Endpoint.objects.filter(project=found.metric.project).values_list("pk", "name"))
    context = {
        "metric": found.metric,
        "version": found,
        "newest": selectors.newest_version(found.metric),
        "definition": definition,
        "judges": [(judge, names.get(judge.endpoint or 0, "")) for judge in definition.judges],
    }
    return render(request, "metrics/version.html", context)


@login_required
@require_POST
def restore_version(request: HttpRequest, slug: str, metric: int, number: int) -> HttpResponse:
    """An old version again, as a new one."""
    found = get_metric_version(request, slug, metric, number)
    made = services.metric_restore_version(version=found, user=signed_in(request))
    sentence = _("Version %(new)s is version %(old)s again.")
    messages.success(request, sentence % {"new": made.number, "old": found.number})
    return redirect("metrics:edit", slug, found.metric_id)


@dataclass(frozen=True, slots=True)
class PartView:
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


def parts_between(metric: Metric, before: MetricVersion, after: MetricVersion) -> list[PartView]:
    """What differs between two versions."""
    endpoints = dict(Endpoint.objects.filter(project=metric.project_id).values_list("pk", "name"))
    definitions = [MetricDefinition.from_json(one.definition) for one in (before, after)]
    return [_part_view(part, endpoints) for part in difference(*definitions)]


def _part_view(part: Part, endpoints: dict[int, str]) -> PartView:
    def text(name: str, value: object) -> str:
        return endpoints.get(value, "") if name == "endpoint" and isinstance(value, int) else as_text(value)

    settings = [
        (str(FIELD_NAMES[one.name]), text(one.name, one.before), text(one.name, one.after))
        for one in part.settings
    ]
    return PartView(part, settings, [(str(FIELD_NAMES[one.name]), one) for one in part.texts])


@login_required
@require_GET
def reference(request: HttpRequest, slug: str, page: str) -> HttpResponse:
    """A page in the reader's language, or `in` another; links between the pages stay in the app."""
    access.get_project(request, slug, May.METRICS)
    if page not in REFERENCE_PAGES:
        raise Http404
    wanted = request.GET.get("in", "")
    name = REFERENCE_PAGES[page].get(wanted) or REFERENCE_PAGES[page][spoken()]
    title, _newline, text = (settings.BASE_DIR / "docs" / name).read_text(encoding="utf-8").partition("\n")
    for other, files in REFERENCE_PAGES.items():
        address = "" if other == page else reverse("metrics:reference", args=[slug, other])
        for language, file in files.items():
            text = text.replace(f"]({file})", f"]({address}?in={language})")
    context = {"title": title.removeprefix("# "), "html": html_of(text)}
    return render(request, "metrics/reference.html", context)
