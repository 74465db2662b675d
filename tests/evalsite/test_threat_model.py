"""Each measure of the threat model is held by a test that exists."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAMED = re.compile(r"`(test_\w+)`")
DEFINED = re.compile(r"^\s*(?:async )?def (test_\w+)", re.MULTILINE)


def test_every_test_that_the_threat_model_names_exists() -> None:
    named = set(NAMED.findall((ROOT / "docs" / "threat-model.md").read_text()))
    defined = {
        name for path in (ROOT / "tests").rglob("test_*.py") for name in DEFINED.findall(path.read_text())
    }
    assert named
    assert named - defined == set()
