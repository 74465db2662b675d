"""`/mcp`: one JSON-RPC message a request. There are no sessions and no streams, which would hold a thread each."""

from __future__ import annotations

import json
from urllib.parse import urlsplit

from django.http import HttpRequest, HttpResponse

from evalsite import access
from evalsite.api.errors import error_response
from evalsite.api.evalsite_client import Client
from evalsite.api.same_process import same_process
from evalsite.mcp.messages import answer, encoded, parse_error


def mcp(request: HttpRequest) -> HttpResponse:
    """Answer a message with the permissions of the request's token."""
    host = request.get_host()  # refuses other hosts than the site's
    origin = request.headers.get("Origin")
    if origin is not None and urlsplit(origin).netloc != host:
        return error_response(403)
    if access.token_of(request) is None:
        return error_response(401)
    if request.method != "POST":
        response = error_response(405)
        response["Allow"] = "POST"
        return response
    try:
        message = json.loads(request.body)
    except ValueError:
        return _json(encoded(parse_error()), 400)
    reply = answer(message, lambda: _client(request))
    return HttpResponse(status=202) if reply is None else _json(encoded(reply))


def _client(request: HttpRequest) -> Client:
    """A client of the API with the request's own token, in this process; its requests were counted with this one. A
    refusal for being busy is passed on: to wait would hold the thread."""
    transport = same_process(
        address=request.META.get("REMOTE_ADDR", ""),
        script_name=request.META.get("SCRIPT_NAME", ""),
        counted=True,
    )
    secret = request.headers["Authorization"].partition(" ")[2].strip()
    return Client(f"{request.scheme}://{request.get_host()}", secret, patience=0, transport=transport)


def _json(body: bytes, status: int = 200) -> HttpResponse:
    return HttpResponse(body, status=status, content_type="application/json")
