"""Each measure in the threat model names an existing test."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAMED = re.compile(r"`(test_\w+)`")
DEFINED = re.compile(r"^\s*(?:async )?def (test_\w+)", re.MULTILINE)


def names_in(page: str) -> list[str]:
    return NAMED.findall((ROOT / "docs" / page).read_text())


def test_both_languages_name_the_same_tests() -> None:
    assert names_in("threat-model.zh.md") == names_in("threat-model.md")


def test_every_test_that_the_threat_model_names_exists() -> None:
    named = set(names_in("threat-model.md"))
    defined = {
        name for path in (ROOT / "tests").rglob("test_*.py") for name in DEFINED.findall(path.read_text())
    }
    assert named
    assert named - defined == set()
