"""Texts from servers, made fit to be stored and shown: no NUL, no secret.

PostgreSQL stores no NUL and no half of a surrogate pair, neither in text nor in JSON. Everything that a server sends
passes here on its way out of this package: replies in ReplyReader, errors in `client.ask`, models in `probe`.
"""

from __future__ import annotations

import re
from typing import Any

MAX_MESSAGE = 500  # characters
MAX_NAME = 300
SHORTEST_SECRET = 4
LONG_SECRET = 24  # characters from which a secret is looked for in parts: it is random, not a name
PART = 8

# What may stand within a secret that a server repeats: blanks, control and invisible characters, and tags.
_BLANK = r"[\s\x00-\x1f\x7f\xad\u200b-\u200f\u2028-\u202e\u2060-\u2064\ufeff]+"
_BLANKS, _GAP = re.compile(_BLANK), re.compile(f"<[^<>]*>|{_BLANK}")
HIDDEN = "•••"


def clean(text: str) -> str:
    """The text with U+FFFD for NUL and for lone surrogates."""
    if "\0" in text:
        text = text.replace("\0", "\N{REPLACEMENT CHARACTER}")
    try:
        text.encode()
    except UnicodeEncodeError:  # the halves of a pair may have arrived apart
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def clean_json(value: Any) -> Any:
    """The JSON value with clean texts."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(str(name)): clean_json(member) for name, member in value.items()}
    return [clean_json(member) for member in value] if isinstance(value, list) else value


def shown_message(message: str, secrets: tuple[str, ...]) -> str:
    """An error message without secrets, on one line and shortened. In this order: a secret that was cut would not be
    recognised."""
    return clean(" ".join(redacted(message, secrets).split()))[:MAX_MESSAGE]


def redacted(message: str, secrets: tuple[str, ...]) -> str:
    """The message without secrets, also if tags or blanks break them, if only a part of a long one stands there, or if
    it ends within one."""
    for secret in sorted(secrets, key=len, reverse=True):
        for gap in (_GAP, _BLANKS):  # tags may break a secret, or one may stand within a tag
            message = _without(message, secret, gap)
    return message


def _without(message: str, secret: str, gap: re.Pattern[str]) -> str:
    bare, secret = gap.sub("", message), gap.sub("", secret)
    if len(secret) < SHORTEST_SECRET:
        return message
    spans = _spans(bare, secret, PART if len(secret) >= LONG_SECRET else len(secret))
    rest = bare[spans[-1][1] :] if spans else bare
    lengths = range(len(secret) - 1, SHORTEST_SECRET - 1, -1)
    beginning = next((length for length in lengths if rest.endswith(secret[:length])), 0)
    if beginning:
        spans.append((len(bare) - beginning, len(bare)))
    return _with_spans_hidden(message, spans, gap) if spans else message


def _spans(bare: str, secret: str, size: int) -> list[tuple[int, int]]:
    """The places of all parts of the secret of at least this size, joined where they overlap."""
    parts = {secret[at : at + size] for at in range(len(secret) - size + 1)}
    spans: list[tuple[int, int]] = []
    for at in range(len(bare) - size + 1):
        if bare[at : at + size] in parts:
            start = spans.pop()[0] if spans and at < spans[-1][1] else at
            spans.append((start, at + size))
    return spans


def _with_spans_hidden(message: str, spans: list[tuple[int, int]], gap: re.Pattern[str]) -> str:
    """Hide these places, which count characters between gaps."""
    places, at = list[int](), 0
    for match in gap.finditer(message):
        places += range(at, match.start())
        at = match.end()
    places += range(at, len(message))
    for start, end in reversed(spans):
        message = message[: places[start]] + HIDDEN + message[places[end - 1] + 1 :]
    return message
