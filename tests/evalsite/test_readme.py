"""README, user guide and interface use the same labels; the README's links are valid."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PARTS = sorted((ROOT / "evalsite" / "locale" / "zh_Hans" / "parts").glob("*.json"))
TEXTS = [(key, value) for path in PARTS for key, value in json.loads(path.read_text()).items()]
CHINESE: dict[str, set[str]] = {}  # text → its translations, in all contexts
for key, value in TEXTS:
    CHINESE.setdefault(key.rpartition("\x04")[2], set()).update([value] if isinstance(value, str) else value)
SOURCES = [path for app in ("evalsite", "datasets", "judging") for path in (ROOT / app).rglob("*.py")]
SOURCES += (ROOT / "templates").rglob("*.html")
LABELS = {"en": re.compile(r"\*([^*\n]+)\*"), "zh": re.compile(r"“([^”\n]+)”")}
NO_LABELS = re.compile(r"`[^`\n]*`|\*\*[^*\n]+\*\*|^    .*$", re.MULTILINE)
README = {"en": "README.md", "zh": "README.zh.md"}
GUIDES = ("start", "datasets", "metrics", "rating", "reviewing", "administration")
PAGES = [README, *({"en": f"docs/{name}.md", "zh": f"docs/{name}.zh.md"} for name in GUIDES)]


def steps(language: str) -> list[str]:
    return re.findall(r"^\d\. .*(?:\n   .*)*", (ROOT / README[language]).read_text(), re.MULTILINE)


def labels(language: str, text: str) -> set[str]:
    """Interface labels quoted in a text; `*Runs → New run*` contains two."""
    found = LABELS[language].findall(NO_LABELS.sub("", text))
    return {label for each in found for label in each.split(" → ")}


@pytest.mark.parametrize("language", README)
def test_there_are_five_steps_and_each_names_a_label(language: str) -> None:
    assert [bool(labels(language, step)) for step in steps(language)] == [True] * 5


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page["en"])
def test_every_label_that_a_page_quotes_is_a_text_of_the_interface(page: dict[str, str]) -> None:
    sources = "".join(path.read_text() for path in SOURCES)
    quoted = labels("en", (ROOT / page["en"]).read_text())
    assert {label for label in quoted if label not in CHINESE or label not in sources} == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page["zh"])
def test_every_label_that_a_chinese_page_quotes_is_a_text_of_the_interface(page: dict[str, str]) -> None:
    quoted = labels("zh", (ROOT / page["zh"]).read_text())
    assert quoted - set().union(*CHINESE.values()) == set()


@pytest.mark.parametrize("page", PAGES[1:], ids=lambda page: page["en"])
def test_both_languages_of_a_guide_quote_the_same_labels(page: dict[str, str]) -> None:
    english, chinese = (labels(language, (ROOT / name).read_text()) for language, name in page.items())
    assert [label for label in english if not CHINESE[label] & chinese] == []
    assert len(english) == len(chinese)


def test_every_page_of_the_documentation_but_those_for_developers_is_in_both_languages() -> None:
    """Checks the pages in the site's menu before `Development`; the rest is in English only, as the menu says."""
    menu = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2].partition("- Development:")[0]
    pages = re.findall(r"([\w/-]+)\.md", menu)
    assert {"index", "start", "runs", "glossary", "deploy", "settings"} <= set(pages)
    assert [page for page in pages if not (ROOT / "docs" / f"{page}.zh.md").exists()] == []


def test_both_readmes_name_the_same_labels_in_the_steps() -> None:
    english, chinese = (labels(language, "".join(steps(language))) for language in README)
    assert [label for label in english if not CHINESE[label] & chinese] == []
    assert len(english) == len(chinese)


@pytest.mark.parametrize("name", README.values())
def test_everything_that_a_readme_links_to_exists(name: str) -> None:
    text = (ROOT / name).read_text()
    linked = re.findall(r"\]\(([^)#:]+)\)|(?:src|srcset)=\"([^\"]+)\"", text)
    assert [one or two for one, two in linked if not (ROOT / (one or two)).exists()] == []


@pytest.mark.parametrize("name", README.values())
def test_the_picture_has_a_light_and_a_dark_version(name: str) -> None:
    assert len(re.findall(r"docs/images/[\w.]+\.png", (ROOT / name).read_text())) == 2
