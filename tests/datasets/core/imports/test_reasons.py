"""Every source and every code of the importers of other tools' files has a message."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from datasets.core import imports
from datasets.core.imports.reasons import LEFT_OUT, NOT_USABLE, SOURCE_NAMES, WITH_WARNING
from datasets.core.imports.registry import SOURCES

ROOT = Path(__file__).parents[4]
CODE = "".join(path.read_text(encoding="utf-8") for path in Path(imports.__path__[0]).glob("*.py"))


def test_every_reason_for_leaving_out_has_a_sentence() -> None:
    codes = set(re.findall(r'leave_out\(\s*[^,]+(?:\([^)]*\))?,\s*"(\w+)"', CODE))
    assert {"no_answer", "verdict_without_row", "too_deep"} <= codes <= {*LEFT_OUT, *WITH_WARNING}


def test_every_reason_why_files_cannot_be_read_has_a_sentence() -> None:
    codes = set(re.findall(r'NotUsable\(\s*"(\w+)"', CODE))
    assert {"archive_broken", "json_broken", "no_table"} <= codes
    assert codes <= set(NOT_USABLE)


@pytest.mark.parametrize("page", ["docs/results.md", "docs/results.zh.md"])
def test_every_source_is_described(page: str) -> None:
    described = (ROOT / page).read_text(encoding="utf-8")
    assert [source.name for source in SOURCES if f"`{source.name}`" not in described] == []
    assert {source.name for source in SOURCES} == set(SOURCE_NAMES)
