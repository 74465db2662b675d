"""JSON text that every parser and database accepts: no NaN, infinities, NUL or lone surrogates."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec

from evalsite.cells import clean_text, cut_text, left_out

# Created once, because `json` creates a new encoder for each call with options.
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
_decode = json.JSONDecoder(parse_constant=lambda _: None).decode
CUT_FROM = 2**18  # initial limit for strings (characters) and lists (items) when a document is too large


def loads(text: str | None) -> Any:
    """Parse stored JSON text. NaN, infinities and empty text become None."""
    return _decode(text) if text else None


def dumps(document: dict[str, Any], limit: int) -> bytes:
    """Encode as one line of UTF-8 JSON of at most `limit` bytes. Long values are cut, with a note at the end."""
    line = _line(document)
    most = CUT_FROM
    while len(line) > limit and most > 8:
        line = _line({name: _cut(value, most) for name, value in document.items()})
        most //= 2
    return line


def _line(document: Any) -> bytes:
    try:
        text = _encode(document)
        if "\\u0000" not in text:
            return text.encode()
    except ValueError:  # NaN, infinity or a lone surrogate
        pass
    return _encode(_clean(document)).encode()


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {clean_text(str(name)): _clean(member) for name, member in value.items()}
    return [_clean(member) for member in value] if isinstance(value, list) else value


def _cut(value: Any, most: int) -> Any:
    if isinstance(value, str):
        return cut_text(value, most)
    if isinstance(value, list):
        members = [_cut(member, most) for member in value[:most]]
        return [*members, left_out(len(value) - most)] if len(value) > most else members
    if isinstance(value, dict):
        return {cut_text(name, most): _cut(member, most) for name, member in list(value.items())[:most]}
    return value


_encode_any = msgspec.json.Encoder().encode


def as_json(value: Any) -> str:
    """Encode as strict JSON text: no NaN or lone surrogates; integers of any size."""
    try:
        return _encode_any(value).decode()
    except (msgspec.MsgspecError, UnicodeEncodeError, OverflowError):
        plain = msgspec.to_builtins(value, enc_hook=str)  # dataclasses in lists too
        return storable(json.dumps(plain, ensure_ascii=False, separators=(",", ":"))) or ""


def storable(text: str | None) -> str | None:
    """Replace NUL (rejected by PostgreSQL) and lone surrogates (invalid in UTF-8); models may return both."""
    if text is None or (text.isascii() and "\0" not in text):
        return text
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
