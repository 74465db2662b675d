"""Everything named in the architecture pages exists, and so do the test files that tests/conftest.py names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import ALIKE_ON_ALL_DATABASES

ROOT = Path(__file__).parents[2]
CODE = [path for app in ("evalsite", "datasets", "judging", "tools") for path in (ROOT / app).rglob("*.py")]
FOLDERS = ("evalsite", "datasets", "judging", "templates", "static", "tests", "tools", "docs", ".ci")
PAGES = ("ARCHITECTURE.md", "docs/packages.md")


@pytest.fixture(params=PAGES)
def text(request: pytest.FixtureRequest) -> str:
    return (ROOT / request.param).read_text()


def test_every_module_that_is_named_exists(text: str) -> None:
    assert set(re.findall(r"\b[a-z_]+\.py\b", text)) - {path.name for path in CODE} == set()


def test_every_folder_that_is_named_exists(text: str) -> None:
    known = {folder.name for name in FOLDERS for folder in (ROOT / name).rglob("*/")} | set(FOLDERS)
    assert set(re.findall(r"(?<![\w/<])([a-z_]+)/", text)) - known == set()


def test_every_function_and_module_of_the_journeys_exists(text: str) -> None:
    known = {path.stem for path in CODE} | {path.name for path in (ROOT / "judging").rglob("*/")}
    known |= {name for path in CODE for name in re.findall(r"\b[a-z]+_[a-z_]+\b", path.read_text())}
    assert set(re.findall(r"\b[a-z]+_[a-z_]+\b", text)) - known == set()


def test_every_test_file_that_runs_on_one_database_only_exists() -> None:
    paths = [
        f"{folder}/{'' if name == '*' else f'test_{name}.py'}"
        for folder, names in ALIKE_ON_ALL_DATABASES.items()
        for name in names.split()
    ]
    assert [path for path in paths if not (ROOT / "tests" / path).exists()] == []
