"""Writes a program as text that parses to the same program; and converts arguments to and from text."""

from __future__ import annotations

import re

from judging.core.rules import keywords
from judging.core.rules.program import Argument, CodeBlock, Field, Format, Length, Program, Rule

# Typed by Chinese keyboards; equivalent in arguments that are not free text.
_NARROW = str.maketrans("，（）", ",()")
_LIMIT = re.compile(r"([0-9]{1,9})")
_RANGE = re.compile(r"\(\s*([0-9]{1,9})\s*,\s*([0-9]{1,9})\s*\)")
# An XML name, without the rarest characters that XML allows.
_XML_NAME = re.compile(r"[^\W\d][\w.:·-]*")


def read_length(text: str) -> Length | None:
    """Parse `60` (at most) or `(20, 60)`; None for anything else."""
    plain = text.translate(_NARROW)
    if limit := _LIMIT.fullmatch(plain):
        return Length(0, int(limit[1]))
    both = _RANGE.fullmatch(plain)
    if both is None or int(both[1]) > int(both[2]):
        return None
    return Length(int(both[1]), int(both[2]))


def read_format(kind: str, root: str = "") -> Format | None:
    """Parse `JSON`, `XML`, `XML` with a root, `字符串` or `text`; None for anything else."""
    if kind == keywords.XML and (not root or _XML_NAME.fullmatch(root)):
        return Format("xml", root)
    if root:
        return None
    if kind == keywords.JSON:
        return Format("json")
    return Format("text") if kind in keywords.TEXT else None


def read_format_argument(text: str) -> Format | None:
    """Like `read_format`, for a single argument such as `XML:root`."""
    kind, colon, root = text.replace("：", ":").partition(":")
    return None if colon and not root.strip() else read_format(kind.strip(), root.strip())


def write_length(length: Length) -> str:
    """The inverse of `read_length`."""
    return str(length.high) if length.low == 0 else f"({length.low}, {length.high})"


def write_format(form: Format, language: str) -> str:
    """The inverse of `read_format_argument`."""
    if form.kind == "text":
        return keywords.TEXT.in_language(language)
    if form.kind == "json":
        return keywords.JSON
    return f"{keywords.XML}:{form.root}" if form.root else keywords.XML


def write_argument(argument: Argument, language: str) -> str:
    """An argument as written in a line; '' for none."""
    if isinstance(argument, Length):
        return write_length(argument)
    if isinstance(argument, Format):
        return write_format(argument, language)
    if argument is None or isinstance(argument, str):
        return argument or ""
    return argument.label


def write(program: Program, language: str = "") -> str:
    """Write the program in one language (`zh` or `en`); defaults to the one used in most of its lines."""
    spoken = language or language_of(program)
    lines = [keywords.HEADER, *(_line(rule, spoken) for rule in program.rules)]
    lines.append(f"{keywords.AGGREGATE.in_language(spoken)}:{program.aggregate}")
    lines.append(f"{keywords.FORMAT.in_language(spoken)}:{write_format(program.format, spoken)}")
    return "\n".join([*lines, *map(_block, program.blocks)]) + "\n"


def language_of(program: Program) -> str:
    """`en` if most lines are written in English, otherwise `zh`."""
    english = sum(rule.language == "en" for rule in program.rules)
    return "en" if english > len(program.rules) / 2 else "zh"


def _line(rule: Rule, language: str) -> str:
    parts = [_name(rule.target, language), rule.function.name.in_language(language)]
    argument = write_argument(rule.argument, language)
    return ":".join([*parts, argument] if argument else parts)


def _name(field: Field, language: str) -> str:
    if field.kind == "named":
        return field.name
    return (keywords.ALL if field.kind == "all" else keywords.WHOLE).in_language(language)


def _block(block: CodeBlock) -> str:
    # A carriage return at the end of the text would be read as part of the newline after it.
    newline = "\r\n" if block.text.endswith("\r") else "\n"
    return f"<{block.label.text}>\n{block.text}{newline}</{block.label.text}>"
