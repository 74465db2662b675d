"""JSON inside a worker: the standard library's own coder and decoder, made once and not at each call."""

import json
from collections.abc import Callable
from json import encoder
from typing import Any


def make_encoder(*, allow_nan: bool) -> Callable[[Any], str]:
    """What ``json.JSONEncoder(ensure_ascii=False).encode`` does, without looking for circles: the depth ends those."""
    refuse = json.JSONEncoder().default
    make = getattr(encoder, "c_make_encoder", None)  # not every interpreter has it
    if make is None:
        return json.JSONEncoder(ensure_ascii=False, allow_nan=allow_nan, separators=(",", ":")).encode
    parts = make(None, refuse, encoder.encode_basestring, None, ":", ",", False, False, allow_nan)
    return lambda value: "".join(parts(value, 0))


def make_decoder(hook: Callable[[dict[str, Any]], Any] | None = None) -> Callable[[memoryview], Any]:
    """Reads one JSON text that the parent wrote; lone surrogates pass."""
    scan = json.JSONDecoder(object_hook=hook).scan_once  # type: ignore[attr-defined]
    return lambda raw: scan(str(raw, "utf-8", "surrogatepass"), 0)[0]
