"""World-readable copy of the packages a sandbox needs, since a checkout may be readable by its owner only."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import jinja2
import markupsafe
import msgspec

ROOT = Path(__file__).parents[4]
PACKAGES = ("datasets/core", "judging/core", "tests/judging/core/sandbox")
MODULES = ("evalsite/__init__.py", "evalsite/rounding.py")


@contextmanager
def readable_copy() -> Iterator[Path]:
    """Yield a temporary folder to import from."""
    with tempfile.TemporaryDirectory(prefix="evalsite-test-", dir="/tmp") as name:
        place = Path(name)
        for package in PACKAGES:
            _copy(ROOT / package, place / package)
            for folder in Path(package).parents:
                if (ROOT / folder / "__init__.py").exists() and folder != Path():
                    shutil.copyfile(ROOT / folder / "__init__.py", place / folder / "__init__.py")
        for path in MODULES:
            (place / path).parent.mkdir(exist_ok=True)
            shutil.copyfile(ROOT / path, place / path)
        for module in (jinja2, markupsafe, msgspec):
            _copy(Path(module.__file__ or "").parent, place / module.__name__)
        for one in (place, *place.rglob("*")):
            one.chmod(0o755 if one.is_dir() else 0o644)
        yield place


def _copy(source: Path, target: Path) -> None:
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
