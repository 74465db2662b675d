"""Signing in and out, language, theme, and viewing the site as another role."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.auth.views import LoginView, LogoutView
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import check_for_language
from django.views.decorators.http import require_POST

from evalsite import access
from evalsite.accounts import oidc
from evalsite.accounts.models import Role, User
from evalsite.accounts.services import local_administrator
from evalsite.context import THEME_COOKIE, THEMES

YEAR = 365 * 86400


class SignIn(LoginView):
    """Creates a new session key; users with a one-time password must then change it (middleware)."""

    template_name = "accounts/sign_in.html"
    redirect_authenticated_user = True

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        may_enter = settings.LOCAL_MODE and local_administrator() is not None
        provider = settings.CONFIG.oidc_name if oidc.is_on() else ""
        return super().get_context_data(may_enter=may_enter, provider=provider, **kwargs)


class SignOut(LogoutView):
    """By POST only, as Django requires."""


def back(request: HttpRequest) -> HttpResponse:
    """Redirect to the page of the form, or to the home page."""
    target = request.POST.get("next", "")
    safe = url_has_allowed_host_and_scheme(target, {request.get_host()}, require_https=request.is_secure())
    return HttpResponseRedirect(target if safe else reverse("home"))


@require_POST
def choose_language(request: HttpRequest) -> HttpResponse:
    """Store the language in the user's account, and in a cookie for pages before sign-in."""
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
    """Light, dark or system theme; site.js does the same without a reload, so it may read the cookie."""
    theme = request.POST.get("theme", "")
    answer = back(request)
    if theme in THEMES:
        answer.set_cookie(THEME_COOKIE, theme, max_age=YEAR, samesite="Lax")
    else:
        answer.delete_cookie(THEME_COOKIE, samesite="Lax")
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
