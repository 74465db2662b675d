"""Checks a parsed sheet: returns the program, or all errors with their positions."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from judging.core.paste_repair import bullet_of, repaired
from judging.core.rules import keywords
from judging.core.rules.formats import path_of
from judging.core.rules.functions import BY_WORD, FUNCTIONS
from judging.core.rules.parse import parse
from judging.core.rules.program import (
    OPTIONAL,
    Argument,
    Code,
    CodeBlock,
    Field,
    Format,
    Function,
    HeaderLine,
    Length,
    Problem,
    Program,
    Rule,
    RuleText,
    Sheet,
    SourcePlace,
    Word,
)
from judging.core.rules.python_blocks import PythonProblem, scoring_function

_MEAN = "mean"
_MOST_GUESSES = 100  # finding the closest word is slow compared with everything else
_LABEL_KINDS = {"rule": keywords.RULE_LABEL, "code": keywords.CODE_LABEL}

# Typed by Chinese keyboards; equivalent in arguments that are not free text.
_NARROW = str.maketrans("，（）", ",()")
_LIMIT = re.compile(r"([0-9]{1,9})")
_RANGE = re.compile(r"\(\s*([0-9]{1,9})\s*,\s*([0-9]{1,9})\s*\)")
# An XML name, without the rarest characters that XML allows.
_XML_NAME = re.compile(r"[^\W\d][\w.:·-]*")


@dataclass(frozen=True, slots=True)
class CheckedProgram:
    """A program, or None if there are errors; errors and warnings are in text order."""

    program: Program | None
    problems: tuple[Problem, ...]

    @property
    def errors(self) -> list[Problem]:
        return [problem for problem in self.problems if not problem.is_warning]

    @property
    def warnings(self) -> list[Problem]:
        return [problem for problem in self.problems if problem.is_warning]


def read_program(text: str) -> CheckedProgram:
    """Parse and check `text`. Any text gives a program or at least one error; nothing is raised."""
    checker = _Checker(parse(text))
    program = checker.program()
    ordered = sorted(checker.problems, key=lambda problem: problem.place)
    language = language_of(checker.sheet) if ordered else ""
    problems = tuple(replace(problem, params={**problem.params, "language": language}) for problem in ordered)
    broken = any(not problem.is_warning for problem in problems)
    return CheckedProgram(None if broken else program, problems)


def language_of(sheet: Sheet) -> str:
    """The language of the program's own words: `zh`, `en`, or '' if there are none."""
    entries = (*sheet.entries, *sheet.misplaced)
    functions = [function.name for function in FUNCTIONS]
    written: list[tuple[str, list[keywords.Keyword]]] = []
    for entry in entries:
        is_own_name = entry.name.text.startswith("@")
        written += [(entry.name.text, list(keywords.OWN_NAMES))] if is_own_name else []
        written += [(entry.function.text, [keywords.TEXT] if _is_setting(entry) else functions)]
    return keywords.language_of(
        (word, pairs)
        for word, pairs in written
        if word not in (*keywords.AGGREGATE_WORDS, keywords.JSON, keywords.XML)
    )


class _Checker:
    def __init__(self, sheet: Sheet) -> None:
        self.sheet = sheet
        self.problems = list(sheet.problems)
        self.blocks: dict[str, CodeBlock] = {}
        self.guesses = 0
        self.functions: dict[str, str] = {}  # of Python blocks: label → name of the function to call

    def program(self) -> Program | None:
        self._check_blocks()
        self._check_pasted()
        form = self._format()
        aggregate = self._aggregate()
        lines = [entry for entry in self.sheet.entries if not _is_setting(entry)]
        rules = [rule for entry in lines if (rule := self._rule(entry))]
        self._check_fields(lines, form)
        self._check_labels()
        if form is None:
            return None
        return Program(tuple(rules), aggregate, form)

    def _report(self, code: str, place: SourcePlace, **params: str) -> None:
        self.problems.append(Problem(code, place, {name: value[:100] for name, value in params.items()}))

    def _near(self, word: str, words: Iterable[str]) -> str:
        self.guesses += 1
        return keywords.near(word, words) if self.guesses <= _MOST_GUESSES else ""

    # settings

    def _format(self) -> Format | None:
        entry = self.sheet.format
        if entry is None:
            self._report("missing_format", self.sheet.header_end)
            return None
        kind, root = entry.function, entry.argument
        form = _read_format(kind.text, root.text if root else "")
        if form is None and root is not None and kind.text in keywords.FORMATS:
            code = "argument_invalid" if kind.text == keywords.XML else "argument_unexpected"
            self._report(code, root.place, function=kind.text, met=root.text, kind="root")
        elif form is None:
            self._report(
                "unknown_format", kind.place, met=kind.text, near=self._near(kind.text, keywords.FORMATS)
            )
        return form

    def _aggregate(self) -> str:
        entries = [entry for entry in self.sheet.entries if entry.name.text in keywords.AGGREGATE]
        for again in entries[1:]:
            first = str(entries[0].name.place.line)
            self._report("duplicate_aggregate", again.name.place, name=again.name.text, first=first)
        for entry in entries:
            self._check_aggregate(entry)
        return keywords.AGGREGATE_WORDS.get(entries[0].function.text, _MEAN) if entries else _MEAN

    def _check_aggregate(self, entry: HeaderLine) -> None:
        met, further = entry.function, entry.argument
        if met.text not in keywords.AGGREGATE_WORDS:
            near = self._near(met.text, keywords.AGGREGATE_WORDS)
            self._report("unknown_aggregate", met.place, met=met.text, near=near)
        elif further is not None:
            self._report("argument_unexpected", further.place, function=met.text, met=further.text)

    # lines

    def _rule(self, entry: HeaderLine) -> Rule | None:
        function = BY_WORD.get(entry.function.text)
        if function is None:
            self._report_unknown_function(entry)
            return None
        if entry.argument is None and function.argument not in OPTIONAL:
            self._report(
                "argument_missing",
                _behind(entry.function),
                function=entry.function.text,
                kind=function.argument,
            )
            return None
        if entry.argument is not None and function.argument == "none":
            met = entry.argument
            self._report("argument_unexpected", met.place, function=entry.function.text, met=met.text)
            return None
        argument = self._argument(function, entry)
        return Rule(_field(entry.name), function, argument, entry.function.text, entry.name.place)

    def _report_unknown_function(self, entry: HeaderLine) -> None:
        met, name = entry.function, entry.name.text
        own_names = [word for pair in keywords.OWN_NAMES for word in pair.both()]
        # `@聚合法式:min` is a misspelt setting name, not an unknown function.
        near_name = (
            self._near(name, own_names) if name.startswith(("@", "＠")) and name not in own_names else ""
        )
        near = "" if near_name else self._near(met.text, BY_WORD)
        self._report("unknown_function", met.place, met=met.text, near=near, near_name=near_name, name=name)

    def _argument(self, function: Function, entry: HeaderLine) -> Argument:
        word = entry.argument
        if word is None:
            return None
        if function.argument in ("constant", "replacement"):
            return word.text
        if function.argument in _LABEL_KINDS:
            return self._labelled(function.argument, word)
        read = read_length if function.argument == "length" else _read_format_argument
        argument: Argument = read(word.text)
        if argument is None:
            params = {"function": entry.function.text, "met": word.text, "kind": function.argument}
            self._report("argument_invalid", word.place, **params)
        return argument

    def _labelled(self, kind: str, label: Word) -> Argument:
        if not label.text.startswith(_LABEL_KINDS[kind].both()):
            self._report("label_prefix", label.place, label=label.text, kind=kind)
        block = self.blocks.get(label.text)
        if block is None:
            near = self._near(label.text, self.blocks)
            self._report("label_undefined", label.place, label=label.text, near=near)
            return None
        if kind == "rule":
            return RuleText(block.label.text, block.text)
        return Code(block.label.text, block.text, self.functions.get(label.text, ""), block.first_line)

    # the whole

    def _check_fields(self, lines: list[HeaderLine], form: Format | None) -> None:
        if not lines and not self.sheet.misplaced and not _has_bad_lines(self.sheet):
            place = self.sheet.format.name.place if self.sheet.format else self.sheet.header_end
            self._report("no_rules", place)
        whole = [entry.name.text in keywords.WHOLE for entry in lines]
        if True in whole and False in whole:
            odd = lines[whole.index(not whole[0])].name
            self._report("mixed_fields", odd.place, name=odd.text)
        if form is not None and form.kind == "text":
            for entry, is_whole in zip(lines, whole, strict=True):
                if not is_whole:
                    self._report("field_not_allowed", entry.name.place, name=entry.name.text)

    def _check_blocks(self) -> None:
        functions = ((entry.argument, BY_WORD.get(entry.function.text)) for entry in self.sheet.entries)
        called = {
            label.text for label, function in functions if label and function and function.argument == "code"
        }
        for block in self.sheet.blocks:
            label = block.label.text
            if label in self.blocks:
                first = str(self.blocks[label].label.place.line)
                self._report("block_duplicate", block.label.place, label=label, first=first)
                continue
            self.blocks[label] = block
            if label.startswith(keywords.CODE_LABEL.both()) or label in called:
                self._check_python(block)

    def _check_python(self, block: CodeBlock) -> None:
        try:
            self.functions[block.label.text] = scoring_function(block.text)
        except PythonProblem as problem:
            place = (
                SourcePlace(block.first_line + problem.line - 1, problem.column)
                if problem.line
                else block.label.place
            )
            self._report(problem.code, place, label=block.label.text, **problem.params)

    def _check_pasted(self) -> None:
        for entry in (*self.sheet.entries, *self.sheet.misplaced):
            name = entry.name.text
            bullet = bullet_of(name)
            if bullet:
                self._report("pasted_bullet", entry.name.place, met=name, wanted=name.removeprefix(bullet))
            elif name.startswith("＠"):
                self._report("pasted_at_sign", entry.name.place, met=name, wanted=f"@{name[1:]}")
        for label, block in self.blocks.items():
            if label.startswith(keywords.CODE_LABEL.both()) and repaired(block.text):
                self._report("pasted_code", block.label.place, label=label)

    def _check_labels(self) -> None:
        entries = (*self.sheet.entries, *self.sheet.misplaced)
        used = {entry.argument.text for entry in entries if entry.argument}
        prefixes = tuple(word for pair in _LABEL_KINDS.values() for word in pair.both())
        for label, block in self.blocks.items():
            if label in used:
                continue
            code = "label_unused" if label.startswith(prefixes) else "label_prefix"
            self._report(code, block.label.place, label=label, kind="")


def _is_setting(entry: HeaderLine) -> bool:
    return entry.name.text in keywords.FORMAT or entry.name.text in keywords.AGGREGATE


def _has_bad_lines(sheet: Sheet) -> bool:
    return any(problem.code in ("bad_line", "header_after_format") for problem in sheet.problems)


def _behind(word: Word) -> SourcePlace:
    return SourcePlace(word.place.line, word.place.column + len(word.text))


def _field(name: Word) -> Field:
    if name.text in keywords.ALL:
        return Field("all", written=name.text)
    if name.text in keywords.WHOLE:
        return Field("whole", written=name.text)
    return Field("named", name.text, path_of(name.text), name.text)


def read_length(text: str) -> Length | None:
    """Parse `60` (at most) or `(20, 60)`; None for anything else."""
    plain = text.translate(_NARROW)
    if limit := _LIMIT.fullmatch(plain):
        return Length(0, int(limit[1]))
    both = _RANGE.fullmatch(plain)
    if both is None or int(both[1]) > int(both[2]):
        return None
    return Length(int(both[1]), int(both[2]))


def _read_format(kind: str, root: str = "") -> Format | None:
    """Parse `JSON`, `XML`, `XML` with a root, `字符串` or `text`; None for anything else."""
    if kind == keywords.XML and (not root or _XML_NAME.fullmatch(root)):
        return Format("xml", root)
    if root:
        return None
    if kind == keywords.JSON:
        return Format("json")
    return Format("text") if kind in keywords.TEXT else None


def _read_format_argument(text: str) -> Format | None:
    """Like `_read_format`, for a single argument such as `XML:root`."""
    kind, colon, root = text.replace("：", ":").partition(":")
    return None if colon and not root.strip() else _read_format(kind.strip(), root.strip())
