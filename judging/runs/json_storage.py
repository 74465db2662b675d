"""JSON and texts that any database takes, whatever a model said."""

from __future__ import annotations

import json
from typing import Any

import msgspec

_encode = msgspec.json.Encoder().encode


def as_json(value: Any) -> str:
    """Strict JSON text: no NaN, no half characters; integers of any size."""
    try:
        return _encode(value).decode()
    except (msgspec.MsgspecError, UnicodeEncodeError, OverflowError):
        plain = msgspec.to_builtins(value, enc_hook=str)  # dataclasses in lists too
        return storable(json.dumps(plain, ensure_ascii=False, separators=(",", ":"))) or ""


def storable(text: str | None) -> str | None:
    """Without NUL (PostgreSQL refuses it) and half characters (UTF-8 has none); a model may send both."""
    if text is None or (text.isascii() and "\0" not in text):
        return text
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
