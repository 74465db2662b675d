"""Log formatters: plain lines or JSON (LOG_FORMAT), both with secrets removed."""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Iterable
from datetime import UTC, datetime

HIDDEN = "[hidden]"
SHORTEST = 8  # a shorter secret would hide ordinary words
_SECRET_NAMES = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD)(_|$)")
_LOOKS_SECRET = re.compile(
    r"(?P<before>bearer\s+|://[^/\s:@]*:|\b(?:api[-_]?key|token|password|secret)[\"']?\s*[=:]\s*[\"']?)(?P<secret>[^\s\"'@,;&]+)|\bsk-[\w-]{8,}",
    re.IGNORECASE,
)
_known: set[str] = set()


def never_show(secret: str) -> None:
    """Hide this text in all further logs of this process, for example a decrypted key."""
    if len(secret) >= SHORTEST:
        _known.add(secret)


def hidden(text: str) -> str:
    """Replace known secrets and anything that looks like one."""
    for secret in (*_known, *_of_environment()):
        if secret in text:
            text = text.replace(secret, HIDDEN)
    return _LOOKS_SECRET.sub(lambda match: f"{match['before'] or ''}{HIDDEN}", text)


def _of_environment() -> Iterable[str]:
    named = (value for name, value in os.environ.items() if _SECRET_NAMES.search(name))
    return (value for value in named if len(value) >= SHORTEST)


class PlainLine(logging.Formatter):
    """`2026-11-21 12:00:00,000 INFO judging.run_worker: text`, followed by a traceback, if any."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        return hidden(super().format(record))


class JsonLine(logging.Formatter):
    """One JSON object per line: time (UTC), level, logger, message, process, traceback."""

    def format(self, record: logging.LogRecord) -> str:
        fields = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": hidden(record.getMessage()),
            "process": record.process,
        }
        if record.exc_info:
            fields["traceback"] = hidden(self.formatException(record.exc_info))
        return json.dumps(fields, ensure_ascii=False, default=str)


class WithoutTraceback(logging.Filter):
    """Removes the traceback of rejected (400, 403, 404) and temporarily failed requests (503, 507)."""

    def filter(self, record: logging.LogRecord) -> bool:
        if getattr(record, "status_code", 500) != 500:
            record.exc_info = record.exc_text = None
        return True
