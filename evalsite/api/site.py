"""The API: its addresses, their description, and the page that explains them."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from django.core.exceptions import PermissionDenied, ValidationError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import URLPattern, URLResolver, path
from django.utils.translation import gettext as _
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError
from ninja.errors import ValidationError as SchemaError
from ninja.parser import Parser
from ninja.security import HttpBearer

from evalsite import __version__, access
from evalsite.accounts.models import ApiToken
from evalsite.api import modules
from evalsite.api.errors import ApiError, error_response, refused

CLIENT = Path(__file__).with_name("evalsite_client.py")
DESCRIPTION = (
    "Send `Authorization: Bearer TOKEN` with each request. Lists take `limit` and `cursor`; every POST takes an "
    '`Idempotency-Key`. Errors are `{"error": {"code", "message", "fields"}}`.'
)


ERROR: dict[str, Any] = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message"],
            "properties": {
                "code": {"type": "string"},
                "message": {"type": "string"},
                "fields": {"type": "object"},
            },
        }
    },
}


class Token(HttpBearer):
    """An access token. It was read by accounts.middleware.TokenMiddleware, which sets the user."""

    def authenticate(self, request: HttpRequest, token: str) -> ApiToken | None:
        return access.token_of(request)


class BodyParser(Parser):
    """Refuses texts that a database can't store."""

    def parse_body(self, request: HttpRequest) -> Any:
        body = super().parse_body(request)
        if not is_storable(body):
            raise ApiError(422, message=_("The body has a NUL character or half a surrogate pair."))
        return body


def is_storable(value: Any) -> bool:
    """Whether no text in a JSON value has a NUL character or half a surrogate pair."""
    if isinstance(value, str):
        return not _UNSTORABLE.search(value)
    if isinstance(value, dict):
        return all(is_storable(part) for pair in value.items() for part in pair)
    return not isinstance(value, list) or all(map(is_storable, value))


_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def build() -> NinjaAPI:
    """The API with the addresses of all apps."""
    api = NinjaAPI(
        title="evalsite",
        version="1",
        description=DESCRIPTION,
        openapi_url=None,
        docs_url=None,
        auth=Token(),
        parser=BodyParser(),
        urls_namespace="api",
    )
    for name in modules:
        module = import_module(name)
        parts = name.split(".")
        tag = parts[1] if len(parts) > 2 else parts[0]
        api.add_router("", module.router, tags=[tag])
    _answer_errors(api)
    return api


def _answer_errors(api: NinjaAPI) -> None:
    answers: dict[type[Exception], Callable[[Any], HttpResponse]] = {
        ApiError: lambda error: error.response(),
        Http404: lambda error: error_response(404),
        PermissionDenied: lambda error: error_response(403),
        AuthenticationError: lambda error: error_response(401),
        HttpError: _http_error,
        SchemaError: _invalid,
        ValidationError: refused,
    }
    for kind, answer in answers.items():
        api.add_exception_handler(kind, _handler(answer))


def _handler(answer: Callable[[Any], HttpResponse]) -> Callable[[HttpRequest, Any], HttpResponse]:
    return lambda request, error: answer(error)


def _http_error(error: HttpError) -> HttpResponse:
    """ninja's own refusal; that of a body by BodyParser is its cause."""
    cause = error.__cause__
    return cause.response() if isinstance(cause, ApiError) else error_response(error.status_code)


def _invalid(error: SchemaError) -> HttpResponse:
    fields = {_place(detail["loc"]): detail["msg"] for detail in error.errors}
    return error_response(422, "invalid", fields=fields)


def _place(location: tuple[Any, ...]) -> str:
    """A field's path in the body or query: `body → data → rows` is `rows`."""
    names = [str(name) for name in location]
    inner = names[2:] if names[:1] == ["body"] and len(names) > 2 else names[1:]
    return ".".join(inner) or names[0]


API = build()


def schema() -> dict[str, Any]:
    """The description (OpenAPI 3.1), as `openapi.json` holds it; every operation may answer with an error."""
    document = dict(API.get_openapi_schema(path_prefix="/api/v1/"))
    document["components"]["schemas"]["Error"] = ERROR
    for methods in document["paths"].values():
        for operation in methods.values():
            operation["responses"]["default"] = {
                "description": "An error.",
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
            }
    return document


def openapi(request: HttpRequest) -> HttpResponse:
    """The description of the API; needs no token."""
    return HttpResponse(description_text(), content_type="application/json")


def description_text() -> str:
    """The description as text, the same every time."""
    import json

    return json.dumps(schema(), ensure_ascii=False, indent=1, default=str) + "\n"


def docs(request: HttpRequest) -> HttpResponse:
    """The description as a page; needs no token."""
    operations = [
        {"path": path, "method": method.upper(), **operation}
        for path, methods in schema()["paths"].items()
        for method, operation in methods.items()
    ]
    return render(request, "api/docs.html", {"operations": operations, "version": __version__})


def client(request: HttpRequest) -> HttpResponse:
    """The client for programs, one Python file; needs no token."""
    return HttpResponse(CLIENT.read_bytes(), content_type="text/x-python; charset=utf-8")


urlpatterns: list[URLPattern | URLResolver] = [
    path("openapi.json", openapi, name="api_description"),
    path("docs", docs, name="api_docs"),
    path("client.py", client, name="api_client"),
    path("", API.urls),
]
