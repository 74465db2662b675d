"""Two small doors before every view: the local visitor, and the user's language."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable

from django.conf import settings
from django.contrib.auth import login
from django.http import HttpRequest, HttpResponse
from django.utils import translation

from evalsite.accounts.models import User
from evalsite.accounts.services import local_administrator

Handler = Callable[[HttpRequest], HttpResponse]


class LocalVisitorMiddleware:
    """In local mode, sign the visitor of this machine in as the sample's administrator.

    Only where the server listens on a loopback address, the request comes from one, and the host name is one of
    this machine's (ALLOWED_HOSTS; that keeps other sites' pages from rebinding a name to this address).
    """

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if settings.LOCAL_MODE and not request.user.is_authenticated and self._is_local(request):
            administrator = local_administrator()
            if administrator is not None:
                login(request, administrator, backend="django.contrib.auth.backends.ModelBackend")
        return self.get_response(request)

    @staticmethod
    def _is_local(request: HttpRequest) -> bool:
        request.get_host()  # raises DisallowedHost for a foreign name
        try:
            here = ipaddress.ip_address(request.META.get("REMOTE_ADDR", "")).is_loopback
        except ValueError:
            return False
        return here and not request.path.startswith(
            ("/sign-in", "/sign-out", "/language", "/theme", f"/{settings.STATIC_URL.strip('/')}/")
        )


class UserLanguageMiddleware:
    """The language that a user chose goes before the browser's."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        user = request.user
        if isinstance(user, User) and user.language:
            translation.activate(user.language)
            request.LANGUAGE_CODE = translation.get_language()
        return self.get_response(request)
