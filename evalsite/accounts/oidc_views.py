"""Redirects to and from the OpenID Connect provider."""

from __future__ import annotations

import logging

from django.contrib.auth import login
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache

from evalsite.accounts import oidc
from evalsite.accounts.invitation_views import BACKEND
from evalsite.accounts.oidc import Begun, SignInRefused

KEPT = "oidc"  # session key
log = logging.getLogger(__name__)


@never_cache
def leave(request: HttpRequest) -> HttpResponse:
    """Redirect to the provider; the values to verify on return are kept in the session."""
    if not oidc.is_on():
        raise Http404
    from evalsite.accounts import oidc_flow  # slow to import

    target = request.GET.get("next", "")
    safe = url_has_allowed_host_and_scheme(target, {request.get_host()}, require_https=request.is_secure())
    try:
        address, begun = oidc_flow.begin(
            callback=_callback(request), target=target if safe else reverse("home")
        )
    except SignInRefused as error:
        return _refused(request, error)
    request.session[KEPT] = oidc.as_kept(begun)
    return HttpResponseRedirect(address)


@never_cache
def come_back(request: HttpRequest) -> HttpResponse:
    """Sign in if the provider's response is valid. The session data is used only once."""
    if not oidc.is_on():
        raise Http404
    from evalsite.accounts import oidc_flow  # slow to import

    kept = request.session.pop(KEPT, None)
    try:
        if kept is None:
            raise SignInRefused("nothing was begun in this browser")
        begun = Begun(**kept)
        claims = oidc_flow.finish(callback=_callback(request), given=request.GET.dict(), begun=begun)
        user = oidc.user_of(claims)
    except SignInRefused as error:
        return _refused(request, error)
    login(request, user, backend=BACKEND)
    return HttpResponseRedirect(begun.next)


def _callback(request: HttpRequest) -> str:
    return request.build_absolute_uri(reverse("accounts:oidc_back"))


def _refused(request: HttpRequest, error: SignInRefused) -> HttpResponse:
    log.warning("Single sign-on failed: %s", error)
    return render(request, "accounts/sso_refused.html", status=403)
