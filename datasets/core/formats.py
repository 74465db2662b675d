"""The four upload formats and the keys that distinguish them."""

import re
from collections.abc import Container, Iterable
from typing import Literal

from datasets.core.texts import Text, gettext_noop

Format = Literal["infer_and_judge", "judge_only", "legacy_jsonl", "legacy_csv"]

FormatKeys = tuple[bool, bool, bool]
"""Whether a row has each of the keys that distinguish formats: messages, model_outputs, conversation."""

FORMAT_KEYS = ("messages", "model_outputs", "conversation")
FORMATS: tuple[Format, ...] = ("infer_and_judge", "judge_only", "legacy_jsonl", "legacy_csv")
FORMAT_NAMES: dict[Format, str] = {
    "infer_and_judge": gettext_noop("Infer and judge (JSONL)"),
    "judge_only": gettext_noop("Judge only (JSONL)"),
    "legacy_jsonl": gettext_noop("Multi-turn JSONL (legacy)"),
    "legacy_csv": gettext_noop("Single-turn CSV (legacy)"),
}
FORMAT_RULES: dict[Format, Text] = {
    "judge_only": gettext_noop(
        "One JSON object per line. “messages” is the conversation; “model_outputs” holds each model's name and its "
        "answers. “ref_answer” and other fields are kept and can be used in prompts."
    ),
    "infer_and_judge": gettext_noop(
        "The same without “model_outputs”: the run calls the models to generate answers, then judges them."
    ),
    "legacy_jsonl": gettext_noop(
        "One JSON object per line with “conversation”, a list of turns with “prompt” and “response”, and optionally "
        "“system”. The last response is the reference."
    ),
    "legacy_csv": gettext_noop(
        "A CSV file whose header names the columns “prompt” and “response”, and optionally “system”; further columns "
        "are kept as fields."
    ),
}
"""What a file of each format looks like, in the order of the upload page."""
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
