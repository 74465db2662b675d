"""Lists of the API: `?limit=&cursor=` → `{"items", "next"}`. A cursor names the last item, so it stays valid."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterable
from typing import Annotated, Any, Generic, TypeVar

from django.utils.translation import gettext as _
from ninja import Path, Query, Schema

from evalsite.api.errors import ApiError

MOST = 1000
USUAL = 100
Item = TypeVar("Item")
Computed = TypeVar("Computed")
Limit = Annotated[int, Query(ge=1, le=MOST, description="Items on a page.")]
Id = Annotated[int, Path(ge=0, lt=2**63)]
Cursor = Annotated[str, Query(max_length=400, description="`next` of the page before.")]


class Page(Schema, Generic[Item]):
    """A page of a list. `next`: the cursor of the next page; null on the last one."""

    items: list[Item]
    next: str | None


OR_FILE: dict[str, Any] = {
    "responses": {
        200: {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}
    }
}
"""The description (`openapi_extra`) of a list that also comes as a file, with `form`."""


def cursor_of(place: Any) -> str | None:
    """A place in a list as an opaque text; None: no further page."""
    if place is None:
        return None
    return base64.urlsafe_b64encode(json.dumps(place).encode()).decode().rstrip("=")


def number_at(cursor: str) -> int | None:
    """The number in a cursor; None for the first page. Raises ApiError."""
    place = place_at(cursor)
    if place is not None and (not isinstance(place, int) or not 0 <= place < 2**63):
        raise _invalid()
    return place


def text_at(cursor: str) -> str:
    """The text in a cursor; '' for the first page. Raises ApiError."""
    place = place_at(cursor)
    if place is not None and not isinstance(place, str):
        raise _invalid()
    return place or ""


def place_at(cursor: str) -> Any:
    """The place in a cursor; None for the first page. Raises ApiError."""
    if not cursor:
        return None
    try:
        return json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (binascii.Error, ValueError):
        raise _invalid() from None


def page_after(
    items: Iterable[Computed], key: Callable[[Computed], list[Any]], limit: int, cursor: str
) -> tuple[list[Computed], str | None]:
    """A page of a list that is computed whole, ordered by `key`, and its `next`. Raises ApiError."""
    place = place_at(cursor)
    try:
        rest = sorted((item for item in items if place is None or key(item) > place), key=key)
    except TypeError:
        raise _invalid() from None
    return rest[:limit], cursor_of(key(rest[limit - 1]) if len(rest) > limit else None)


def _invalid() -> ApiError:
    text = _("“cursor” is not the “next” of an earlier page.")
    return ApiError(422, "invalid", text, fields={"cursor": text})
