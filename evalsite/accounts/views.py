"""Signing in and out, language, colours and password; who belongs to a project."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.decorators import login_required
from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm, SetPasswordForm
from django.contrib.auth.views import LoginView, LogoutView
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import check_for_language
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST

from evalsite import access
from evalsite.accounts.forms import AddMemberForm, CreateMemberForm, ProjectForm, RolesForm
from evalsite.accounts.members import LastAdministrator, members_of, roles_set, user_create
from evalsite.accounts.models import Project, Role, User
from evalsite.accounts.services import local_administrator, project_create
from evalsite.context import THEME_COOKIE, THEMES

YEAR = 365 * 86400


class SignIn(LoginView):
    """Whoever signs in for the first time is sent to choose a password of their own."""

    template_name = "accounts/sign_in.html"
    redirect_authenticated_user = True

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        user = form.get_user()
        first_time = user.last_login is None and not user.is_superuser
        answer = super().form_valid(form)
        if not first_time:
            return answer
        messages.info(self.request, _("Welcome. Choose a password that only you know."))
        return redirect("accounts:password")

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        may_enter = settings.LOCAL_MODE and local_administrator() is not None
        return super().get_context_data(may_enter=may_enter, **kwargs)


class SignOut(LogoutView):
    """By POST only, as Django wants it."""


def back(request: HttpRequest) -> HttpResponse:
    """To the page that the form stood on, or to the first page."""
    target = request.POST.get("next", "")
    safe = url_has_allowed_host_and_scheme(target, {request.get_host()}, require_https=request.is_secure())
    return HttpResponseRedirect(target if safe else reverse("home"))


@require_POST
def choose_language(request: HttpRequest) -> HttpResponse:
    """Remember the language: with the user, and in a cookie for pages before signing in."""
    language = request.POST.get("language", "")
    answer = back(request)
    if language in dict(settings.LANGUAGES) and check_for_language(language):
        answer.set_cookie(
            settings.LANGUAGE_COOKIE_NAME, language, max_age=YEAR, samesite="Lax", httponly=True
        )
        if isinstance(request.user, User):
            User.objects.filter(pk=request.user.pk).update(language=language)
    return answer


@require_POST
def choose_theme(request: HttpRequest) -> HttpResponse:
    """Light, dark, or as the system has it; site.js does the same without a new page, so it may read the cookie."""
    theme = request.POST.get("theme", "")
    answer = back(request)
    if theme in THEMES:
        answer.set_cookie(THEME_COOKIE, theme, max_age=YEAR, samesite="Lax")
    else:
        answer.delete_cookie(THEME_COOKIE, samesite="Lax")
    return answer


@require_POST
def view_as(request: HttpRequest) -> HttpResponse:
    """The local administrator looks at the site as another role; an unknown or empty role ends that."""
    role = request.POST.get("role", "")
    if not access.may_view_as(request):
        raise PermissionDenied
    if role in Role.values and role != Role.ADMIN:
        request.session[access.VIEW_AS] = role
    else:
        request.session.pop(access.VIEW_AS, None)
    return back(request)


@sensitive_post_parameters()
@login_required
def password(request: HttpRequest) -> HttpResponse:
    """Change one's own password; who has none yet (the local administrator) sets one."""
    user = access.signed_in(request)
    kind = PasswordChangeForm if user.has_usable_password() else SetPasswordForm
    form = kind(user, request.POST or None)
    if request.method == "POST" and form.is_valid():
        form.save()
        update_session_auth_hash(request, user)
        messages.success(
            request,
            _("Your password is changed. You stay signed in here; other browsers must sign in again."),
        )
        return redirect("home")
    return render(request, "accounts/password.html", {"form": form})


@login_required
def create_project(request: HttpRequest) -> HttpResponse:
    """A project of one's own; superusers only, others are added to theirs."""
    user = access.signed_in(request)
    if not access.may_create_projects(request):
        raise PermissionDenied
    form = ProjectForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        project = project_create(name=form.cleaned_data["name"], owner=user)
        return redirect("project", project.slug)
    return render(request, "accounts/create_project.html", {"form": form}, status=422 if form.errors else 200)


@login_required
def members(request: HttpRequest, slug: str) -> HttpResponse:
    """Who belongs to a project."""
    project = access.get_project(request, slug, access.May.MANAGE)
    return _members_page(request, project)


@login_required
@require_POST
def add_member(request: HttpRequest, slug: str) -> HttpResponse:
    """Give roles to somebody who has an account."""
    project = access.get_project(request, slug, access.May.MANAGE)
    form = AddMemberForm(request.POST, prefix="add")
    if not form.is_valid():
        return _members_page(request, project, add=form)
    user = User.objects.get(username=form.cleaned_data["username"])
    held = next((member.roles for member in members_of(project) if member.user == user), ())
    roles_set(project=project, user=user, roles={*held, *form.cleaned_data["roles"]})
    messages.success(request, _("%(name)s belongs to the project now.") % {"name": user.username})
    return redirect("accounts:members", slug)


@sensitive_post_parameters()
@login_required
@require_POST
def create_member(request: HttpRequest, slug: str) -> HttpResponse:
    """Make an account. Its password is in this answer and nowhere else, so there is no redirect."""
    project = access.get_project(request, slug, access.May.MANAGE)
    form = CreateMemberForm(request.POST, prefix="new")
    if not form.is_valid():
        return _members_page(request, project, new=form)
    wanted = form.cleaned_data
    user, clear = user_create(
        username=wanted["username"], name=wanted["name"], project=project, roles=wanted["roles"]
    )
    answer = _members_page(request, project, created=user, one_time_password=clear)
    answer["Cache-Control"] = "no-store"
    return answer


@login_required
@require_POST
def set_roles(request: HttpRequest, slug: str, user_id: int) -> HttpResponse:
    """Exactly these roles; at least one."""
    project = access.get_project(request, slug, access.May.MANAGE)
    user = get_object_or_404(User.objects.distinct(), pk=user_id, memberships__project=project)
    form = RolesForm(request.POST)
    if form.is_valid():
        _change_roles(request, project, user, form.cleaned_data["roles"])
    else:
        messages.error(request, _("Nothing was changed: choose at least one role, or remove the person."))
    return redirect("accounts:members", slug)


@login_required
@require_POST
def remove_member(request: HttpRequest, slug: str, user_id: int) -> HttpResponse:
    """Out of the project; the account and what it made stay."""
    project = access.get_project(request, slug, access.May.MANAGE)
    user = get_object_or_404(User.objects.distinct(), pk=user_id, memberships__project=project)
    _change_roles(request, project, user, [])
    return redirect("accounts:members", slug)


def _change_roles(request: HttpRequest, project: Project, user: User, roles: list[str]) -> None:
    name = {"name": user.username}
    try:
        roles_set(project=project, user=user, roles=roles)
    except LastAdministrator:
        messages.error(
            request, _("Nothing was changed: %(name)s is the last administrator. Name another first.") % name
        )
        return
    if roles:
        messages.success(request, _("The roles of %(name)s are changed.") % name)
    else:
        messages.success(request, _("%(name)s no longer belongs to the project. The account stays.") % name)


def _members_page(request: HttpRequest, project: Project, **more: Any) -> HttpResponse:
    wrong = any(key in more for key in ("add", "new"))
    forms = {"add": AddMemberForm(prefix="add"), "new": CreateMemberForm(prefix="new")}
    context = {"members": members_of(project), **forms, **more}
    return render(request, "accounts/members.html", context, status=422 if wrong else 200)
