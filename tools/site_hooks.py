"""mkdocs hooks that adapt the pages of docs/ for the static site (see mkdocs.yml)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

PICTURE = re.compile(r"^!\[(.+)\]\((images/[\w.-]+)\.png\)$", re.MULTILINE)
IN_BOTH_THEMES = r"![\1](\2.png#only-light)![\1](\2.dark.png#only-dark)"

TO_THE_OTHER_LANGUAGE = re.compile(r"\s?[(（]?\[(?:中文|English)\]\([\w.-]+\.md\)[)）]?")

LINK = re.compile(r"\[([^\]]+)\]\([^)]+\)")
CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
WRAPPED_CHINESE = re.compile(
    r"(?<=[\u2014-\u201d\u3000-\u9fff\uff00-\uffef])\n {0,3}(?=[\u2014-\u201d\u3000-\u9fff\uff00-\uffef])"
)


def joined(markdown: str) -> str:
    """Join the wrapped lines of Chinese paragraphs, since a line break would be rendered as a space."""
    code = CODE.findall(markdown)
    texts = [WRAPPED_CHINESE.sub("", text) for text in CODE.split(markdown)]
    return "".join(text + block for text, block in zip(texts, [*code, ""], strict=True))


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Remove the link to the other language, which is in the site's menu; show pictures in the page's theme."""
    return joined(PICTURE.sub(IN_BOTH_THEMES, TO_THE_OTHER_LANGUAGE.sub("", markdown)))


def on_post_build(config: Any, **_: Any) -> None:
    """Write llms.txt, the list of English pages for language models."""
    docs = Path(config["docs_dir"])
    (Path(config["site_dir"]) / "llms.txt").write_text(llms_text(docs), encoding="utf-8")


def llms_text(docs: Path) -> str:
    """The pages of the guide with their titles and first sentences, as https://llmstxt.org has it."""
    paths = [*sorted(docs.glob("*.md")), *sorted(docs.glob("integrations/*.md"))]
    pages = [path for path in paths if not path.name.endswith(".zh.md")]
    lines = [_line(path, docs) for path in pages if path.name != "index.md"]
    return "\n".join(
        ["# evalsite", "", "> LLM evaluation you can audit.", "", "## Documentation", "", *lines, ""]
    )


def _line(path: Path, docs: Path) -> str:
    title, _break, rest = path.read_text(encoding="utf-8").partition("\n")
    paragraph = " ".join(rest.strip().partition("\n\n")[0].split())
    first = LINK.sub(r"\1", TO_THE_OTHER_LANGUAGE.sub("", paragraph)).partition(". ")[0].rstrip(".:")
    is_text = paragraph[:1].isalnum() or paragraph[:1] in "`*"
    name = title.removeprefix("# ")
    return f"- [{name}]({path.relative_to(docs).with_suffix('').as_posix()}/)" + (
        f": {first}." if is_text else ""
    )
