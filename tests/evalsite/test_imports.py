"""A name that begins with an underscore is used only in its own module: by the code, the tests and the tools."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OURS = ("datasets", "evalsite", "judging", "tests", "tools")
MODULES = [
    path for app in OURS for path in sorted((ROOT / app).rglob("*.py")) if "migrations" not in path.parts
]


def is_private(name: str) -> bool:
    return any(part.startswith("_") and not part.startswith("__") for part in name.split("."))


def is_ours(name: str) -> bool:
    return name.split(".")[0] in OURS


def imports(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """(the name that a module of this project, or something in one, has here; its full name)"""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((one.asname or one.name, one.name) for one in node.names if is_ours(one.name))
        elif isinstance(node, ast.ImportFrom) and (node.level or is_ours(node.module or "")):
            yield from ((one.asname or one.name, f"{node.module}.{one.name}") for one in node.names)


def attributes(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """(object, attribute), also where monkeypatch replaces it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            yield ast.unparse(node.value), node.attr
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in (
            "getattr",
            "setattr",
            "monkeypatch.setattr",
        ):
            match node.args:
                case [of, ast.Constant(str(name)), *_]:
                    yield ast.unparse(of), name


def private_names(source: str) -> list[str]:
    """The private names of other modules of this project that a module uses. `_meta` is Django's, and documented."""
    tree = ast.parse(source)
    imported = dict(imports(tree))
    used = [f"{of}.{name}" for of, name in attributes(tree) if of in imported and name != "_meta"]
    return [name for name in (*imported.values(), *used) if is_private(name)]


def test_no_module_uses_private_names_of_another() -> None:
    used = {str(path.relative_to(ROOT)): private_names(path.read_text()) for path in MODULES}
    assert {path: names for path, names in used.items() if names} == {}


@pytest.mark.parametrize(
    "source",
    [
        "from judging.engine.planning import _next",
        "from judging.engine._planning import plan",
        "import judging.engine._planning",
        "from judging.engine import planning\nplanning._next()",
        "import judging.engine.planning\njudging.engine.planning._next()",
        "from judging.engine import planning as rows\nmonkeypatch.setattr(rows, '_next', None)",
    ],
)
def test_private_names_are_found_however_they_are_written(source: str) -> None:
    assert len(private_names(source)) == 1
