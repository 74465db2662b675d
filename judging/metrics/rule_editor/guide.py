"""Building a program from the fields of a version's references: the form's choices and the program text."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import zip_longest

from django.http import QueryDict

from datasets.models import Version
from judging.core.rules import keywords
from judging.core.rules.check import read_program
from judging.core.rules.functions import FUNCTIONS
from judging.core.rules.program import Format
from judging.metrics.rule_editor.sample_rows import SeenField, fields_seen, guessed_format, references_of
from judging.rule_messages import reader_language

BY_CODE = {function.code: function for function in FUNCTIONS}
MAX_RULES = 20  # per field
_SHORT = 20  # characters: a label rather than a sentence
_PYTHON = "def score(ref_answer, model_answer):\n    return 5 if model_answer == ref_answer else 1"
_BLOCKS = {
    "rule": {
        "zh": "5 分：与参考答案意思一致；1 分：意思不同；其余酌情给 2 到 4 分。",
        "en": "5 if it says the same as the reference, 1 if it says something else, 2 to 4 between.",
    },
    "code": {"zh": _PYTHON, "en": _PYTHON},
}
_LABELS = {"rule": keywords.RULE_LABEL, "code": keywords.CODE_LABEL}


@dataclass(frozen=True, slots=True)
class Guide:
    """The form's choices for a version. Without fields, answers are compared as a whole."""

    version: Version
    form: Format
    fields: list[SeenField]
    rows: int

    @property
    def format_text(self) -> str:
        return self.form.written(reader_language())


def guide(version: Version) -> Guide:
    """The form's choices, from the references of the version's first rows."""
    references = [reference for reference in references_of(version) if reference is not None]
    form = guessed_format(references)
    fields = [field for field in fields_seen(references, form) if can_be_written(field.name)]
    return Guide(version, form, fields, len(references))


def can_be_written(name: str) -> bool:
    """Whether a line of a program can start with this field's name."""
    program = read_program(f"# DSL\n{name}:exact_match\n@format:JSON\n").program
    return program is not None and [rule.target.name for rule in program.rules] == [name]


def suggested_function(field: SeenField) -> str:
    if field.kind == "list":
        return "contains"
    return "fuzzy_match" if field.kind == "text" and field.longest > _SHORT else "exact_match"


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
    offered = [(field.name, field.rows, field.example, suggested_function(field)) for field in guide.fields]
    whole = ("", guide.rows, "", "exact_match")
    fields = []
    for number, (name, rows, example, suggested) in enumerate(offered or [whole]):
        functions = typed.getlist(f"function-{number}")[:MAX_RULES]
        arguments = typed.getlist(f"argument-{number}")[: len(functions)]
        rules = list(zip_longest(functions, arguments, fillvalue="")) or [(suggested, "")]
        if typed.get("more") == str(number) and len(rules) < MAX_RULES:
            rules.append(("", ""))
        fields.append(FieldRules(number, name, rows, example, rules))
    return fields


def program_text(fields: list[FieldRules], aggregate: str, form: Format, language: str) -> str:
    """The program with the rules that have a function. Rules that need a block get one with an example."""
    header, blocks = [keywords.HEADER], []
    counts: Counter[str] = Counter()
    for field in fields:
        for code, argument in field.rules:
            if (function := BY_CODE.get(code)) is None:
                continue
            kind, argument = function.argument, argument.strip()
            if kind in _LABELS:
                counts[kind] += 1
                argument = f"{_LABELS[kind].in_language(language)}{counts[kind]}"
                blocks.append(f"<{argument}>\n{_BLOCKS[kind][language]}\n</{argument}>")
            name = field.name or keywords.WHOLE.in_language(language)
            parts = [name, function.name.in_language(language), argument]
            header.append(":".join(parts if argument else parts[:2]))
    header.append(f"{keywords.AGGREGATE.in_language(language)}:{aggregate}")
    header.append(f"{keywords.FORMAT.in_language(language)}:{form.written(language)}")
    return "\n".join([*header, *blocks]) + "\n"
