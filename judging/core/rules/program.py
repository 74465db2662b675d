"""The data of a program in two forms: as written (`Sheet`) and as checked (`Program`). All frozen.

Source positions and the words as written are ignored when two programs are compared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from datasets.core.texts import Text, gettext_noop
from judging.core.rules import keywords
from judging.core.rules.keywords import Keyword
from judging.core.rules.values import Value

WARNINGS = frozenset({"label_unused", "pasted_bullet", "pasted_at_sign", "pasted_code"})


@dataclass(frozen=True, slots=True, order=True)
class SourcePlace:
    """Line and column in the program, both from 1; columns count characters."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Word:
    """A piece of the text and its position."""

    text: str
    place: SourcePlace = field(compare=False)


@dataclass(frozen=True, slots=True)
class Problem:
    """An error or a warning: its code, position, and the parameters of its message."""

    code: str
    place: SourcePlace
    params: dict[str, str] = field(default_factory=dict)

    @property
    def is_warning(self) -> bool:
        return self.code in WARNINGS


# --- as written ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HeaderLine:
    """A header line: `name : function [: argument]`. The function is '' if the line ends with its colon."""

    name: Word
    function: Word
    argument: Word | None


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """`<label>` … `</label>`; `text` is exactly what is between the tags, without the newlines next to them."""

    label: Word
    text: str
    first_line: int = field(compare=False)


@dataclass(frozen=True, slots=True)
class Sheet:
    """Everything as written, in order. `misplaced`: header lines after the format line."""

    entries: tuple[HeaderLine, ...]
    format: HeaderLine | None
    misplaced: tuple[HeaderLine, ...]
    blocks: tuple[CodeBlock, ...]
    header_end: SourcePlace
    problems: tuple[Problem, ...]


# --- as checked ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Format:
    """An answer format. `root`, for XML only: the element around the fields, '' if they are siblings at the top."""

    kind: Literal["json", "xml", "text"]
    root: str = ""

    def written(self, language: str) -> str:
        """The format as it is written in a program."""
        if self.kind == "text":
            return keywords.TEXT.in_language(language)
        if self.kind == "json":
            return keywords.JSON
        return f"{keywords.XML}:{self.root}" if self.root else keywords.XML


@dataclass(frozen=True, slots=True)
class Field:
    """The field that a line scores. `path`: keys and indices of `a.b[0]`, empty for a plain name."""

    kind: Literal["named", "all", "whole"]
    name: str = ""
    path: tuple[str | int, ...] = ()
    written: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Length:
    """A range of lengths in characters, both ends included."""

    low: int
    high: int


@dataclass(frozen=True, slots=True)
class RuleText:
    """The block of a natural-language rule."""

    label: str
    text: str


@dataclass(frozen=True, slots=True)
class Code:
    """A Python block, and which of its functions to call."""

    label: str
    source: str
    function: str
    first_line: int = field(compare=False)


Argument = str | Length | Format | RuleText | Code | None
ArgumentKind = Literal["none", "length", "format", "constant", "replacement", "rule", "code"]
ARGUMENTS: dict[ArgumentKind, Text] = {
    "none": gettext_noop("no argument"),
    "length": gettext_noop("60, or (20, 60)"),
    "format": gettext_noop("JSON, XML, XML:root or text"),
    "constant": gettext_noop("a text to compare with"),
    "replacement": gettext_noop("a text to use instead of the reference (optional)"),
    "rule": gettext_noop("the label of a block, such as rule1"),
    "code": gettext_noop("the label of a block, such as code1"),
}
OPTIONAL: frozenset[ArgumentKind] = frozenset({"none", "replacement"})


@dataclass(frozen=True, slots=True)
class Function:
    """A scoring function. `help` says what it scores; `by`: scored by us, the judge model or a Python block.

    `score` takes the answer's value, the reference's (None if not needed) and the argument.
    """

    code: str
    name: Keyword
    help: Text
    argument: ArgumentKind
    needs_reference: bool
    by: Literal["machine", "judge", "code"]
    score: Callable[[Value, Value, Any], Scored] | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """One line: a field, a function and its argument. `word` is the function's name as written."""

    target: Field
    function: Function
    argument: Argument
    word: str = field(compare=False)
    place: SourcePlace = field(compare=False)
    needs_reference: bool = field(init=False, compare=False)
    """Whether the function compares with the reference's field; an argument can replace it."""

    def __post_init__(self) -> None:
        # Precomputed, because it is needed for every line of every answer.
        replaced = self.function.argument == "replacement" and self.argument is not None
        object.__setattr__(self, "needs_reference", self.function.needs_reference and not replaced)

    @property
    def language(self) -> Literal["zh", "en"]:
        return "zh" if self.word == self.function.name.zh else "en"


@dataclass(frozen=True, slots=True)
class Program:
    """A checked program."""

    rules: tuple[Rule, ...]
    aggregate: str
    format: Format

    @property
    def needs_judge(self) -> bool:
        """Whether a judge model has to score a line."""
        return any(rule.function.by == "judge" for rule in self.rules)


# --- results of a line -----------------------------------------------------------------------------------------

BEST, WORST = 5, 1


# Several are created for every answer: a struct takes a quarter of a dataclass's time and forms no cycles.
class Reason(msgspec.Struct, frozen=True, gc=False):
    """Why a line has its score or none: a code and the parameters of its message."""

    code: str
    params: dict[str, str] = {}


class Scored(msgspec.Struct, frozen=True, gc=False):
    """A line's score, 1 to 5, with its reason."""

    score: int | float
    reason: Reason


@dataclass(frozen=True, slots=True)
class BlockCall:
    """A call of a Python block, to be run in the sandbox. `arguments`: its two parameters as JSON."""

    line: int
    code: Code
    arguments: str
