"""The table of scoring functions. Adding one is one entry here and its sentence in the shell (held by a test)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from judging.core.rules import scoring
from judging.core.rules.scoring import Scored
from judging.core.rules.values import Value
from judging.core.rules.words import Pair

ArgumentKind = Literal["none", "length", "format", "constant", "replacement", "rule", "code"]
OPTIONAL: frozenset[ArgumentKind] = frozenset({"none", "replacement"})

Scorer = Callable[[Value, Value, Any], Scored]


@dataclass(frozen=True, slots=True)
class Function:
    """One function. `code` is also the name of its help; `by` says who scores: we, the judge model, a Python block.

    `score` takes the answer's value, the reference's (None where it is not needed), the argument.
    """

    code: str
    name: Pair
    argument: ArgumentKind
    needs_reference: bool
    by: Literal["machine", "judge", "code"]
    score: Scorer | None = None


FUNCTIONS: tuple[Function, ...] = (
    Function("exact_match", Pair("精确匹配", "exact_match"), "none", True, "machine", scoring.exact_match),
    Function("fuzzy_match", Pair("模糊匹配", "fuzzy_match"), "none", True, "judge"),
    Function("length", Pair("字数限制", "length"), "length", False, "machine", scoring.length),
    Function("format", Pair("格式限制", "format"), "format", False, "machine", scoring.has_format),
    Function("equals", Pair("常量等于", "equals"), "constant", False, "machine", scoring.equals),
    Function(
        "not_equals", Pair("常量不等于", "not_equals"), "constant", False, "machine", scoring.not_equals
    ),
    Function(
        "contained_in",
        Pair("精确存在于", "contained_in"),
        "replacement",
        True,
        "machine",
        scoring.contained_in,
    ),
    Function("contains", Pair("精确全包括", "contains"), "replacement", True, "machine", scoring.contains),
    Function("rule", Pair("自然语言规则", "rule"), "rule", True, "judge"),
    Function("python", Pair("Python代码", "python"), "code", True, "code"),
)

BY_WORD: dict[str, Function] = {word: function for function in FUNCTIONS for word in function.name.both()}
