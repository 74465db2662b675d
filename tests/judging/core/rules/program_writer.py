"""Writes a program as text that parses to the same program."""

from judging.core.rules import keywords
from judging.core.rules.program import Argument, Code, Field, Format, Length, Program, Rule, RuleText


def write_length(length: Length) -> str:
    """The inverse of `read_length`."""
    return str(length.high) if length.low == 0 else f"({length.low}, {length.high})"


def write_argument(argument: Argument, language: str) -> str:
    """An argument as written in a line; '' for none."""
    if isinstance(argument, Length):
        return write_length(argument)
    if isinstance(argument, Format):
        return argument.written(language)
    if argument is None or isinstance(argument, str):
        return argument or ""
    return argument.label


def write(program: Program, language: str = "") -> str:
    """Write the program in one language (`zh` or `en`); defaults to the one used in most of its lines."""
    english = sum(rule.language == "en" for rule in program.rules)
    spoken = language or ("en" if english > len(program.rules) / 2 else "zh")
    lines = [keywords.HEADER, *(_line(rule, spoken) for rule in program.rules)]
    lines.append(f"{keywords.AGGREGATE.in_language(spoken)}:{program.aggregate}")
    lines.append(f"{keywords.FORMAT.in_language(spoken)}:{program.format.written(spoken)}")
    texts = {
        one.label: one.text if isinstance(one, RuleText) else one.source
        for one in (rule.argument for rule in program.rules)
        if isinstance(one, (RuleText, Code))
    }
    return "\n".join([*lines, *(_block(*block) for block in texts.items())]) + "\n"


def _line(rule: Rule, language: str) -> str:
    parts = [_name(rule.target, language), rule.function.name.in_language(language)]
    argument = write_argument(rule.argument, language)
    return ":".join([*parts, argument] if argument else parts)


def _name(field: Field, language: str) -> str:
    if field.kind == "named":
        return field.name
    return (keywords.ALL if field.kind == "all" else keywords.WHOLE).in_language(language)


def _block(label: str, text: str) -> str:
    # A carriage return at the end of the text would be read as part of the newline after it.
    newline = "\r\n" if text.endswith("\r") else "\n"
    return f"<{label}>\n{text}{newline}</{label}>"
