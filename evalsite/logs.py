"""Logs as lines for people or as JSON for machines (LOG_FORMAT), and never a secret in either."""

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
    """From now on this process's logs hide this text: a key was decrypted."""
    if len(secret) >= SHORTEST:
        _known.add(secret)


def hidden(text: str) -> str:
    """The text without known secrets and anything that looks like one."""
    for secret in (*_known, *_of_environment()):
        if secret in text:
            text = text.replace(secret, HIDDEN)
    return _LOOKS_SECRET.sub(lambda found: f"{found['before'] or ''}{HIDDEN}", text)


def _of_environment() -> Iterable[str]:
    named = (value for name, value in os.environ.items() if _SECRET_NAMES.search(name))
    return (value for value in named if len(value) >= SHORTEST)


class PlainLine(logging.Formatter):
    """`2026-11-21 12:00:00,000 INFO judging.run_worker: text`, a traceback below."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        return hidden(super().format(record))


class JsonLine(logging.Formatter):
    """One JSON object a line: time (UTC), level, logger, message, process, traceback."""

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
    """For requests that were refused (400, 403, 404) or could not be served now (503, 507): where in our code that
    happened helps no one."""

    def filter(self, record: logging.LogRecord) -> bool:
        if getattr(record, "status_code", 500) != 500:
            record.exc_info = record.exc_text = None
        return True
