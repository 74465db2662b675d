"""Markdown of models, made safe: raw HTML is shown, not obeyed; pictures become links, so nothing is fetched."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

import nh3
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

LONGEST = 100_000  # characters; a longer text is shown as it is written
_TAGS = {
    *("h1", "h2", "h3", "h4", "h5", "h6", "p", "br", "hr", "blockquote", "ul", "ol", "li", "pre", "code"),
    *("a", "em", "strong", "s", "del", "table", "thead", "tbody", "tr", "th", "td"),
}
_ATTRIBUTES = {"a": {"href", "title"}, "ol": {"start"}, "em": {"lang"}}
_CHINESE = re.compile("[\u3400-\u9fff]")


def html_of(text: str) -> SafeString:
    """The text as HTML that can do nothing but be read."""
    if len(text) > LONGEST:
        return format_html('<div class="text">{}</div>', text)
    made = nh3.clean(
        _parser().render(text),
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
    )
    return mark_safe(made)  # noqa: S308 (nh3 has cleaned it)


@cache
def _parser() -> MarkdownIt:
    # "breaks", because models end lines where they mean a line's end.
    parser = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable(["table", "strikethrough"])
    parser.add_render_rule("image", _picture)
    parser.add_render_rule("em_open", _stress)
    return parser


def _stress(self: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    """Chinese is stressed otherwise than by slanting, so it is told apart."""
    stressed = tokens[index + 1].content if index + 1 < len(tokens) else ""
    return '<em lang="zh">' if _CHINESE.search(stressed) else "<em>"


def _picture(self: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    source = str(tokens[index].attrs.get("src", ""))
    return format_html('<a href="{}">{}</a>', source, tokens[index].content or source)
