"""Error responses of the API: `{"error": {"code", "message", "fields"?}}`.

`code` is stable and English, `message` is in the language of Accept-Language.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from django import forms
from django.conf import settings
from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.http import HttpRequest, JsonResponse
from django.utils import translation
from django.utils.translation import gettext_lazy as _

from evalsite.api import answers_json
from evalsite.names import join_sentences

Fields = Mapping[str, Any]

SENTENCES: dict[int, tuple[str, Any]] = {
    400: ("bad_request", _("The request is invalid.")),
    401: ("unauthorized", _("Send a valid access token: “Authorization: Bearer …”.")),
    403: ("forbidden", _("The token has no permission for this.")),
    404: ("not_found", _("There is nothing at this address that the token may see.")),
    405: ("method_not_allowed", _("This address does not take this method.")),
    408: ("timeout", _("The request did not arrive in time. Send it again.")),
    409: ("conflict", _("The request contradicts the current state.")),
    411: ("length_required", _("Send a Content-Length header.")),
    413: ("too_large", _("The request is too large.")),
    415: ("unsupported_media_type", _("Send the body as application/json.")),
    422: ("invalid", _("Some values are invalid.")),
    429: ("too_many_requests", _("Too many requests. Try again later.")),
    500: ("server_error", _("The server failed. Try again.")),
    503: ("unavailable", _("The service is not available right now. Try again later.")),
}
"""Status → the code and sentence where nothing more is known."""
DISK_FULL = 507  # answered as 503: clients retry that


class ApiError(Exception):
    """An error response. `fields`: {name of a field: sentence, or places in a text}; `retry_after`: seconds."""

    def __init__(
        self,
        status: int,
        code: str = "",
        message: str = "",
        *,
        fields: Fields | None = None,
        retry_after: int = 0,
    ) -> None:
        super().__init__(status, code, message)
        self.status, self.code, self.message = status, code, message
        self.fields, self.retry_after = fields, retry_after

    def response(self) -> JsonResponse:
        """The error as a response."""
        return error_response(
            self.status, self.code, self.message, fields=self.fields, retry_after=self.retry_after
        )


def form_refused(form: forms.BaseForm) -> ApiError:
    """The errors of an invalid form, by field; those of the whole form are in the message only."""
    texts = {name: join_sentences(errors) for name, errors in form.errors.items()}
    fields = {name: text for name, text in texts.items() if name != NON_FIELD_ERRORS}
    return ApiError(422, message=join_sentences(texts.values()), fields=fields)


def error_response(
    status: int, code: str = "", message: str = "", *, fields: Fields | None = None, retry_after: int = 0
) -> JsonResponse:
    """An error in JSON; code and message are those of the status unless given."""
    if status == DISK_FULL:
        status, code = 503, code or "disk_full"
    usual_code, usual_message = SENTENCES.get(status, SENTENCES[500 if status >= 500 else 400])
    error: dict[str, Any] = {"code": code or usual_code, "message": message or str(usual_message)}
    if fields:
        error["fields"] = dict(fields)
    answer = JsonResponse({}, status=status)
    text = json.dumps({"error": error}, ensure_ascii=False, default=str)
    answer.content = text.encode("utf-8", "backslashreplace")  # half a surrogate pair becomes its JSON escape
    if retry_after:
        answer["Retry-After"] = str(retry_after)
    if status == 401:
        answer["WWW-Authenticate"] = "Bearer"
    return answer


def refused(error: ValidationError) -> JsonResponse:
    """A service's refusal: its sentences, by field if it has fields."""
    fields = (
        {name: join_sentences(texts) for name, texts in error.message_dict.items()}
        if hasattr(error, "error_dict")
        else {}
    )
    return error_response(422, "invalid", join_sentences(error.messages), fields=fields)


def is_for_programs(path: str) -> bool:
    """Whether programs ask at this path of the web server, which may begin with the base path."""
    return answers_json(path.removeprefix(settings.FORCE_SCRIPT_NAME or ""))


def server_refusal(path: str, status: int, languages: str) -> str | None:
    """The error by which the web server itself refuses a request, as text in one of the `languages` (Accept-Language);
    None where answers are pages."""
    if not is_for_programs(path):
        return None
    request = HttpRequest()
    request.META["HTTP_ACCEPT_LANGUAGE"] = languages
    with translation.override(translation.get_language_from_request(request)):
        return error_response(status).content.decode()
