"""What a function's argument may be, by kind."""

from __future__ import annotations

import re

from judging.core.rules import words
from judging.core.rules.program import Argument, Format, Length

# Chinese keyboards write these; they mean the same in an argument that is no free text.
_NARROW = str.maketrans("，（）", ",()")
_LIMIT = re.compile(r"([0-9]{1,9})")
_RANGE = re.compile(r"\(\s*([0-9]{1,9})\s*,\s*([0-9]{1,9})\s*\)")
# A name of XML, without the rarest characters that XML itself allows.
_XML_NAME = re.compile(r"[^\W\d][\w.:·-]*")


def read_length(text: str) -> Length | None:
    """`60` (at most) or `(20, 60)`; None for anything else."""
    plain = text.translate(_NARROW)
    if limit := _LIMIT.fullmatch(plain):
        return Length(0, int(limit[1]))
    both = _RANGE.fullmatch(plain)
    if both is None or int(both[1]) > int(both[2]):
        return None
    return Length(int(both[1]), int(both[2]))


def read_format(kind: str, root: str = "") -> Format | None:
    """`JSON`, `XML`, `XML` with a root, `字符串` or `text`; None for anything else."""
    if kind == words.XML and (not root or _XML_NAME.fullmatch(root)):
        return Format("xml", root)
    if root:
        return None
    if kind == words.JSON:
        return Format("json")
    return Format("text") if kind in words.TEXT else None


def read_format_argument(text: str) -> Format | None:
    """The same, written as one argument: `XML:root`."""
    kind, colon, root = text.replace("：", ":").partition(":")
    return None if colon and not root.strip() else read_format(kind.strip(), root.strip())


def write_length(length: Length) -> str:
    """The argument of `read_length`."""
    return str(length.high) if length.low == 0 else f"({length.low}, {length.high})"


def write_format(form: Format, language: str) -> str:
    """The argument of `read_format_argument`."""
    if form.kind == "text":
        return words.TEXT.in_language(language)
    if form.kind == "json":
        return words.JSON
    return f"{words.XML}:{form.root}" if form.root else words.XML


def write_argument(argument: Argument, language: str) -> str:
    """An argument as it stands in a line; '' for none."""
    if isinstance(argument, Length):
        return write_length(argument)
    if isinstance(argument, Format):
        return write_format(argument, language)
    if argument is None or isinstance(argument, str):
        return argument or ""
    return argument.label
