"""Model endpoints in the API. Keys, headers and proxies go in and never out."""

from __future__ import annotations

import json
from typing import Any

from django.http import HttpRequest
from ninja import Field, Router, Schema, Status

from evalsite import access
from evalsite.access import May
from evalsite.api.errors import form_refused
from evalsite.api.lists import Cursor, Id, Limit, Page, cursor_of, text_at
from judging.core.judges.protocols import CHAT
from judging.endpoints import selectors, services
from judging.endpoints.access import get_endpoint
from judging.endpoints.forms import EndpointForm
from judging.endpoints.models import Endpoint

router = Router()
Price = float | None


class EndpointIn(Schema):
    """Without a `name` the model's. `headers`: {name: value}. Prices per million tokens, in `currency`. Nothing is
    sent to the server; the page has the connection test."""

    name: str = Field("", max_length=200)
    url: str = Field(max_length=1000)
    model: str = Field(max_length=300)
    protocol: str = CHAT
    key: str = Field("", max_length=5000)
    headers: dict[str, str] = {}
    proxy: str = Field("", max_length=1000)
    ca_pem: str = Field("", max_length=200_000)
    params: dict[str, Any] = {}
    concurrency: int = 16
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    input_price: Price = None
    output_price: Price = None
    currency: str = Field("", max_length=8)
    connect_seconds: int = 10
    first_byte_seconds: int = 120
    idle_seconds: int = 120
    total_seconds: int = 600


class EndpointOut(Schema):
    """Without secrets. `has_key`: whether a key is stored."""

    id: int
    name: str
    url: str
    model: str
    protocol: str
    has_key: bool
    params: dict[str, Any]
    concurrency: int
    requests_per_minute: int | None
    tokens_per_minute: int | None
    input_price: Price
    output_price: Price
    currency: str
    archived: bool


@router.get("projects/{slug}/endpoints", response=Page[EndpointOut], summary="Endpoints")
def endpoints(
    request: HttpRequest, slug: str, limit: Limit = 100, cursor: Cursor = "", archived: bool = False
) -> dict[str, Any]:
    """By name, without drafts."""
    project = access.get_project(request, slug, May.USE_ENDPOINTS)
    rows = selectors.endpoints_of(project, archived=archived).filter(name__gt=text_at(cursor))
    page = list(rows[: limit + 1])
    following = page[limit - 1].name if len(page) > limit else None
    return {"items": list(map(endpoint_out, page[:limit])), "next": cursor_of(following)}


@router.post("projects/{slug}/endpoints", response={201: EndpointOut}, summary="Add an endpoint")
def create(request: HttpRequest, slug: str, body: EndpointIn) -> Status[Any]:
    """The key, headers and proxy are stored encrypted and never shown again."""
    project = access.get_project(request, slug, May.MANAGE)
    form = EndpointForm(_form_data(body))
    if not form.is_valid():
        raise form_refused(form)
    endpoint = form.result()
    services.endpoint_create(project=project, endpoint=endpoint, user=access.signed_in(request), draft=False)
    return Status(201, endpoint_out(endpoint))


def _form_data(body: EndpointIn) -> dict[str, Any]:
    sent = body.dict()
    lines = [f"{name}: {' '.join(value.splitlines())}" for name, value in body.headers.items()]
    return sent | {"headers": "\n".join(lines), "params": json.dumps(body.params, ensure_ascii=False)}


@router.get("projects/{slug}/endpoints/{endpoint}", response=EndpointOut, summary="An endpoint")
def endpoint(request: HttpRequest, slug: str, endpoint: Id) -> dict[str, Any]:
    """Without secrets."""
    return endpoint_out(get_endpoint(request, slug, endpoint, May.USE_ENDPOINTS))


def endpoint_out(endpoint: Endpoint) -> dict[str, Any]:
    """An endpoint as the API shows it."""
    plain = ("name", "url", "model", "protocol", "params", "concurrency", "currency")
    more = ("requests_per_minute", "tokens_per_minute", "input_price", "output_price")
    return {
        "id": endpoint.pk,
        **{name: getattr(endpoint, name) for name in (*plain, *more)},
        "has_key": bool(endpoint.key_encrypted),
        "archived": endpoint.archived_at is not None,
    }
