"""What the repository tells its visitors, citations and agents."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from evalsite import __version__
from evalsite.mcp.tools import BY_NAME
from tools.site_hooks import llms_text

ROOT = Path(__file__).parents[2]


def test_the_citation_is_of_this_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert (citation["version"], citation["authors"]) == (__version__, [{"name": "The evalsite developers"}])


def test_the_release_publishes_to_no_registry() -> None:
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    commands = [step.get("run", "") for step in yaml.safe_load(text)["jobs"]["build"]["steps"]]
    assert "make wheel" in commands
    assert not re.search("pypi|twine|uv publish|docker push|npm publish", " ".join(commands))


def test_the_recipes_name_tools_that_exist() -> None:
    text = (ROOT / "SKILL.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\d\. `(\w+)`", text, re.MULTILINE)) <= BY_NAME.keys()


def test_the_page_on_agents_names_every_tool() -> None:
    text = (ROOT / "docs" / "agents.md").read_text(encoding="utf-8")
    assert [name for name in BY_NAME if f"`{name}`" not in text] == []


def test_the_list_for_language_models_has_the_english_pages() -> None:
    text = llms_text(ROOT / "docs")
    assert "- [Continuous integration](ci/)" in text
    assert ".zh" not in text
    assert ".md)" not in text
