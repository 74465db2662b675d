"""Pages of an invitation link: join with an existing account, or create one."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth import login
from django.db import IntegrityError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters

from evalsite.accounts.forms import JoinForm
from evalsite.accounts.invitations import NoInvitation, account_join, invitation_accept, invitation_find
from evalsite.accounts.models import Project, User

BACKEND = "django.contrib.auth.backends.ModelBackend"


@sensitive_post_parameters()
@never_cache
def join(request: HttpRequest, secret: str) -> HttpResponse:
    """Only a submitted form uses up the invitation: link previews send GET requests."""
    user = request.user if isinstance(request.user, User) else None
    try:
        invitation = invitation_find(secret=secret, user=user)
        if user and request.method == "POST":
            return _welcome(request, invitation_accept(secret=secret, user=user))
        form = None if user else JoinForm(request.POST or None)
        if form and request.method == "POST" and form.is_valid():
            return _new_account(request, secret, form)
    except NoInvitation:
        return render(request, "accounts/no_invitation.html", status=404)
    wrong = form is not None and form.is_bound
    context = {"invitation": invitation, "form": form, "next": request.path}
    return render(request, "accounts/join.html", context, status=422 if wrong else 200)


def _new_account(request: HttpRequest, secret: str, form: JoinForm) -> HttpResponse:
    given = form.cleaned_data
    try:
        user, project = account_join(
            secret=secret, username=given["username"], name=given["first_name"], password=given["password1"]
        )
    except IntegrityError:  # the name was taken meanwhile
        messages.error(request, _("This username is taken. Choose another one."))
        return redirect(request.path)
    login(request, user, backend=BACKEND)
    return _welcome(request, project)


def _welcome(request: HttpRequest, project: Project) -> HttpResponse:
    messages.success(request, _("Welcome to %(project)s.") % {"project": project.name})
    return redirect("project", project.slug)
