"""The modules that a script may import, and a check for imports that would fail, made before any item is run."""

import ast
import sys
from collections.abc import Iterator

_IMPORTABLE = """
    __future__ abc array ast base64 binascii bisect calendar cmath collections collections.abc contextlib copy csv
    dataclasses datetime decimal difflib enum fractions functools hashlib heapq hmac html html.entities html.parser io
    itertools json json.decoder json.encoder keyword locale math numbers operator pprint random re reprlib secrets
    statistics string struct textwrap time token tokenize traceback types typing unicodedata urllib urllib.parse uuid
    warnings weakref xml xml.etree xml.etree.ElementTree zlib
"""
_ENCODINGS = """
    ascii latin-1 utf-8 utf-8-sig utf-16 utf-16-le utf-16-be utf-32 utf-7 gbk gb2312 gb18030 big5 shift_jis euc_jp
    euc_kr cp1252 cp437 idna punycode unicode_escape raw_unicode_escape hex base64 rot13 zlib
"""

IMPORTABLE = frozenset(_IMPORTABLE.split())
ENCODINGS = tuple(_ENCODINGS.split())

LAZY = (  # imported by the standard library itself, partly from C
    "_strptime",
    "copyreg",
    "encodings.idna",
    "jinja2.debug",
    "linecache",
    "stringprep",
    "xml.parsers.expat",
)

_CATCHING = frozenset(("ImportError", "Exception", "BaseException"))
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def is_importable(name: str) -> bool:
    return name in IMPORTABLE or name in LAZY


def failing_import(tree: ast.AST) -> tuple[str, int] | None:
    """The first module that cannot be imported, with its line, or None.

    Imports whose failure the script handles are allowed to fail, as are those for type checkers, which never run.
    """
    failing = sorted(_failing(tree), key=lambda pair: pair[1])
    return failing[0] if failing else None


def _failing(tree: ast.AST) -> Iterator[tuple[str, int]]:
    # A stack, because a script may be nested deeper than Python recurses.
    left: list[tuple[ast.AST, bool]] = [(tree, False)]
    while left:
        node, may_fail = left.pop()
        if isinstance(node, ast.Import | ast.ImportFrom) and not may_fail:
            yield from ((name, node.lineno) for name in _modules(node) if not is_importable(name))
        handled = may_fail and not isinstance(node, _FUNCTIONS)
        inside = _handled_body(node)
        left += [(child, handled or child in inside) for child in ast.iter_child_nodes(node)]


def _modules(node: ast.Import | ast.ImportFrom) -> list[str]:
    """The modules that a statement imports, including imported names that are not values of their module."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    module = "." * node.level + (node.module or "")
    return [module, *(f"{module}.{alias.name}" for alias in node.names if _is_no_value(module, alias.name))]


def _is_no_value(module: str, name: str) -> bool:
    is_there = name == "*" or hasattr(sys.modules.get(module), name)
    return not is_there or f"{module}.{name}" in sys.modules


def _handled_body(node: ast.AST) -> list[ast.stmt]:
    if isinstance(node, ast.Try | ast.TryStar) and any(map(_catches, node.handlers)):
        return node.body
    if isinstance(node, ast.With | ast.AsyncWith) and any(map(_suppresses, node.items)):
        return node.body
    if isinstance(node, ast.If) and _name_of(node.test) == "TYPE_CHECKING":
        return node.body
    return []


def _catches(handler: ast.ExceptHandler) -> bool:
    caught = handler.type
    several = caught.elts if isinstance(caught, ast.Tuple) else [caught]
    return any(exception is None or _name_of(exception) in _CATCHING for exception in several)


def _suppresses(item: ast.withitem) -> bool:
    call = item.context_expr
    return (
        isinstance(call, ast.Call)
        and _name_of(call.func) == "suppress"
        and any(_name_of(exception) in _CATCHING for exception in call.args)
    )


def _name_of(node: ast.expr) -> str:
    """The last component of a name or an attribute."""
    return getattr(node, "id", "") or getattr(node, "attr", "")
