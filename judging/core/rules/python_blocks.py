"""Python blocks: finds the scoring function of a block and runs it in the sandbox.

Checking only inspects the syntax tree; it compiles and runs nothing. Compiling would find every syntax error, but a
hostile block can make it take minutes (each `finally` is compiled twice, nested ones exponentially often), so misplaced
statements are found in the tree instead.
"""

from __future__ import annotations

import ast
import symtable
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

from datasets.core.texts import Text, gettext_noop
from evalsite.rounding import significant
from judging.core.rules.program import BEST, WORST, BlockCall, Code, Reason, Scored
from judging.core.sandbox.job import SandboxFailure
from judging.core.sandbox.pool import Sandbox
from judging.core.scripts import ScriptOutcome, run_preprocess

FAILED, NO_SCORE = "code.failed", "code.result"

# The block runs in its own namespace, so that its names are separate. These lines come after as many empty lines as the
# block has, so that a line number tells whether it belongs to the block.
_AROUND = """\
import decimal
import fractions
import json
_own = {{"__name__": __name__, "__builtins__": __builtins__}}
exec(compile({source!r}, "<script>", "exec", dont_inherit=True), _own)
_score = _own[{function!r}]
def preprocess(data, resp):
    score = _score(**json.loads(data["arguments"]))
    if isinstance(score, bool):
        return "bool " + repr(score)
    if isinstance(score, (int, float, fractions.Fraction, decimal.Decimal)) and {low} <= score <= {high}:
        return int(score) if score == int(score) and not isinstance(score, float) else float(score)
    shown = repr(score).encode("utf-8", "replace").decode().replace(chr(0), "?")
    return f"{{type(score).__name__}} {{shown[:200]}}"
"""
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_ASYNC = (ast.AsyncFor, ast.AsyncWith, ast.Await)

REASONS: dict[str, Text] = {
    "code_returned": gettext_noop("The block “%(label)s” returned %(score)s."),
    "code.failed": gettext_noop("The Python block failed. Fix it, or check the values it received."),
    "code.result": gettext_noop(
        "The Python block did not return a number from 1 to 5 (True and False don't count)."
    ),
}
"""Why a line has the score of its block or none, by code."""

REFERENCE, ANSWER = "ref_answer", "model_answer"


class PythonProblem(Exception):
    """A block cannot be used: `python_syntax` or `python_no_function`.

    Line and column are within the block, from 1; the line is 0 if there is no position.
    """

    def __init__(self, code: str, line: int = 0, column: int = 1, **params: str) -> None:
        super().__init__(code)
        self.code, self.line, self.column, self.params = code, line, column, params


def scoring_function(source: str) -> str:
    """The name of the only top-level function that accepts both values by name. Raises PythonProblem."""
    functions = [
        node for node in _parsed(source).body if isinstance(node, ast.FunctionDef) and _takes_both(node)
    ]
    if not functions:
        raise PythonProblem("python_no_function", count="0")
    if len(functions) > 1:
        raise PythonProblem("python_no_function", functions[1].lineno, count=str(len(functions)))
    return functions[0].name


def _parsed(source: str) -> ast.Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
            symtable.symtable(source, "<code>", "exec")  # names: duplicate parameters, unbound `nonlocal`
    except SyntaxError as error:
        _refuse(error.msg, error.lineno or 1, error.offset or 1)
    except (ValueError, OverflowError) as error:  # a NUL or a lone surrogate
        _refuse(str(error))
    except (RecursionError, MemoryError):
        _refuse("too deeply nested")
    for node, what in misplaced(tree):
        before = source.split("\n")[node.lineno - 1].encode()[: node.col_offset]
        _refuse(what, node.lineno, len(before.decode()) + 1)
    return tree


def _refuse(detail: str, line: int = 1, column: int = 1) -> NoReturn:
    raise PythonProblem("python_syntax", max(1, line), max(1, column), detail=detail) from None


def _takes_both(function: ast.FunctionDef) -> bool:
    """Whether it can be called with the two keyword arguments and nothing else."""
    arguments = function.args
    named = [argument.arg for argument in (*arguments.args, *arguments.kwonlyargs)]
    if REFERENCE not in named or ANSWER not in named:
        return False
    return not set(_required(arguments)) - {REFERENCE, ANSWER}


def _required(arguments: ast.arguments) -> list[str]:
    """The names of parameters without a default; positional-only ones get a `/`, so that no keyword can match them."""
    positional = [
        *(f"/{argument.arg}" for argument in arguments.posonlyargs),
        *(argument.arg for argument in arguments.args),
    ]
    needed = positional[: len(positional) - len(arguments.defaults)]
    pairs = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    return needed + [argument.arg for argument, default in pairs if default is None]


@dataclass(frozen=True, slots=True)
class _Around:
    """What encloses a node."""

    function: bool = False
    asynchronous: bool = False
    loop: bool = False


def misplaced(tree: ast.Module) -> Iterator[tuple[ast.stmt | ast.expr, str]]:
    """Each misplaced node, in text order, with Python's own error message."""
    waiting: list[tuple[ast.AST, _Around]] = [(tree, _Around())]
    while waiting:
        node, around = waiting.pop()
        if isinstance(node, (ast.stmt, ast.expr)) and (what := _wrong(node, around)):
            yield node, what
        waiting += reversed(_inside(node, around))


def _wrong(node: ast.stmt | ast.expr, around: _Around) -> str:
    if isinstance(node, (ast.Return, ast.Yield, ast.YieldFrom)) and not around.function:
        return f"'{'return' if isinstance(node, ast.Return) else 'yield'}' outside function"
    if isinstance(node, _ASYNC) and not around.asynchronous:
        return f"'{'await' if isinstance(node, ast.Await) else 'async'}' outside async function"
    if isinstance(node, ast.Break) and not around.loop:
        return "'break' outside loop"
    if isinstance(node, ast.Continue) and not around.loop:
        return "'continue' not properly in loop"
    return ""


def _inside(node: ast.AST, around: _Around) -> list[tuple[ast.AST, _Around]]:
    """The node's children with their surroundings: only a body is inside its function, class or loop."""
    body = _of_body(node, around)
    pairs: list[tuple[ast.AST, _Around]] = []
    for name, value in ast.iter_fields(node):
        children = value if isinstance(value, list) else [value]
        place = body if name == "body" else around
        pairs += [(child, place) for child in children if isinstance(child, ast.AST)]
    return pairs


def _of_body(node: ast.AST, around: _Around) -> _Around:
    if isinstance(node, _FUNCTIONS):
        return _Around(function=True, asynchronous=isinstance(node, ast.AsyncFunctionDef))
    if isinstance(node, ast.ClassDef):
        return _Around()
    return replace(around, loop=True) if isinstance(node, _LOOPS) else around


def run_code(
    sandbox: Sandbox, code: Code, calls: Sequence[BlockCall], *, each_alone: bool = False
) -> list[Scored | Reason]:
    """The score of each call of this block, in order, or why there is none (`code.failed`, `code.result`)."""
    items = [({"arguments": call.arguments}, {"content": ""}) for call in calls]
    outcomes = run_preprocess(sandbox, script_for(code), items, each_alone=each_alone)
    return [_found(outcome, code) for outcome in outcomes]


def script_for(code: Code) -> str:
    """The script that calls the block's function with keyword arguments."""
    around = _AROUND.format(source=code.source, function=code.function, low=WORST, high=BEST)
    return "\n" * _lines_in(code) + around


def _found(outcome: ScriptOutcome, code: Code) -> Scored | Reason:
    if outcome.failure is not None:
        return Reason(FAILED, _error_params(outcome.failure, code))
    score = outcome.result
    if isinstance(score, (int, float)) and not isinstance(score, bool) and WORST <= score <= BEST:
        return Scored(score, Reason("code_returned", {"label": code.label, "score": significant(score, 6)}))
    return Reason(NO_SCORE, {"label": code.label, "met": str(score)[:200]})


def _error_params(failure: SandboxFailure, code: Code) -> dict[str, str]:
    """Python's error message, and its line in the program."""
    inside = failure.line if failure.line and failure.line <= _lines_in(code) else None
    place = str(code.first_line + inside - 1) if inside else ""
    return {"label": code.label, "why": failure.code, "detail": failure.message, "code_line": place}


def _lines_in(code: Code) -> int:
    return code.source.count("\n") + 1
