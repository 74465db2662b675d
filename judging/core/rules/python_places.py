"""What stands in a syntax tree where Python does not allow it: the errors that only compiling would tell otherwise."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_ASYNC = (ast.AsyncFor, ast.AsyncWith, ast.Await)


@dataclass(frozen=True, slots=True)
class _Around:
    """What a node stands in."""

    function: bool = False
    asynchronous: bool = False
    loop: bool = False


def misplaced(tree: ast.Module) -> Iterator[tuple[ast.stmt | ast.expr, str]]:
    """Each misplaced node in the order of the text, with Python's own words about it."""
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
    """The node's children, with what they stand in: only a body stands in its function, class or loop."""
    body = _of_body(node, around)
    found: list[tuple[ast.AST, _Around]] = []
    for name, value in ast.iter_fields(node):
        children = value if isinstance(value, list) else [value]
        place = body if name == "body" else around
        found += [(child, place) for child in children if isinstance(child, ast.AST)]
    return found


def _of_body(node: ast.AST, around: _Around) -> _Around:
    if isinstance(node, _FUNCTIONS):
        return _Around(function=True, asynchronous=isinstance(node, ast.AsyncFunctionDef))
    if isinstance(node, ast.ClassDef):
        return _Around()
    return replace(around, loop=True) if isinstance(node, _LOOPS) else around
