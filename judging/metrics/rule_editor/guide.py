"""Building a program from the fields of a version's references: the form's choices and the program text."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest

from django.http import QueryDict

from datasets.models import Version
from judging.core.rules import keywords
from judging.core.rules.check import read_program
from judging.core.rules.functions import FUNCTIONS
from judging.core.rules.program import Format, Function
from judging.metrics.rule_editor.sample_rows import SeenField, fields_seen, guessed_format, references_of
from judging.rule_messages import reader_language

BY_CODE = {function.code: function for function in FUNCTIONS}
MAX_RULES = 20  # per field
_SHORT = 20  # characters: a label rather than a sentence
_BLOCKS = {
    "rule": {
        "zh": "5 分：与参考答案意思一致；1 分：意思不同；其余酌情给 2 到 4 分。",
        "en": "5 if it says the same as the reference, 1 if it says something else, 2 to 4 between.",
    },
    "code": {
        "zh": "def score(ref_answer, model_answer):\n    return 5 if model_answer == ref_answer else 1",
        "en": "def score(ref_answer, model_answer):\n    return 5 if model_answer == ref_answer else 1",
    },
}
_LABELS = {"rule": keywords.RULE_LABEL, "code": keywords.CODE_LABEL}


@dataclass(frozen=True, slots=True)
class OfferedField:
    """A field of the references with a suggested function."""

    seen: SeenField
    suggested: str


@dataclass(frozen=True, slots=True)
class Guide:
    """The form's choices for a version. `whole`: its references have no fields, so answers are compared as a whole."""

    version: Version
    form: Format
    fields: list[OfferedField]
    rows: int

    @property
    def format_text(self) -> str:
        return self.form.written(reader_language())

    @property
    def whole(self) -> bool:
        return not self.fields


def guide(version: Version) -> Guide:
    """The form's choices, from the references of the version's first rows."""
    references = [one for one in references_of(version) if one is not None]
    form = guessed_format(references)
    seen = [one for one in fields_seen(references, form) if can_be_written(one.name)]
    return Guide(version, form, [_offered(one) for one in seen], len(references))


def can_be_written(name: str) -> bool:
    """Whether a line of a program can start with this field's name."""
    program = read_program(f"# DSL\n{name}:exact_match\n@format:JSON\n").program
    return program is not None and [rule.target.name for rule in program.rules] == [name]


def _offered(seen: SeenField) -> OfferedField:
    if seen.kind == "list":
        return OfferedField(seen, "contains")
    long = seen.kind == "text" and seen.longest > _SHORT
    return OfferedField(seen, "fuzzy_match" if long else "exact_match")


@dataclass(frozen=True, slots=True)
class GuidedLine:
    """A program line to write. `function`: a code of rules.functions.FUNCTIONS."""

    name: str
    function: str
    argument: str = ""


@dataclass(frozen=True, slots=True)
class FieldRules:
    """A field of the form with its selected rules. `name` is '' for the whole answer."""

    number: int
    name: str
    rows: int
    example: str
    rules: list[tuple[str, str]]  # code of the function, '' for none; argument


def field_rules(guide: Guide, typed: QueryDict) -> list[FieldRules]:
    """The form's fields with the submitted or suggested rules. The field numbered `more` gets another rule."""
    if guide.whole:
        offered = [("", guide.rows, "", "exact_match")]
    else:
        offered = [(one.seen.name, one.seen.rows, one.seen.example, one.suggested) for one in guide.fields]
    more = typed.get("more", "")
    fields = []
    for number, (name, rows, example, suggested) in enumerate(offered):
        functions = typed.getlist(f"function-{number}")[:MAX_RULES]
        arguments = typed.getlist(f"argument-{number}")
        rules = list(zip_longest(functions, arguments[: len(functions)], fillvalue="")) or [(suggested, "")]
        if more == str(number) and len(rules) < MAX_RULES:
            rules.append(("", ""))
        fields.append(FieldRules(number, name, rows, example, rules))
    return fields


def chosen_lines(fields: list[FieldRules], language: str) -> list[GuidedLine]:
    """The program lines selected in the form: those with a function."""
    whole = keywords.WHOLE.in_language(language)
    return [
        GuidedLine(field.name or whole, function, argument.strip())
        for field in fields
        for function, argument in field.rules
        if function in BY_CODE
    ]


def program_text(lines: list[GuidedLine], aggregate: str, form: Format, language: str) -> str:
    """The program text. Lines that need a block get one with an example."""
    header, blocks = [keywords.HEADER], []
    counts: dict[str, int] = {}
    for line in lines:
        function = BY_CODE.get(line.function)
        if function is None:
            continue
        argument = line.argument
        if function.argument in _LABELS:
            kind = function.argument
            counts[kind] = counts.get(kind, 0) + 1
            argument = f"{_LABELS[kind].in_language(language)}{counts[kind]}"
            blocks.append(f"<{argument}>\n{_BLOCKS[kind][language]}\n</{argument}>")
        header.append(_line(line.name, function, argument, language))
    header.append(f"{keywords.AGGREGATE.in_language(language)}:{aggregate}")
    header.append(f"{keywords.FORMAT.in_language(language)}:{form.written(language)}")
    return "\n".join([*header, *blocks]) + "\n"


def _line(name: str, function: Function, argument: str, language: str) -> str:
    parts = [name, function.name.in_language(language)]
    return ":".join([*parts, argument] if argument else parts)
