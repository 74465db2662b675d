"""Middleware run before every view: tokens, local mode, language, one-time passwords, and the audit log's actor."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable

from django.conf import settings
from django.contrib.auth import login
from django.contrib.auth.models import AnonymousUser
from django.contrib.sessions.backends.db import SessionStore
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import translation
from django.utils.deprecation import MiddlewareMixin
from django.utils.translation import gettext as _
from django_htmx.http import HttpResponseClientRedirect

from evalsite import audit
from evalsite.accounts.models import User
from evalsite.accounts.services import BACKEND, local_administrator
from evalsite.accounts.tokens import token_find
from evalsite.api import is_api, takes_tokens
from evalsite.api.errors import error_response
from evalsite.storage.errors import StorageProblem, storage_problem
from evalsite.web.refusals import READING

PROXY_HEADERS = ("HTTP_FORWARDED", "HTTP_VIA")


class TokenMiddleware(MiddlewareMixin):
    """`Authorization: Bearer …` authenticates a program for one request as the token's user, at the addresses for
    programs only, where cookies never count: pages of other sites cannot use them, and no CSRF token is needed.
    """

    def process_request(self, request: HttpRequest) -> HttpResponse | None:
        if takes_tokens(request):
            _forget_session(request)
        scheme, _space, secret = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            return None
        if not takes_tokens(request):
            return _refused(
                request, _("Access tokens work only below /api/ and at /mcp and /metrics, not on pages.")
            )
        token = token_find(secret.strip())
        if token is None or token.user.must_change_password:
            return _refused(
                request, _("The token is invalid, revoked or expired. Create a new one on your account page.")
            )
        request.user = token.user
        request.token = token  # type: ignore[attr-defined]
        request._dont_enforce_csrf_checks = True  # type: ignore[attr-defined]  # as Django's test client does
        return None


def _forget_session(request: HttpRequest) -> None:
    request.COOKIES.pop(settings.SESSION_COOKIE_NAME, None)
    request.session = SessionStore()
    request.user = AnonymousUser()


def _refused(request: HttpRequest, text: str) -> HttpResponse:
    if is_api(request):
        return error_response(401, message=text)
    answer = HttpResponse(f"{text}\n", status=401, content_type="text/plain; charset=utf-8")
    answer["WWW-Authenticate"] = 'Bearer error="invalid_token"'
    return answer


class LocalOnlyMiddleware(MiddlewareMixin):
    """In local mode, which needs no sign-in, answer only requests from this machine.

    Rejects requests that came through a proxy, whose client is unknown, and requests made by other sites' pages;
    following a link from another site is allowed.
    """

    def process_request(self, request: HttpRequest) -> HttpResponse | None:
        if not settings.LOCAL_MODE:
            return None
        proxied = any(name in PROXY_HEADERS or name.startswith("HTTP_X_FORWARDED") for name in request.META)
        if proxied or _from_another_site(request):
            return render(request, "403_local.html", {"proxied": proxied}, status=403)
        return None


def _from_another_site(request: HttpRequest) -> bool:
    if request.headers.get("Sec-Fetch-Site", "none") in ("none", "same-origin"):
        return False
    followed_link = (
        request.method == "GET"
        and request.headers.get("Sec-Fetch-Mode") == "navigate"
        and request.headers.get("Sec-Fetch-Dest") == "document"
    )
    return not followed_link


class LocalVisitorMiddleware(MiddlewareMixin):
    """In local mode, sign in visitors from this machine as the local administrator.

    Requires that the server listens on a loopback address, the request comes from one, and the host name is in
    ALLOWED_HOSTS, which prevents DNS rebinding.
    """

    def process_request(self, request: HttpRequest) -> None:
        if takes_tokens(request):  # they ask for a token also in local mode
            return
        if settings.LOCAL_MODE and not request.user.is_authenticated and self._is_local(request):
            administrator = local_administrator()
            if administrator is not None:
                self._sign_in(request, administrator)

    @staticmethod
    def _sign_in(request: HttpRequest, administrator: User) -> None:
        """Sign in; on a full disk, where no session can be stored, for this request only, so that pages can be read."""
        try:
            login(request, administrator, backend=BACKEND)
        except DatabaseError as error:
            if storage_problem(error) is not StorageProblem.DISK_FULL or request.method not in READING:
                raise
            request.session = SessionStore()
            request.user = administrator

    @staticmethod
    def _is_local(request: HttpRequest) -> bool:
        request.get_host()  # raises DisallowedHost for other host names
        try:
            here = ipaddress.ip_address(request.META.get("REMOTE_ADDR", "")).is_loopback
        except ValueError:
            return False
        return (
            here
            and not request.path_info.startswith(
                ("/sign-in", "/sign-out", "/language", "/theme", "/healthz", "/readyz")
            )
            and not request.path.startswith(settings.STATIC_URL)
        )


class UserLanguageMiddleware(MiddlewareMixin):
    """The language chosen by the user takes precedence over the browser's."""

    def process_request(self, request: HttpRequest) -> None:
        user = request.user
        if isinstance(user, User) and user.language and not is_api(request):
            translation.activate(user.language)
            request.LANGUAGE_CODE = translation.get_language()


class OneTimePasswordMiddleware(MiddlewareMixin):
    """Users with a one-time password must set a new one before anything else."""

    OPEN = ("password", "sign_out", "language", "theme")

    def process_request(self, request: HttpRequest) -> HttpResponse | None:
        user = request.user
        if not isinstance(user, User) or not user.must_change_password:
            return None
        if request.path in {reverse(f"accounts:{name}") for name in self.OPEN}:
            return None
        target = reverse("accounts:password")
        return HttpResponseClientRedirect(target) if "HX-Request" in request.headers else redirect(target)


class AskedByMiddleware:
    """Attributes audit entries during a request to its user (audit.py)."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        def actor() -> tuple[object, str]:
            token = getattr(request, "token", None)
            return request.user, token.name if token else ""

        with audit.attributed_to(actor):
            return self.get_response(request)
