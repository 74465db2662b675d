"""What mkdocs changes in a page of docs/ (mkdocs.yml)."""

from __future__ import annotations

import re
from typing import Any

PICTURE = re.compile(r"^!\[(.+)\]\((images/[\w.-]+)\.png\)$", re.MULTILINE)
IN_BOTH_THEMES = r"![\1](\2.png#only-light)![\1](\2.dark.png#only-dark)"

TO_THE_OTHER_LANGUAGE = re.compile(r" ?[(（]?\[(?:中文|English)\]\([\w.-]+\.md\)[)）]?")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Without the link to the other language, for which the site has a menu; with pictures in the page's theme."""
    return PICTURE.sub(IN_BOTH_THEMES, TO_THE_OTHER_LANGUAGE.sub("", markdown))
