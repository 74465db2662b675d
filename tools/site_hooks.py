"""mkdocs hooks that adapt the pages of docs/ for the static site (see mkdocs.yml)."""

from __future__ import annotations

import re
from typing import Any

PICTURE = re.compile(r"^!\[(.+)\]\((images/[\w.-]+)\.png\)$", re.MULTILINE)
IN_BOTH_THEMES = r"![\1](\2.png#only-light)![\1](\2.dark.png#only-dark)"

TO_THE_OTHER_LANGUAGE = re.compile(r"\s?[(（]?\[(?:中文|English)\]\([\w.-]+\.md\)[)）]?")


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
