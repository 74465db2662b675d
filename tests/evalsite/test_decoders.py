"""Decoders of msgspec are made when their module is imported: two threads that make the first one of a Struct at the
same time crash the process (msgspec 0.22)."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOCKED = "judging/core/sandbox/session.py"  # makes them under a lock
PLAIN = {"str", "int", "float", "bool", "msgspec.Raw"}
MODULES = [
    path
    for app in ("datasets", "evalsite", "judging")
    for path in sorted((ROOT / app).rglob("*.py"))
    if "migrations" not in path.parts and "msgspec" in path.read_text()
]


def calls(tree: ast.AST, name: str) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == name:
            yield node


def type_of(call: ast.Call) -> str:
    """The type that a call of `decode` or `convert` is given."""
    named = [one.value for one in call.keywords if one.arg == "type"]
    return ast.unparse((named or call.args[1:2] or [ast.Constant("")])[0])


def is_made(kind: str) -> bool:
    """Whether a decoder of this type exists, or the type is no Struct."""
    return kind.endswith(".type") or kind in PLAIN


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_decoders_are_made_when_their_module_is_imported(path: Path) -> None:
    tree = ast.parse(path.read_text())
    functions = [one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
    made = [ast.unparse(call) for one in functions for call in calls(one, "Decoder")]
    asked = [call for call in calls(tree, "decode") if any(one.arg == "type" for one in call.keywords)]
    asked += [call for call in calls(tree, "convert") if ast.unparse(call.func).startswith("msgspec")]
    made += [ast.unparse(call) for call in asked if not is_made(type_of(call))]
    assert path == ROOT / LOCKED or made == []
