"""The four upload formats and the keys that tell them apart."""

import re
from typing import Annotated, Literal

from msgspec import Meta, Struct

Format = Literal["infer_and_judge", "judge_only", "legacy_jsonl", "legacy_csv"]

FORMATS: tuple[Format, ...] = ("infer_and_judge", "judge_only", "legacy_jsonl", "legacy_csv")
ROLES = ("system", "user", "assistant", "tool")
COMPUTED = ("question", "gt", "history")
LEGACY_COLUMNS = ("prompt", "response", "system")


Text = Annotated[str, Meta(min_length=1)]
"""What the decoder of texts that must not be blank accepts; white space alone is looked for afterwards."""


class Message(Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """A message of nothing but a role and a text. Frozen: its hash is how same messages are found."""

    role: Literal["system", "user", "assistant", "tool"]
    content: Text


def structural_keys(fmt: Format | None) -> frozenset[str]:
    """The top-level keys that are no fields of the row."""
    keys = {"messages", "model_outputs", "conversation"}
    return frozenset(keys | {"system"}) if fmt in ("legacy_jsonl", "legacy_csv") else frozenset(keys)


_SEPARATORS = re.compile(r"[\s\-_.]+")


def model_key(name: str) -> str:
    """Names with the same key are equal but for case, blanks, `-`, `_` and `.`."""
    return _SEPARATORS.sub("", name).casefold()
