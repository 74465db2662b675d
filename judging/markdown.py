"""Markdown of models, made safe: raw HTML is shown, not obeyed; pictures become links, so nothing is fetched.

Formulas ($…$, $$…$$, \\(…\\), \\[…\\]) become MathML, code in a named language is coloured.
"""

from __future__ import annotations

import json
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
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.texmath import texmath_plugin

from judging.core.formulas import mathml

LONGEST = 100_000  # characters; a longer text is shown as it is written
_TAGS = {
    *("h1", "h2", "h3", "h4", "h5", "h6", "p", "br", "hr", "blockquote", "ul", "ol", "li", "pre", "code"),
    *("a", "em", "strong", "s", "del", "table", "thead", "tbody", "tr", "th", "td", "span"),
    *(
        "math",
        "mrow",
        "mi",
        "mn",
        "mo",
        "mtext",
        "mspace",
        "mfrac",
        "msqrt",
        "mroot",
        "msub",
        "msup",
        "msubsup",
    ),
    *("munder", "mover", "munderover", "mtable", "mtr", "mtd", "mstyle", "mpadded", "mphantom", "menclose"),
}
_STRETCH = {"stretchy", "fence", "form", "minsize", "maxsize", "movablelimits", "separator", "accent"}
_ATTRIBUTES = {
    "a": {"href", "title"},
    "ol": {"start"},
    "em": {"lang"},
    "span": {"class"},
    "math": {"display"},
    "mi": {"mathvariant"},
    "mo": _STRETCH,
    "mspace": {"width", "linebreak"},
    "mfrac": {"linethickness"},
    "mtable": {"columnalign", "columnlines", "rowlines"},
    "mtd": {"columnalign"},
    "mstyle": {"displaystyle", "scriptlevel"},
    "mover": {"accent"},
    "munder": {"accentunder"},
}
LONGEST_CODE = 20_000  # characters; longer code stays plain, colouring it would cost too much
_CHINESE = re.compile("[\u3400-\u9fff]")


def html_of(text: str) -> SafeString:
    """The text as HTML that can do nothing but be read."""
    if len(text) > LONGEST:
        return format_html('<div class="text">{}</div>', text)
    made = nh3.clean(
        _parser().render(f"```json\n{text}\n```" if _is_json_object(text) else text),
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
    )
    return mark_safe(made)  # noqa: S308 (nh3 has cleaned it)


def _is_json_object(text: str) -> bool:
    """Such a text is no Markdown: its indents, stars and underscores mean themselves."""
    bare = text.strip()
    if not (bare.startswith("{") and bare.endswith("}")):
        return False
    try:
        return isinstance(json.loads(bare), dict)
    except (ValueError, RecursionError):
        return False


@cache
def _parser() -> MarkdownIt:
    # "breaks", because models end lines where they mean a line's end.
    parser = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable(["table", "strikethrough"])
    # As Pandoc has it: "$5 and $10" is money, since a space stands before or a digit behind.
    parser.use(
        dollarmath_plugin, allow_space=False, allow_digits=False, double_inline=True, renderer=_formula
    )
    parser.use(texmath_plugin, delimiters="brackets")
    for rule in ("math_inline", "math_single"):
        parser.add_render_rule(rule, _inline_formula)
    for rule in ("math_block", "math_block_eqno", "math_inline_double"):
        parser.add_render_rule(rule, _shown_formula)
    parser.options["highlight"] = _coloured
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


def _inline_formula(self: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    return _formula(tokens[index].content, {"display_mode": False})


def _shown_formula(self: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    return _formula(tokens[index].content, {"display_mode": True})


def _formula(latex: str, options: dict[str, Any]) -> str:
    """What can't be drawn is shown as it was written."""
    display = bool(options["display_mode"])
    return mathml(latex, display=display) or format_html("<code>{}</code>", latex)


def _coloured(code: str, language: str, _attributes: str) -> str:
    """The code with a class for each kind of word; empty where it stays plain."""
    if not language or len(code) > LONGEST_CODE:
        return ""
    # Loaded with the first code that is shown: a process that starts does not wait for it.
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    try:
        lexer = get_lexer_by_name(language, stripnl=False)
    except ClassNotFound:
        return ""
    return str(highlight(code, lexer, HtmlFormatter(nowrap=True, classprefix="t-")))
