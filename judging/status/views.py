"""Site status: a page for administrators, metrics for Prometheus."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from evalsite import access
from evalsite.storage import files
from evalsite.web.headers import part_wanted
from judging import sandboxes
from judging.messages import reason_sentence
from judging.records.models import JudgementState, RunState
from judging.status import selectors
from judging.status.prometheus import exposition


@login_required
def status(request: HttpRequest) -> HttpResponse:
    """The status page; it refreshes its middle part every five seconds."""
    if not access.manages_site(request):
        raise PermissionDenied
    workers = selectors.workers()
    context = {
        "workers": workers,
        "worker_alive": any(worker.alive for worker in workers),
        "queues": selectors.queues(),
        "under_way": selectors.runs_under_way(),
        "budget_stops": selectors.stopped_by_budget(),
        "files": files.description() if settings.CONFIG.files == "s3" else "",
        "endpoints": [(endpoint, reason_sentence(endpoint.last_code)) for endpoint in selectors.endpoints()],
        "sandbox": sandboxes.status(),
        "database": selectors.database(),
        "disk": selectors.disk(),
        "versions": list(selectors.versions()),
        "engine": settings.CONFIG.task_engine,
    }
    part = part_wanted(request)
    return render(request, "status/_facts.html" if part else "status/page.html", context)


@login_required
def components(request: HttpRequest) -> HttpResponse:
    """All UI components, in both themes."""
    if not access.manages_site(request):
        raise PermissionDenied
    icons = sorted(path.stem for path in (settings.BASE_DIR / "static" / "vendor" / "lucide").glob("*.svg"))
    context = {
        "icons": icons,
        "states": [*JudgementState.choices, *RunState.choices],
        "tones": ["", "accent", "warn", "bad", "info"],
        "kinds": ["info", "success", "warning", "error"],
        "numbers": range(1, 7),
        "levels": range(1, 6),
    }
    return render(request, "status/components.html", context)


def metrics(request: HttpRequest) -> HttpResponse:
    """Metrics for Prometheus, with an access token of a user who may open the status page."""
    if not access.manages_site(request):
        text = "Send an access token of a site administrator: Authorization: Bearer …\n"
        return HttpResponse(text, status=401, content_type="text/plain; charset=utf-8")
    return HttpResponse(exposition(), content_type="text/plain; version=0.0.4; charset=utf-8")
