"""The examples of docs/integrations are recognised, and imported without a rest."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.datasets.core.imports.reading import taken

FOLDER = Path(__file__).parents[4] / "docs" / "integrations"
EXAMPLE = re.compile(r"`([\w.-]+)`[:：]\n\n```json\n(.*?\n)```", re.DOTALL)
PAGES = {
    path.stem: EXAMPLE.findall(text)
    for path in sorted(FOLDER.glob("*.md"))
    if EXAMPLE.search(text := path.read_text(encoding="utf-8"))
}
TOOLS = [name for name in PAGES if not name.endswith(".zh")]


def test_there_is_a_page_for_each_tool_in_both_languages() -> None:
    assert len(TOOLS) == 10
    assert [PAGES[f"{name}.zh"] for name in TOOLS] == [PAGES[name] for name in TOOLS]


@pytest.mark.parametrize("name", TOOLS)
def test_the_example_becomes_rows_answers_and_verdicts(tmp_path: Path, name: str) -> None:
    found = taken(tmp_path, **{file.replace(".", "__"): text for file, text in PAGES[name]})
    assert (found.source, dict(found.left_out)) == (name.replace("-", "_"), {})
    assert [bool(part) for part in (found.rows, found.answers, found.verdicts)] == [True, True, True]
