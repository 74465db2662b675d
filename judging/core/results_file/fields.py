"""Reads the fields of one results file line, checking each one's type."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from judging.core.values import Value

MOST = 2**31 - 1
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")


class Refusal(Exception):
    """Why a line is skipped: a code and the parameters of its message."""

    def __init__(self, code: str, **params: str) -> None:
        super().__init__(code)
        self.code, self.params = code, params


class TableCell(str):
    """A cell of a table, whose type is unknown."""

    __slots__ = ()


def clean(text: str) -> str:
    """The text with NUL and lone surrogates, which databases reject, replaced."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def text_of(record: Mapping[str, Any], name: str, most: int | None = None) -> str:
    """A text, or an integer as text; '' if the field is absent or blank."""
    value = record.get(name)
    if value is None:
        return ""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        raise Refusal("not_text", field=name)
    if not value.strip():
        return ""
    if most is not None and len(value) > most:
        raise Refusal("text_too_long", field=name, most=str(most))
    return clean(value)


def number_of(record: Mapping[str, Any], name: str, low: float = 0.0, high: float = math.inf) -> float | None:
    """A finite number within the bounds; None if the field is absent."""
    number = plain(record.get(name))
    if number is None:
        return None
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise Refusal("not_number", field=name)
    if not is_finite(number) or not low <= number <= high:
        raise Refusal("number_out_of_range", field=name)
    return float(number)


def whole_of(record: Mapping[str, Any], name: str, least: int = 1, most: int = MOST) -> int | None:
    """A whole number within the bounds; None if the field is absent."""
    number = number_of(record, name, -math.inf)
    if number is None:
        return None
    if not number.is_integer() or not least <= number <= most:
        raise Refusal("not_whole", field=name, least=str(least))
    return int(number)


def moment_of(record: Mapping[str, Any]) -> float | None:
    """The time `at` in Unix seconds, given as ISO 8601 (UTC by default) or Unix seconds."""
    value = plain(record.get("at"))
    if value is None:
        return None
    if isinstance(value, int | float) and not isinstance(value, bool):
        return number_of(record, "at")
    try:
        moment = datetime.fromisoformat(str(value))
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise Refusal("not_moment", field="at") from None


def value_of(record: Mapping[str, Any]) -> Value | None:
    """The verdict's value, or None. The type of a table cell is inferred from its text."""
    value = plain(record.get("value"))
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        if not is_finite(value):
            raise Refusal("value_not_finite")
        return value
    if isinstance(value, str):
        return clean(value).strip() or None
    raise Refusal("value_type")


def is_finite(number: float) -> bool:
    """Whether a double can represent it."""
    try:
        return math.isfinite(float(number))
    except OverflowError:
        return False


def plain(value: Any) -> Any:
    """The value that a cell's text stands for; any other value unchanged."""
    if not isinstance(value, TableCell):
        return value
    text = value.strip()
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if not _NUMBER.fullmatch(text):
        return float(text) if text.lower() in ("nan", "inf", "-inf") else str(value) or None
    return int(text) if text.lstrip("+-").isdigit() and len(text) < 300 else float(text)
