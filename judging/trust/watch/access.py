"""Access to the watches of a project's judges. Views must load them through here."""

from __future__ import annotations

from django.http import HttpRequest
from django.shortcuts import get_object_or_404

from evalsite import access
from evalsite.access import May
from judging.trust.access import READ
from judging.trust.watch.models import Watch


def get_watch(request: HttpRequest, slug: str, pk: int, may: May = READ) -> Watch:
    """A watch of a licence of the project. Raises Http404 or PermissionDenied."""
    project = access.get_project(request, slug, may)
    watches = Watch.objects.select_related(
        "licence__metric_version__metric__project", "created_by", "ended_by"
    )
    return get_object_or_404(watches, licence__metric_version__metric__project=project, pk=pk)
