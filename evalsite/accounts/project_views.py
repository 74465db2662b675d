"""Creating, renaming, archiving and restoring projects."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from evalsite import access
from evalsite.accounts.forms import ProjectForm
from evalsite.accounts.services import project_archive, project_create, project_rename, project_restore


@login_required
def create_project(request: HttpRequest) -> HttpResponse:
    """Create a project; superusers only, others are added to existing ones."""
    user = access.signed_in(request)
    if not access.manages_site(request):
        raise PermissionDenied
    form = ProjectForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        project = project_create(name=form.cleaned_data["name"], owner=user)
        return redirect("project", project.slug)
    return render(request, "accounts/create_project.html", {"form": form}, status=422 if form.errors else 200)


@login_required
def project_settings(request: HttpRequest, slug: str) -> HttpResponse:
    """Project settings: name, and archiving."""
    project = access.get_project(request, slug, access.May.MANAGE)
    form = ProjectForm(request.POST or None, initial={"name": project.name})
    if request.method == "POST" and form.is_valid():
        project_rename(project=project, name=form.cleaned_data["name"])
        messages.success(request, _("Saved."))
        return redirect("accounts:project_settings", slug)
    return render(
        request, "accounts/project_settings.html", {"form": form}, status=422 if form.errors else 200
    )


@login_required
@require_POST
def archive_project(request: HttpRequest, slug: str) -> HttpResponse:
    """Archive a project; the next page offers to restore it."""
    project = access.get_project(request, slug, access.May.MANAGE)
    project_archive(project=project)
    return redirect("accounts:project_settings", slug)


@login_required
@require_POST
def restore_project(request: HttpRequest, slug: str) -> HttpResponse:
    """Restore an archived project."""
    project = access.get_project(request, slug, access.May.MANAGE)
    if project_restore(project=project):
        messages.success(request, _("Project restored."))
    return redirect("project", slug)
