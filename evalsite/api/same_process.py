"""The API called from this process, without a connection: for the MCP view and tests.

The request passes all middleware, so tokens, limits and errors are those of any other request. It belongs to the
request during which it is made: no signals are sent, which would close that one's database connection.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Any

import httpx
from django.core.handlers.base import BaseHandler
from django.core.handlers.wsgi import WSGIRequest
from django.http import FileResponse

from evalsite.api.rate_limit import COUNTED

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse


def same_process(
    *, address: str = "127.0.0.1", script_name: str = "", counted: bool = False
) -> httpx.WSGITransport:
    """A transport for evalsite_client.Client. `address`: the client's, as the site would see it. `counted`: the
    requests are part of one that the token's limit has counted."""
    answer = _counted_answer if counted else wsgi_answer
    return httpx.WSGITransport(answer, script_name=script_name, remote_addr=address)


@cache
def _handler() -> BaseHandler:
    handler = BaseHandler()
    handler.load_middleware()
    return handler


def wsgi_answer(environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
    """The site as a WSGI application that sends no signals."""
    response = _handler().get_response(WSGIRequest(environ))
    start_response(f"{response.status_code} {response.reason_phrase}", list(response.items()))
    body = b"".join(response)
    if isinstance(response, FileResponse) and response.file_to_stream is not None:
        response.file_to_stream.close()  # closing the response would send a signal
    return [body]


def _counted_answer(environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
    return wsgi_answer(environ | {COUNTED: True}, start_response)
