"""Signing in and out, the language, and the role that a local visitor tries on."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.views import LoginView, LogoutView
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import check_for_language
from django.views.decorators.http import require_POST

from evalsite import access
from evalsite.accounts.models import Role, User


class SignIn(LoginView):
    template_name = "accounts/sign_in.html"
    redirect_authenticated_user = True


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
            settings.LANGUAGE_COOKIE_NAME, language, max_age=365 * 86400, samesite="Lax", httponly=True
        )
        if isinstance(request.user, User):
            User.objects.filter(pk=request.user.pk).update(language=language)
    return answer


@require_POST
def view_as(request: HttpRequest) -> HttpResponse:
    """An administrator looks at the site as another role; an unknown or empty role ends that."""
    role = request.POST.get("role", "")
    if role in Role.values and role != Role.ADMIN:
        request.session[access.VIEW_AS] = role
    else:
        request.session.pop(access.VIEW_AS, None)
    return back(request)
