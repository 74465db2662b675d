"""`Idempotency-Key`: a request that is sent again gets the reply of the first one, and changes nothing.

The same key with another body is refused, and so is a repetition while the first request is still being answered.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from datetime import timedelta

from django.conf import settings
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone
from django.utils.translation import gettext as _

from evalsite.accounts.models import ApiToken
from evalsite.api.errors import ApiError
from evalsite.models import StoredReply

HEADER = "Idempotency-Key"
MOST_CHARACTERS = 200
STORED_FOR = timedelta(hours=24)
ANSWERED_WITHIN = timedelta(minutes=5)  # later, the process that answered was killed
RETRY_SECONDS = 2
Answer = Callable[[HttpRequest], HttpResponseBase]


def once(request: HttpRequest, token: ApiToken, answer: Answer) -> HttpResponseBase:
    """Answer a request with a key once; without a key, and for uploads, whose views call `once_for`, just answer it."""
    if request.method != "POST" or HEADER not in request.headers or _is_upload(request):
        return answer(request)
    length = int(request.META.get("CONTENT_LENGTH") or 0)
    if length > settings.DATA_UPLOAD_MAX_MEMORY_SIZE:  # refused unread
        return answer(request)
    return once_for(request, token, hashlib.sha256(request.body).hexdigest(), answer)


def _is_upload(request: HttpRequest) -> bool:
    return request.content_type == "multipart/form-data"


def once_for(request: HttpRequest, token: ApiToken, digest: str, answer: Answer) -> HttpResponseBase:
    """Answer, or return the stored reply to the same request. `digest`: of the body. Raises ApiError."""
    key = request.headers[HEADER]
    if not 0 < len(key) <= MOST_CHARACTERS:
        text = _("“Idempotency-Key” takes 1 to %(most)s characters.") % {"most": MOST_CHARACTERS}
        raise ApiError(422, "invalid", text, fields={HEADER: text})
    reply, is_new = _claim(token, request.get_full_path(), key, digest)
    if not is_new:
        return _again(reply, digest)
    try:
        response = answer(request)
    except BaseException:
        reply.delete()
        raise
    if response.status_code >= 500 or response.status_code == 429 or response.streaming:
        reply.delete()
    else:
        body = _stored_body(response) if isinstance(response, HttpResponse) else ""
        StoredReply.objects.filter(pk=reply.pk).update(status=response.status_code, body=body)
    return response


def shown_once(response: HttpResponse, *names: str) -> HttpResponse:
    """Mark members of a JSON reply as secrets, which a stored reply doesn't hold."""
    response.shown_once = names  # type: ignore[attr-defined]
    return response


def _stored_body(response: HttpResponse) -> str:
    names = getattr(response, "shown_once", ())
    if not names:
        return response.content.decode()
    return json.dumps(json.loads(response.content) | dict.fromkeys(names))


def _claim(token: ApiToken, address: str, key: str, digest: str) -> tuple[StoredReply, bool]:
    """The reply with this key, and whether it is new, so that this request has to be answered."""
    now = timezone.now()
    place = {"token": token, "address": address[:300], "key": key}
    stored = StoredReply.objects.filter(**place)
    stored.filter(created_at__lt=now - STORED_FOR).delete()
    stored.filter(status=None, created_at__lt=now - ANSWERED_WITHIN).delete()
    try:
        with transaction.atomic():
            return StoredReply.objects.create(**place, digest=digest), True
    except IntegrityError:
        reply = stored.first()
        if reply is None:  # deleted in between: the first request failed
            raise ApiError(409, "in_progress", retry_after=RETRY_SECONDS) from None
        return reply, False


def _again(reply: StoredReply, digest: str) -> HttpResponse:
    if reply.digest != digest:
        text = _("This key was used for a request with another body. Use a new key for a new request.")
        raise ApiError(409, "key_reused", text)
    if reply.status is None:
        text = _("The first request with this key is still being answered.")
        raise ApiError(409, "in_progress", text, retry_after=RETRY_SECONDS)
    answer = HttpResponse(reply.body, status=reply.status, content_type="application/json")
    answer["Idempotency-Replayed"] = "true"
    return answer


def delete_old() -> None:
    """Delete replies that are not repeated any more; called by the reconciler."""
    StoredReply.objects.filter(created_at__lt=timezone.now() - STORED_FOR).delete()
