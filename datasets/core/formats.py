"""The four upload formats and the keys that distinguish them."""

import re
from collections.abc import Container, Iterable
from typing import Literal

Format = Literal["infer_and_judge", "judge_only", "legacy_jsonl", "legacy_csv"]

FormatKeys = tuple[bool, bool, bool]
"""Whether a row has each of the keys that distinguish formats: messages, model_outputs, conversation."""

FORMAT_KEYS = ("messages", "model_outputs", "conversation")
FORMATS: tuple[Format, ...] = ("infer_and_judge", "judge_only", "legacy_jsonl", "legacy_csv")
LEGACY: tuple[Format, ...] = ("legacy_jsonl", "legacy_csv")
ROLES = ("system", "user", "assistant", "tool")
COMPUTED = ("question", "gt", "history")
LEGACY_COLUMNS = ("prompt", "response", "system")


def format_keys(row: Container[str]) -> FormatKeys:
    """Whether a row has each of the format keys."""
    return "messages" in row, "model_outputs" in row, "conversation" in row


def structural_keys(fmt: Format | None) -> frozenset[str]:
    """Top-level keys that are part of the format, not custom fields."""
    legacy: dict[Format | None, Iterable[str]] = {"legacy_jsonl": ("system",), "legacy_csv": LEGACY_COLUMNS}
    return frozenset({*FORMAT_KEYS}.union(legacy.get(fmt, ())))


def format_called(name: str) -> Format | None:
    """The format with this name, or None."""
    return next((fmt for fmt in FORMATS if fmt == name), None)


_SEPARATORS = re.compile(r"[\s\-_.]+")


def model_key(name: str) -> str:
    """Return a key that is equal for names differing only in case, white space, `-`, `_` and `.`."""
    return _SEPARATORS.sub("", name).casefold()
