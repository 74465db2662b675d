"""Redirects to and from the OpenID Connect provider."""

from __future__ import annotations

import logging
from dataclasses import asdict

from django.conf import settings
from django.contrib.auth import login
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse

from evalsite.accounts.oidc import PendingSignIn, SignInRefused, user_of
from evalsite.accounts.services import BACKEND
from evalsite.accounts.views import safe_target

SESSION_KEY = "oidc"  # session key
log = logging.getLogger(__name__)


def redirect_to_provider(request: HttpRequest) -> HttpResponse:
    """Redirect to the provider; the values to verify on return are stored in the session."""
    if not settings.CONFIG.oidc_issuer:
        raise Http404
    from evalsite.accounts import oidc_flow  # slow to import

    target = safe_target(request, request.GET.get("next", ""))
    try:
        address, pending = oidc_flow.begin(callback=_callback(request), target=target)
    except SignInRefused as error:
        return _refused(request, error)
    request.session[SESSION_KEY] = asdict(pending)
    return HttpResponseRedirect(address)


def provider_callback(request: HttpRequest) -> HttpResponse:
    """Sign in if the provider's response is valid. The session data is used only once."""
    if not settings.CONFIG.oidc_issuer:
        raise Http404
    from evalsite.accounts import oidc_flow  # slow to import

    stored = request.session.pop(SESSION_KEY, None)
    try:
        if stored is None:
            raise SignInRefused("nothing was begun in this browser")
        pending = PendingSignIn(**stored)
        claims = oidc_flow.finish(callback=_callback(request), params=request.GET.dict(), pending=pending)
        user = user_of(claims)
    except SignInRefused as error:
        return _refused(request, error)
    login(request, user, backend=BACKEND)
    return HttpResponseRedirect(pending.next)


def _callback(request: HttpRequest) -> str:
    return request.build_absolute_uri(reverse("accounts:oidc_back"))


def _refused(request: HttpRequest, error: SignInRefused) -> HttpResponse:
    log.warning("Single sign-on failed: %s", error)
    return render(request, "accounts/sso_refused.html", status=403)
