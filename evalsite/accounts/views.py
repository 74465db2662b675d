"""Signing in and out, joining by invitation, language, theme, another role's view, and the user's own account."""

from __future__ import annotations

import math
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login, update_session_auth_hash
from django.contrib.auth.decorators import login_required
from django.contrib.auth.views import LoginView
from django.core.exceptions import PermissionDenied
from django.db import IntegrityError
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import check_for_language
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST

from evalsite import access
from evalsite.accounts.forms import AccountForm, FirstPasswordForm, JoinForm, OwnPasswordForm, TokenForm
from evalsite.accounts.invitations import (
    ACCOUNTS_AN_HOUR,
    NoInvitation,
    Purpose,
    TooManyAccounts,
    account_join,
    invitation_accept,
    invitation_find,
    purpose_of,
)
from evalsite.accounts.login_throttle import client_address
from evalsite.accounts.models import ApiToken, Project, Role, User
from evalsite.accounts.services import BACKEND, account_edit, local_administrator, password_change
from evalsite.accounts.tokens import MOST, token_create, token_revoke, tokens_of
from evalsite.context import THEME_COOKIE, THEMES
from evalsite.mail.forms import MailForm
from evalsite.mail.limits import is_too_often
from evalsite.mail.outgoing import sends_mail
from evalsite.mail.resets import resets_by_mail
from evalsite.mail.services import address_remove, address_request, mail_of, switches_set

YEAR = 365 * 86400


class SignIn(LoginView):
    """Creates a new session key; users with a one-time password must then change it (middleware)."""

    template_name = "accounts/sign_in.html"
    redirect_authenticated_user = True

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        may_enter = settings.LOCAL_MODE and local_administrator() is not None
        provider = settings.CONFIG.oidc_name if settings.CONFIG.oidc_issuer else ""
        more = {"may_enter": may_enter, "provider": provider, "resets_by_mail": resets_by_mail()}
        return super().get_context_data(**more, **kwargs)


def back(request: HttpRequest) -> HttpResponse:
    """Redirect to the page of the form, or to the home page."""
    return HttpResponseRedirect(safe_target(request, request.POST.get("next", "")))


def safe_target(request: HttpRequest, target: str) -> str:
    """The target of a redirect if it is a page of this site, else the home page."""
    safe = url_has_allowed_host_and_scheme(target, {request.get_host()}, require_https=request.is_secure())
    return target if safe else reverse("home")


@sensitive_post_parameters()
def join(request: HttpRequest, secret: str) -> HttpResponse:
    """Only a submitted form uses up the invitation: link previews send GET requests."""
    user = request.user if isinstance(request.user, User) else None
    try:
        invitation = invitation_find(secret=secret, user=user)
        purpose = purpose_of(invitation)
        if user and request.method == "POST":
            return _welcome(request, *invitation_accept(secret=secret, user=user))
        by_provider = invitation.is_shared and bool(settings.CONFIG.oidc_issuer)
        form = None if user or by_provider else JoinForm(request.POST or None)
        if form and request.method == "POST" and form.is_valid():
            return _new_account(request, secret, form)
    except NoInvitation:
        return render(request, "accounts/no_invitation.html", status=404)
    except TooManyAccounts as error:
        return _too_many_accounts(request, error)
    wrong = form is not None and form.is_bound
    context = {"invitation": invitation, "purpose": purpose, "form": form, "next": request.path}
    context["provider"] = settings.CONFIG.oidc_name if by_provider else ""
    return render(request, "accounts/join.html", context, status=422 if wrong else 200)


def _new_account(request: HttpRequest, secret: str, form: JoinForm) -> HttpResponse:
    fields = form.cleaned_data
    try:
        user, project, purpose = account_join(
            secret=secret,
            username=fields["username"],
            name=fields["first_name"],
            password=fields["password1"],
            address=client_address(request),
        )
    except IntegrityError:  # the name was taken meanwhile
        messages.error(request, _("This username is taken. Choose another one."))
        return redirect(request.path)
    login(request, user, backend=BACKEND)
    return _welcome(request, project, purpose)


def _too_many_accounts(request: HttpRequest, error: TooManyAccounts) -> HttpResponse:
    seconds = max(1, math.ceil((error.until - timezone.now()).total_seconds()))
    context = {"minutes": math.ceil(seconds / 60), "most": ACCOUNTS_AN_HOUR}
    answer = render(request, "accounts/too_many_accounts.html", context, status=429)
    answer["Retry-After"] = str(seconds)
    return answer


def _welcome(request: HttpRequest, project: Project, purpose: Purpose | None) -> HttpResponse:
    name = purpose.name if purpose else project.name
    waits = purpose is not None and purpose.waits
    text = (
        _("Welcome to %(project)s. It appears here once it opens.") if waits else _("Welcome to %(project)s.")
    )
    messages.success(request, text % {"project": name})
    return redirect(purpose.address) if purpose else redirect("project", project.slug)


@require_POST
def choose_language(request: HttpRequest) -> HttpResponse:
    """Store the language in the user's account, and in a cookie for pages before sign-in."""
    language = request.POST.get("language", "")
    answer = back(request)
    if language in dict(settings.LANGUAGES) and check_for_language(language):
        answer.set_cookie(
            settings.LANGUAGE_COOKIE_NAME,
            language,
            max_age=YEAR,
            path=settings.LANGUAGE_COOKIE_PATH,
            samesite="Lax",
            httponly=True,
        )
        if isinstance(request.user, User):
            User.objects.filter(pk=request.user.pk).update(language=language)
    return answer


@require_POST
def choose_theme(request: HttpRequest) -> HttpResponse:
    """Light, dark or system theme; site.js does the same without a reload, so it may read the cookie."""
    theme = request.POST.get("theme", "")
    answer = back(request)
    if theme in THEMES:
        answer.set_cookie(
            THEME_COOKIE, theme, max_age=YEAR, path=settings.SESSION_COOKIE_PATH, samesite="Lax"
        )
    else:
        answer.delete_cookie(THEME_COOKIE, path=settings.SESSION_COOKIE_PATH, samesite="Lax")
    return answer


@require_POST
def view_as(request: HttpRequest) -> HttpResponse:
    """View the site as another role (local mode only); an unknown or empty role ends that."""
    role = request.POST.get("role", "")
    if not access.may_view_as(request):
        raise PermissionDenied
    if role in Role.values and role != Role.ADMIN:
        request.session[access.VIEW_AS] = role
    else:
        request.session.pop(access.VIEW_AS, None)
    return back(request)


@login_required
def account(request: HttpRequest) -> HttpResponse:
    """Name, language and tokens."""
    user = access.signed_in(request)
    form = AccountForm(
        request.POST or None, initial={"name": user.get_full_name(), "language": user.language}
    )
    if request.method == "POST" and form.is_valid():
        account_edit(user=user, name=form.cleaned_data["name"], language=form.cleaned_data["language"])
        messages.success(request, _("Saved."))
        return redirect("accounts:account")
    return _account_page(request, form=form)


@sensitive_post_parameters()
@login_required
def password(request: HttpRequest) -> HttpResponse:
    """Change the user's own password.

    The old one is not required if there is none (local administrator) or the user has a one-time password.
    """
    user = access.signed_in(request)
    asks_for_old = user.has_usable_password() and not user.must_change_password
    kind = OwnPasswordForm if asks_for_old else FirstPasswordForm
    form = kind(user, request.POST or None)
    if request.method == "POST" and form.is_valid():
        password_change(user=user, password=form.cleaned_data["new_password1"])
        update_session_auth_hash(request, user)
        messages.success(
            request,
            _("Password changed. You are still signed in here; other browsers need to sign in again."),
        )
        return redirect("home")
    context = {"form": form, "must": user.must_change_password}
    return render(request, "accounts/password.html", context, status=422 if form.errors else 200)


@login_required
@require_POST
def mail_settings(request: HttpRequest) -> HttpResponse:
    """The user's mail address, which a link must confirm, and what is sent to it."""
    user = access.signed_in(request)
    row = mail_of(user)
    form = MailForm(request.POST, instance=row)
    if not sends_mail() or not settings.CONFIG.site_url:
        raise Http404
    if not form.is_valid():
        return _account_page(request, mail_form=form)
    sent = form.cleaned_data
    address = sent.pop("email")
    if address and address != (row.pending or row.address) and is_too_often(request, user.username):
        form.add_error("email", _("Too many requests. Try again later."))
        return _account_page(request, mail_form=form)
    switches_set(user=user, **sent)
    if not address:
        address_remove(user=user)
    elif address not in (row.pending, row.address):
        address_request(user=user, address=address)
        messages.success(request, _("Saved. Open the link that was sent to the address."))
        return redirect("accounts:account")
    messages.success(request, _("Saved."))
    return redirect("accounts:account")


@login_required
@require_POST
def make_token(request: HttpRequest) -> HttpResponse:
    """Create a token. It is shown only in this response, so there is no redirect."""
    user = access.signed_in(request)
    form = TokenForm(request.POST, prefix="token", user=user)
    if form.is_valid() and tokens_of(user).count() >= MOST:
        form.add_error(
            None, _("You already have %(most)s tokens. Revoke one you no longer use.") % {"most": MOST}
        )
    if not form.is_valid():
        return _account_page(request, token_form=form)
    sent = form.cleaned_data
    token, secret = token_create(
        user=user,
        name=sent["name"],
        days=sent["days"] or None,
        scope=sent["scope"] or ApiToken.Scope.WRITE,
        project=sent["project"],
    )
    return _account_page(request, new_token=token, secret=secret)


@login_required
@require_POST
def revoke_token(request: HttpRequest, pk: int) -> HttpResponse:
    """Revoke a token."""
    token = get_object_or_404(ApiToken, pk=pk, user=access.signed_in(request))
    if token_revoke(token=token):
        messages.success(request, _("Token %(name)s revoked.") % {"name": token.name})
    return redirect("accounts:account")


def _account_page(request: HttpRequest, **more: Any) -> HttpResponse:
    user = access.signed_in(request)
    wrong = any(more[key].errors for key in ("form", "token_form", "mail_form") if key in more)
    by_mail = sends_mail() and settings.CONFIG.site_url
    context = {
        "form": AccountForm(initial={"name": user.get_full_name(), "language": user.language}),
        "token_form": TokenForm(prefix="token", user=user),
        "tokens": tokens_of(user),
        "mail_form": MailForm(instance=mail_of(user)) if by_mail else None,
        **more,
    }
    return render(request, "accounts/account.html", context, status=422 if wrong else 200)
