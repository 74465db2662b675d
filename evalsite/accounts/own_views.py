"""The user's own account: name, language, password, tokens."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST

from evalsite import access
from evalsite.accounts.forms import AccountForm, FirstPasswordForm, OwnPasswordForm, TokenForm
from evalsite.accounts.models import ApiToken
from evalsite.accounts.services import account_edit, password_change
from evalsite.accounts.tokens import MOST, token_create, token_revoke, tokens_of


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
def make_token(request: HttpRequest) -> HttpResponse:
    """Create a token. It is shown only in this response, so there is no redirect."""
    user = access.signed_in(request)
    form = TokenForm(request.POST, prefix="token")
    if form.is_valid() and tokens_of(user).count() >= MOST:
        form.add_error(
            None, _("You already have %(most)s tokens. Revoke one you no longer use.") % {"most": MOST}
        )
    if not form.is_valid():
        return _account_page(request, token_form=form)
    made, secret = token_create(
        user=user, name=form.cleaned_data["name"], days=form.cleaned_data["days"] or None
    )
    answer = _account_page(request, made=made, secret=secret)
    answer["Cache-Control"] = "no-store"
    return answer


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
    wrong = any(more[key].errors for key in ("form", "token_form") if key in more)
    context = {
        "form": AccountForm(initial={"name": user.get_full_name(), "language": user.language}),
        "token_form": TokenForm(prefix="token"),
        "tokens": tokens_of(user),
        **more,
    }
    return render(request, "accounts/account.html", context, status=422 if wrong else 200)
