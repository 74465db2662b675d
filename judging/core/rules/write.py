"""A program → its text. Reading it again gives the same program."""

from __future__ import annotations

from judging.core.rules import words
from judging.core.rules.arguments import write_argument, write_format
from judging.core.rules.program import Block, Field, Program, Rule


def write(program: Program, language: str = "") -> str:
    """The text in one language (`zh` or `en`), by default the one that most of its lines are written in."""
    spoken = language or language_of(program)
    lines = [words.HEADER, *(_line(rule, spoken) for rule in program.rules)]
    lines.append(f"{words.AGGREGATE.in_language(spoken)}:{program.aggregate}")
    lines.append(f"{words.FORMAT.in_language(spoken)}:{write_format(program.format, spoken)}")
    return "\n".join([*lines, *map(_block, program.blocks)]) + "\n"


def language_of(program: Program) -> str:
    """`en` where more lines are written in English than in Chinese, else `zh`."""
    english = sum(rule.language == "en" for rule in program.rules)
    return "en" if english > len(program.rules) / 2 else "zh"


def _line(rule: Rule, language: str) -> str:
    parts = [_name(rule.target, language), rule.function.name.in_language(language)]
    argument = write_argument(rule.argument, language)
    return ":".join([*parts, argument] if argument else parts)


def _name(field: Field, language: str) -> str:
    if field.kind == "named":
        return field.name
    return (words.ALL if field.kind == "all" else words.WHOLE).in_language(language)


def _block(block: Block) -> str:
    # A carriage return at the text's end would be taken for a part of the newline behind it.
    newline = "\r\n" if block.text.endswith("\r") else "\n"
    return f"<{block.label.text}>\n{block.text}{newline}</{block.label.text}>"
