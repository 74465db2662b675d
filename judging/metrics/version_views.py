"""A metric's history, copies, and taking it out of the list."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from evalsite.access import signed_in
from judging.core.pipeline import MetricDefinition
from judging.endpoints.models import Endpoint
from judging.metrics import selectors, services
from judging.metrics.access import get_metric, get_metric_version


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
