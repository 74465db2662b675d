"""A program in two forms: as written (`Sheet`) and as checked (`Program`). All frozen.

Places and the words as written do not count when two programs are compared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from judging.core.rules.keywords import Keyword
from judging.core.rules.values import Value

WARNINGS = frozenset({"label_unused"})


@dataclass(frozen=True, slots=True, order=True)
class SourcePlace:
    """Line and column in the program, both from 1; columns count characters."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Word:
    """A piece of the text, and where it starts."""

    text: str
    place: SourcePlace = field(compare=False)


@dataclass(frozen=True, slots=True)
class Problem:
    """An error or a warning: its code, its position, and the parameters of its sentence."""

    code: str
    place: SourcePlace
    params: dict[str, str] = field(default_factory=dict)

    @property
    def is_warning(self) -> bool:
        return self.code in WARNINGS


# --- as written ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HeaderLine:
    """A header line: `name : function [: argument]`. The function is '' where the line ends with its colon."""

    name: Word
    function: Word
    argument: Word | None


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """`<label>` … `</label>`; `text` is exactly what is between, less the newlines at the tags."""

    label: Word
    text: str
    first_line: int = field(compare=False)


@dataclass(frozen=True, slots=True)
class Sheet:
    """Everything that is written, in its order. `misplaced`: header lines behind the format line."""

    entries: tuple[HeaderLine, ...]
    format: HeaderLine | None
    misplaced: tuple[HeaderLine, ...]
    blocks: tuple[CodeBlock, ...]
    header_end: SourcePlace
    problems: tuple[Problem, ...]


# --- as meant --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Format:
    """`root` only of XML: the name of the element around the fields, '' where they are side by side."""

    kind: Literal["json", "xml", "text"]
    root: str = ""


@dataclass(frozen=True, slots=True)
class Field:
    """Whose value a line scores. `path`: keys and indices of `a.b[0]`, empty for a plain name; `name` of named ones."""

    kind: Literal["named", "all", "whole"]
    name: str = ""
    path: tuple[str | int, ...] = ()
    written: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Length:
    """Characters, both ends included."""

    low: int
    high: int


@dataclass(frozen=True, slots=True)
class RuleText:
    """A natural-language rule's block."""

    label: str
    text: str


@dataclass(frozen=True, slots=True)
class Code:
    """A Python block, and which of its functions is called."""

    label: str
    source: str
    function: str
    first_line: int = field(compare=False)


Argument = str | Length | Format | RuleText | Code | None
ArgumentKind = Literal["none", "length", "format", "constant", "replacement", "rule", "code"]
OPTIONAL: frozenset[ArgumentKind] = frozenset({"none", "replacement"})


@dataclass(frozen=True, slots=True)
class Function:
    """One function. `code` is also the name of its help; `by` says who scores: we, the judge model, a Python block.

    `score` takes the answer's value, the reference's (None if it is not needed), the argument.
    """

    code: str
    name: Keyword
    argument: ArgumentKind
    needs_reference: bool
    by: Literal["machine", "judge", "code"]
    score: Callable[[Value, Value, Any], Scored] | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """One line: a field, a function, its argument. `word` is the function's name as written."""

    target: Field
    function: Function
    argument: Argument
    word: str = field(compare=False)
    place: SourcePlace = field(compare=False)
    needs_reference: bool = field(init=False, compare=False)
    """Whether the function compares with the reference's field: an argument can take its place."""

    def __post_init__(self) -> None:
        # Asked for every line of every answer, so it is computed once.
        replaced = self.function.argument == "replacement" and self.argument is not None
        object.__setattr__(self, "needs_reference", self.function.needs_reference and not replaced)

    @property
    def language(self) -> Literal["zh", "en"]:
        return "zh" if self.word == self.function.name.zh else "en"


@dataclass(frozen=True, slots=True)
class Program:
    """A program without errors."""

    rules: tuple[Rule, ...]
    aggregate: str
    format: Format
    blocks: tuple[CodeBlock, ...] = ()

    @property
    def needs_judge(self) -> bool:
        """Whether a line has to be asked of a judge model."""
        return any(rule.function.by == "judge" for rule in self.rules)


# --- what a line gives -----------------------------------------------------------------------------------------

BEST, WORST = 5, 1


# Several for every answer: a struct is made in a quarter of a dataclass's time, and it is in no cycle.
class Reason(msgspec.Struct, frozen=True, gc=False):
    """Why a line has its score, or none: a code and the parameters of its sentence."""

    code: str
    params: dict[str, str] = {}


class Scored(msgspec.Struct, frozen=True, gc=False):
    """A line's score, 1 to 5, with its reason."""

    score: int | float
    reason: Reason


@dataclass(frozen=True, slots=True)
class BlockCall:
    """A call of a Python block to be run in the sandbox. `arguments`: JSON text of its two parameters."""

    line: int
    code: Code
    arguments: str
