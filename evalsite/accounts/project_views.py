"""Projects: creating, renaming and archiving them, their members and invitations."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST

from evalsite import access, archiving
from evalsite.accounts.forms import AddMemberForm, CreateMemberForm, InvitationForm, ProjectForm, RolesForm
from evalsite.accounts.invitations import invitation_create, invitation_revoke, open_invitations
from evalsite.accounts.members import (
    LastAdministrator,
    NotYours,
    may_reset,
    members_of,
    password_reset,
    roles_add,
    roles_set,
    user_create,
)
from evalsite.accounts.models import Invitation, Project, User
from evalsite.accounts.services import project_create, project_rename
from evalsite.audit import Action
from evalsite.links import link_to_copy
from evalsite.mail.resets import resets_by_mail
from evalsite.mail.services import mail_invitation


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
    archiving.archive(project, Action.PROJECT_ARCHIVED, project)
    return redirect("accounts:project_settings", slug)


@login_required
@require_POST
def restore_project(request: HttpRequest, slug: str) -> HttpResponse:
    """Restore an archived project."""
    project = access.get_project(request, slug, access.May.MANAGE)
    if archiving.restore(project, Action.PROJECT_RESTORED, project):
        messages.success(request, _("Project restored."))
    return redirect("project", slug)


@login_required
def members(request: HttpRequest, slug: str) -> HttpResponse:
    """The members of a project."""
    project = access.get_project(request, slug, access.May.MANAGE)
    return _members_page(request, project)


@login_required
@require_POST
def add_member(request: HttpRequest, slug: str) -> HttpResponse:
    """Give roles to a user with an existing account."""
    project = access.get_project(request, slug, access.May.MANAGE)
    form = AddMemberForm(request.POST, prefix="add")
    if not form.is_valid():
        return _members_page(request, project, add=form)
    user = User.objects.get(username=form.cleaned_data["username"])
    roles_add(project=project, user=user, roles=form.cleaned_data["roles"])
    messages.success(request, _("%(name)s was added to the project.") % {"name": user.username})
    return redirect("accounts:members", slug)


@sensitive_post_parameters()
@login_required
@require_POST
def create_member(request: HttpRequest, slug: str) -> HttpResponse:
    """Create an account. Its password is shown only in this response, so there is no redirect."""
    project = access.get_project(request, slug, access.May.MANAGE)
    form = CreateMemberForm(request.POST, prefix="new")
    if not form.is_valid():
        return _members_page(request, project, new=form)
    wanted = form.cleaned_data
    user, clear = user_create(
        username=wanted["username"], name=wanted["name"], project=project, roles=wanted["roles"]
    )
    return _members_page(request, project, created=user, one_time_password=clear)


@login_required
@require_POST
def set_roles(request: HttpRequest, slug: str, user_id: int) -> HttpResponse:
    """Set a member's roles to exactly the selected ones; at least one."""
    project = access.get_project(request, slug, access.May.MANAGE)
    user = _member(project, user_id)
    form = RolesForm(request.POST)
    if form.is_valid():
        _change_roles(request, project, user, form.cleaned_data["roles"])
    else:
        messages.error(request, _("Nothing was changed. Choose at least one role, or remove the member."))
    return redirect("accounts:members", slug)


@login_required
@require_POST
def remove_member(request: HttpRequest, slug: str, user_id: int) -> HttpResponse:
    """Remove a member; the account and its work remain."""
    project = access.get_project(request, slug, access.May.MANAGE)
    user = _member(project, user_id)
    _change_roles(request, project, user, [])
    return redirect("accounts:members", slug) if user != request.user else redirect("home")


@login_required
@require_POST
def reset_password(request: HttpRequest, slug: str, user_id: int) -> HttpResponse:
    """Create a one-time password for a member; it is shown only in this response."""
    project = access.get_project(request, slug, access.May.MANAGE)
    user = _member(project, user_id)
    if user == request.user:
        return redirect("accounts:password")
    try:
        clear = password_reset(user=user, project=project, by=access.signed_in(request))
    except NotYours:
        problem = _(
            "The password was not reset, because this project did not create the account of %(name)s or other "
            "projects use it too. Ask a site administrator."
        )
        messages.error(request, problem % {"name": user.username})
        return redirect("accounts:members", slug)
    return _members_page(request, project, reset=user, one_time_password=clear)


@login_required
@require_POST
def invite(request: HttpRequest, slug: str) -> HttpResponse:
    """Create an invitation. Its link is shown only in this response, so there is no redirect."""
    project = access.get_project(request, slug, access.May.MANAGE)
    form = InvitationForm(request.POST, prefix="invite")
    if not form.is_valid():
        return _members_page(request, project, invite=form)
    invitation, secret = invitation_create(project=project, by=access.signed_in(request), **form.cleaned_data)
    link = link_to_copy(request, "accounts:join", secret)
    mail_invitation(invitation, secret)
    return _members_page(request, project, invited=invitation, link=link, mailed=resets_by_mail())


@login_required
@require_POST
def revoke_invitation(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Revoke an invitation's link."""
    project = access.get_project(request, slug, access.May.MANAGE)
    invitation = get_object_or_404(Invitation, pk=pk, project=project)
    if invitation_revoke(invitation=invitation):
        messages.success(request, _("Invitation revoked. The link no longer works."))
    else:
        messages.info(request, _("Nothing was changed. The invitation has already been used or revoked."))
    return redirect("accounts:members", slug)


def _member(project: Project, user_id: int) -> User:
    return get_object_or_404(User.objects.distinct(), pk=user_id, memberships__project=project)


def _change_roles(request: HttpRequest, project: Project, user: User, roles: list[str]) -> None:
    try:
        roles_set(project=project, user=user, roles=roles)
    except LastAdministrator:
        text = _("Nothing was changed. %(name)s is the last administrator; assign another one first.")
        messages.error(request, text % {"name": user.username})
        return
    updated = _("Roles of %(name)s updated.")
    removed = _("%(name)s was removed from the project. The account still exists.")
    messages.success(request, (updated if roles else removed) % {"name": user.username})


def _members_page(request: HttpRequest, project: Project, **more: Any) -> HttpResponse:
    forms = {
        "invite": InvitationForm(prefix="invite"),
        "add": AddMemberForm(prefix="add"),
        "new": CreateMemberForm(prefix="new"),
    }
    wrong = any(key in more for key in forms)
    members, by = members_of(project), access.signed_in(request)
    context = {
        "members": members,
        "resettable": [m.user for m in members if may_reset(by=by, user=m.user, project=project)],
        "invitations": open_invitations(project),
        **forms,
        **more,
    }
    return render(request, "accounts/members.html", context, status=422 if wrong else 200)
