"""Endpoint pages: administrators edit endpoints, analysts view and test them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_POST

from evalsite import access, archiving
from evalsite.access import May, signed_in
from evalsite.accounts.drafts import form_draft
from evalsite.accounts.models import Project
from evalsite.audit import Action
from evalsite.names import join_sentences, labelled
from evalsite.web.headers import part_wanted
from evalsite.web.numbers import whole
from judging.core.judges.errors import JudgeError
from judging.core.judges.probe import Probe
from judging.core.judges.protocols import CHAT, PROTOCOLS
from judging.endpoints import connection_test, selectors, services
from judging.endpoints.access import get_endpoint
from judging.endpoints.forms import EndpointForm
from judging.endpoints.models import Endpoint
from judging.endpoints.presets import CHECKED, PRESETS
from judging.endpoints.prices import list_price

TESTED = "tested_endpoint"  # in the session: the newest successful test of unsaved values

secrets_unlogged = sensitive_post_parameters("key", "headers", "proxy")


@login_required
@require_GET
def endpoints(request: HttpRequest, slug: str) -> HttpResponse:
    """Endpoints and drafts, or archived endpoints."""
    project = access.get_project(request, slug, May.USE_ENDPOINTS)
    archived = request.GET.get("archived") == "1"
    rows = selectors.endpoints_of(project, archived=archived)
    drafts = selectors.endpoint_drafts(project).none() if archived else selectors.endpoint_drafts(project)
    return render(request, "endpoints/list.html", {"lines": rows, "drafts": drafts, "archived": archived})


@login_required
@require_GET
def endpoint(request: HttpRequest, slug: str, endpoint: int) -> HttpResponse:
    """One endpoint with the result of its last test, without its secrets."""
    row = get_endpoint(request, slug, endpoint, May.USE_ENDPOINTS)
    context = {
        **_tested(row),
        "protocol": PROTOCOLS[row.protocol].name,
        "final_address": final_address(row.url, row.protocol, row.model),
    }
    return render(request, "endpoints/endpoint.html", context)


def _tested(row: Endpoint) -> dict[str, Any]:
    return {
        "endpoint": row,
        "result": connection_test.last_result(row),
        "metrics": [line for find in selectors.metrics_using for line in find(row)],
    }


@secrets_unlogged
@login_required
def create(request: HttpRequest, slug: str) -> HttpResponse:
    return _edit(request, access.get_project(request, slug, May.MANAGE), None)


@secrets_unlogged
@login_required
def edit(request: HttpRequest, slug: str, endpoint: int) -> HttpResponse:
    row = get_endpoint(request, slug, endpoint, May.MANAGE)
    return _edit(request, row.project, row)


def _edit(request: HttpRequest, project: Project, endpoint: Endpoint | None) -> HttpResponse:
    """The form for an endpoint, or for a new one (None)."""
    draft = form_draft(request, project, "endpoint", str(endpoint.pk) if endpoint else "new")
    form = EndpointForm(request.POST or draft.data, endpoint=endpoint)
    if request.method == "POST" and form.is_valid():
        typed, testing = form.result(), "test" in request.POST
        try:
            if endpoint is None:
                services.endpoint_create(
                    project=project, endpoint=typed, user=signed_in(request), draft=testing
                )
            else:
                services.endpoint_edit(before=endpoint, endpoint=typed)
        except ValidationError as error:
            form.add_error(None, error)
        else:
            draft.delete()
            return _saved(request, project.slug, typed)
    if draft.data is not None:
        form.errors.clear()  # a draft is unfinished
    url = str(form["url"].value() or "")
    models = endpoint.probe.get("models", []) if endpoint else []
    protocol, model = _protocol_and_model(form)
    context = {
        "form": form,
        "draft": draft,
        "endpoint": endpoint,
        "url": url,
        "final_address": final_address(url, protocol, model),
        "price": list_price(url, model),
        "models": models,
        "presets": PRESETS,
        "checked": CHECKED,
    }
    return render(request, "endpoints/edit.html", context, status=422 if form.errors else 200)


def _saved(request: HttpRequest, slug: str, endpoint: Endpoint) -> HttpResponse:
    if "test" in request.POST:
        probe = connection_test.try_endpoint(endpoint)
        services.endpoint_remember_test(endpoint=endpoint, probe=probe)
    elif (tested := request.session.pop(TESTED, None)) and tested["of"] == connection_test.fingerprint(
        endpoint
    ):
        services.endpoint_remember_test(endpoint=endpoint, probe=Probe(**tested["probe"]))
    elif endpoint.draft:
        services.endpoint_publish(endpoint=endpoint)
        endpoint.draft = False
    saved = _("“%(name)s” saved as a draft.") if endpoint.draft else _("“%(name)s” saved.")
    return _changed(request, slug, endpoint, saved)


@login_required
@require_POST
def test(request: HttpRequest, slug: str, endpoint: int) -> HttpResponse:
    """Run the connection test."""
    row = get_endpoint(request, slug, endpoint, May.USE_ENDPOINTS)
    services.endpoint_remember_test(endpoint=row, probe=connection_test.try_endpoint(row))
    if not part_wanted(request):
        return redirect("endpoints:endpoint", slug, row.pk)
    return render(request, "endpoints/_tested.html", _tested(row))


@secrets_unlogged
@login_required
@require_POST
def try_typed(request: HttpRequest, slug: str) -> HttpResponse:
    """Test the form's unsaved values, or with `load` only list the server's models. A successful test counts for the
    endpoint once these values are saved; nothing else is stored."""
    project = access.get_project(request, slug, May.MANAGE)
    number = whole(request.POST.get("endpoint", ""))
    stored = get_endpoint(request, slug, number, May.MANAGE) if number is not None else None
    typed, load = request.POST.copy(), "load" in request.POST
    typed["name"] = typed.get("name") or "-"
    if load:
        typed["model"] = typed.get("model") or "-"  # the model ID does not matter for listing models
    form = EndpointForm(typed, endpoint=stored)
    if not form.is_valid():
        problems = [
            labelled(form[name].label, join_sentences(errors)) for name, errors in form.errors.items()
        ]
        return render(request, "endpoints/_tried.html", {"problems": problems})
    trial = form.result()
    trial.project = project
    probe = connection_test.try_endpoint(trial)
    trial.probe, trial.probed_at = asdict(probe), timezone.now()
    if probe.ok and not load:
        request.session[TESTED] = {"of": connection_test.fingerprint(trial), "probe": asdict(probe)}
    context = {
        "endpoint": trial,
        "result": connection_test.last_result(trial),
        "models": probe.models,
        "loaded": load and bool(probe.models),
    }
    return render(request, "endpoints/_tried.html", context)


@login_required
@require_GET
def address(request: HttpRequest, slug: str) -> HttpResponse:
    """Preview the URL that requests are sent to while the user types the address."""
    access.get_project(request, slug, May.MANAGE)
    url, model = request.GET.get("url", "")[:1000], request.GET.get("model", "")[:300]
    final = final_address(url, request.GET.get("protocol", ""), model)
    context = {"url": url, "final_address": final, "price": list_price(url, model)}
    return render(request, "endpoints/_address.html", context)


@login_required
@require_POST
def publish(request: HttpRequest, slug: str, endpoint: int) -> HttpResponse:
    """Make a draft available although its connection test failed."""
    row = get_endpoint(request, slug, endpoint, May.MANAGE)
    services.endpoint_publish(endpoint=row)
    return _changed(request, slug, row, _("“%(name)s” is now available."))


@login_required
@require_POST
def archive(request: HttpRequest, slug: str, endpoint: int) -> HttpResponse:
    """Hide the endpoint from the lists; nothing is deleted."""
    row = get_endpoint(request, slug, endpoint, May.MANAGE)
    archiving.archive(row, Action.ENDPOINT_ARCHIVED, row.project)
    text = _(
        "“%(name)s” archived. New metrics can't select it; existing ones still work. You can restore it."
    )
    return _changed(request, slug, row, text)


@login_required
@require_POST
def restore(request: HttpRequest, slug: str, endpoint: int) -> HttpResponse:
    """Show the endpoint in the lists again."""
    row = get_endpoint(request, slug, endpoint, May.MANAGE)
    archiving.restore(row, Action.ENDPOINT_RESTORED, row.project)
    return _changed(request, slug, row, _("“%(name)s” restored."))


def _changed(request: HttpRequest, slug: str, endpoint: Endpoint, text: str) -> HttpResponse:
    messages.success(request, text % {"name": endpoint.name})
    return redirect("endpoints:endpoint", slug, endpoint.pk)


def _protocol_and_model(form: EndpointForm) -> tuple[str, str]:
    return str(form["protocol"].value() or ""), str(form["model"].value() or "")


def final_address(url: str, protocol: str, model: str) -> str:
    """The URL that requests are sent to; '' for an invalid address."""
    speaks = PROTOCOLS.get(protocol, PROTOCOLS[CHAT])
    try:
        return speaks.url(url, {"model": model, "stream": True})
    except JudgeError:
        return ""
