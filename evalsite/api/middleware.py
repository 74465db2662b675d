"""Middleware of the API: every answer below /api/ is JSON, requests are counted, repeated ones get the first reply."""

from __future__ import annotations

import re
from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils import translation

from evalsite import access
from evalsite.accounts.models import ApiToken
from evalsite.api import PREFIX, is_api, replies
from evalsite.api.errors import ApiError, error_response
from evalsite.api.rate_limit import COUNTED, seconds_to_wait

GetResponse = Callable[[HttpRequest], HttpResponseBase]
JSON = "application/json"
BODIES = (JSON, "application/yaml", "text/yaml", "multipart/form-data")
KEPT_HEADERS = ("Allow", "Retry-After", "WWW-Authenticate")
READING = ("GET", "HEAD", "OPTIONS")
READING_POSTS = re.compile(r"/metrics/[0-9]+/preview\Z")  # they store nothing


class JsonErrorsMiddleware:
    """Turns every error of the API into JSON, also those of Django and of other middleware. No cookie counts there,
    so no form token is needed."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if not is_api(request):
            return self.get_response(request)
        request._dont_enforce_csrf_checks = True  # type: ignore[attr-defined]  # as Django's test client does
        translation.activate(translation.get_language_from_request(request))
        response = self.get_response(request)
        if response.status_code < 400 or response.get("Content-Type", "").startswith(JSON):
            return response
        return as_json(response)


def as_json(response: HttpResponseBase) -> HttpResponseBase:
    """An error response as JSON, with its headers for clients."""
    answer = error_response(response.status_code)
    for name in KEPT_HEADERS:
        if name in response:
            answer[name] = response[name]
    return answer


class ApiRequestsMiddleware:
    """Refuses what a token may not do at all or too often, and answers repeated requests with the stored reply. Comes
    after the token was read."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        token = access.token_of(request)
        if token is None or not is_api(request):
            return self.get_response(request)
        try:
            refuse(request, token)
            return replies.once(request, token, self.get_response)
        except ApiError as error:
            return error.response()


def refuse(request: HttpRequest, token: ApiToken) -> None:
    """Raise ApiError for a method beyond the token's scope, a body of another type, or too many requests."""
    if "\0" in request.path_info or "%00" in request.META.get("QUERY_STRING", ""):
        raise ApiError(400)  # PostgreSQL takes no NUL character
    if COUNTED not in request.META:
        wait = seconds_to_wait(token, settings.CONFIG.api_requests_per_minute)
        if wait:
            raise ApiError(429, retry_after=wait)
    if request.method in READING or not request.path_info.startswith(PREFIX):
        return  # every call of the MCP server is a POST; it checks the scope itself
    if token.scope != ApiToken.Scope.WRITE and not READING_POSTS.search(request.path_info):
        raise ApiError(403, "read_only", translation.gettext("This token may only read."))
    if request.META.get("CONTENT_LENGTH") not in ("", "0", None) and request.content_type not in BODIES:
        raise ApiError(415)
