"""What mkdocs changes in a page of docs/ (mkdocs.yml)."""

from __future__ import annotations

import re
from typing import Any

TO_THE_OTHER_LANGUAGE = re.compile(r" ?[(（]?\[(?:中文|English)\]\([\w.-]+\.md\)[)）]?")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Without the link to the other language: the site has a menu for it, and each language is built alone."""
    return TO_THE_OTHER_LANGUAGE.sub("", markdown)
