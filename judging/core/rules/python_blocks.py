"""Which function of a Python block scores, found in its syntax tree; nothing of the block is compiled or run here.

Compiling would find every error of syntax, but a hostile block can make it take minutes (each `finally` is compiled
twice, nested ones twice as often again); what stands where it may not is found in the tree instead.
"""

from __future__ import annotations

import ast
import symtable
import warnings
from typing import NoReturn

from judging.core.rules.python_places import misplaced

REFERENCE, ANSWER = "ref_answer", "model_answer"


class PythonProblem(Exception):
    """`python_syntax` or `python_no_function`; line and column of the block, from 1, or 0 where there is no place."""

    def __init__(self, code: str, line: int = 0, column: int = 1, **params: str) -> None:
        super().__init__(code)
        self.code, self.line, self.column, self.params = code, line, column, params


def scoring_function(source: str) -> str:
    """The name of the one top-level function that takes both values by name. Raises PythonProblem."""
    found = [node for node in _parsed(source).body if isinstance(node, ast.FunctionDef) and _takes_both(node)]
    if not found:
        raise PythonProblem("python_no_function", count="0")
    if len(found) > 1:
        raise PythonProblem("python_no_function", found[1].lineno, count=str(len(found)))
    return found[0].name


def _parsed(source: str) -> ast.Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
            symtable.symtable(source, "<code>", "exec")  # names: twice a parameter, `nonlocal` of nothing
    except SyntaxError as error:
        _refuse(error.msg, error.lineno or 1, error.offset or 1)
    except (ValueError, OverflowError) as error:  # a NUL, half a character
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
    """Whether it can be called with the two names and nothing else."""
    arguments = function.args
    named = [argument.arg for argument in (*arguments.args, *arguments.kwonlyargs)]
    if REFERENCE not in named or ANSWER not in named:
        return False
    return not set(_required(arguments)) - {REFERENCE, ANSWER}


def _required(arguments: ast.arguments) -> list[str]:
    """The names of parameters without a default, positional-only ones as names that nothing can fill."""
    positional = [*(f"/{one.arg}" for one in arguments.posonlyargs), *(one.arg for one in arguments.args)]
    needed = positional[: len(positional) - len(arguments.defaults)]
    pairs = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    return needed + [one.arg for one, default in pairs if default is None]
