"""Count names that say nothing about what a value holds; exit status 1 if there are more than LIMIT.

python tools/names.py    print the number, and the files with the most if there are too many
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("evalsite", "datasets", "judging")
VAGUE = frozenset(("one", "found", "given", "asked", "known", "made", "kept"))
LIMIT = 100
"""Lower it with the number, so that no new ones appear."""
FILES_SHOWN = 10


def names_in(source: str) -> Iterator[str]:
    """Every occurrence of a variable, parameter or attribute."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Attribute):
            yield node.attr


def vague_names(source: str) -> int:
    """The number of occurrences of vague names."""
    return sum(name in VAGUE for name in names_in(source))


def counts() -> dict[str, int]:
    """{file: vague names} of the packages, without migrations."""
    paths = (path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py")))
    return {
        str(path.relative_to(ROOT)): vague_names(path.read_text())
        for path in paths
        if "migrations" not in path.parts
    }


def report(by_file: Mapping[str, int], limit: int) -> tuple[bool, str]:
    """Whether there are few enough, and the text to print."""
    total = sum(by_file.values())
    summary = f"{total} vague names ({', '.join(sorted(VAGUE))}), {limit} allowed"
    if total <= limit:
        return True, summary
    most = sorted(by_file, key=lambda path: (-by_file[path], path))[:FILES_SHOWN]
    return False, "\n".join([summary, *(f"{by_file[path]:5} {path}" for path in most)])


def main() -> int:
    passed, text = report(counts(), LIMIT)
    print(text)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
