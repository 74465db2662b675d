"""Safe rendering of models' Markdown: raw HTML is escaped, and pictures become links, so nothing is fetched.

Formulas ($…$, $$…$$, \\(…\\), \\[…\\]) become MathML; code with a language is highlighted.
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
from django.utils.translation import gettext as _
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_block import StateBlock
from markdown_it.token import Token

from judging.markdown_formulas import formulas_plugin, mathml
from judging.marked_text import Place, marked_html, pieces

LONGEST = 100_000  # characters; longer texts are shown as plain text
# The cost limit of a page's texts: less than two seconds, even if every step takes the maximum time.
PAGE_MARKUP = 25_000  # characters of markup, up to 35 microseconds each
PAGE_EXTRAS = 75_000  # steps of formulas and code, up to 14 microseconds each
FORMULA_COST = 8  # per formula, in addition to its length
_TAG_NAMES = """
    h1 h2 h3 h4 h5 h6 p br hr blockquote ul ol li pre code
    a em strong s del table thead tbody tr th td span
    math mrow mi mn mo mtext mspace mfrac msqrt mroot msub msup msubsup
    munder mover munderover mtable mtr mtd mstyle mpadded mphantom menclose
"""
_TAGS = set(_TAG_NAMES.split())
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
_MARKUP = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~\n\r"  # characters that may be expensive to parse
# Languages to highlight: their lexers stay within _cost for any input. Some others can take minutes.
_LANGUAGES = """
    python py python3 pycon pytb javascript js typescript ts jsx tsx json json5 html xml css scss less bash
    sh shell zsh powershell ps1 batch bat c cpp c++ java kotlin scala go golang rust rs swift objective-c
    objc ruby rb perl pl php lua r julia jl matlab octave sql mysql postgresql sqlite3 yaml yml toml ini
    docker dockerfile make makefile cmake diff latex tex markdown md haskell hs ocaml fsharp clojure scheme
    elixir erlang dart groovy graphql protobuf nginx vim fortran pascal delphi vbnet nasm prolog verilog
    vhdl solidity
"""
LANGUAGES = frozenset(_LANGUAGES.split())
_CHINESE = re.compile("[\u3400-\u9fff]")


class Allowance:
    """A limited number of steps."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    def take(self, steps: int) -> bool:
        """Use up steps. Returns False and uses none if fewer are left."""
        if steps > self.left:
            return False
        self.left -= steps
        return True


class MarkupBudget:
    """The formatting cost allowed for the texts of one page: markup characters, and steps of formulas and code. Not
    based on time, so that a page looks the same on every machine."""

    def __init__(self) -> None:
        self.markup = Allowance(PAGE_MARKUP)
        self.extras = Allowance(PAGE_EXTRAS)


class _TooDeep(Exception):
    """Lists or quotes are nested deeper than the parser supports; it would drop their content."""


def html_of(
    text: str, budget: MarkupBudget | None = None, *, wrapped: bool = False, marks: Sequence[Place] = ()
) -> SafeString:
    """Render a text as safe, passive HTML. A page's texts share a budget; what exceeds it is shown as plain text.

    `wrapped`: line ends in the text are only wraps, as in our own guides. `marks`: places of words to mark.
    """
    budget = budget or MarkupBudget()
    env: dict[str, Any] = {"budget": budget, "plain_parts": False, "wrapped": wrapped}
    if len(text) > LONGEST or not budget.markup.take(sum(map(text.count, _MARKUP))):
        return _as_written(text, marks)
    try:
        html = _parser().render(f"```json\n{text}\n```" if _is_json_object(text) else text, env)
    except _TooDeep:
        return _as_written(text, marks)
    cleaned = nh3.clean(
        html,
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
    )
    note = (
        _note(_("Some formulas or code are shown unformatted: there is too much of it."))
        if env["plain_parts"]
        else ""
    )
    return mark_safe(note + marked_html(cleaned, text, marks))  # noqa: S308 (nh3 has cleaned it)


def _as_written(text: str, marks: Sequence[Place]) -> SafeString:
    note = _note(_("Shown as plain text: too long or too complex to format."))
    return format_html('{}<div class="text">{}</div>', note, marked_as_written(text, marks))


def marked_as_written(text: str, marks: Sequence[Place]) -> SafeString:
    """The text as HTML, the words at `marks` marked."""
    parts = (
        (SafeString("<mark>{}</mark>" if part.marked else "{}"), part.text) for part in pieces(text, marks)
    )
    return mark_safe("".join(format_html(form, words) for form, words in parts))  # noqa: S308 (all escaped)


def _note(text: str) -> SafeString:
    return format_html('<p class="quiet-text">{}</p>', text)


def _is_json_object(text: str) -> bool:
    """Whether the text is a JSON object, in which indents, asterisks and underscores are not Markdown."""
    bare = text.strip()
    if not (bare.startswith("{") and bare.endswith("}")):
        return False
    try:
        return isinstance(json.loads(bare), dict)
    except (ValueError, RecursionError):
        return False


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    parser.use(formulas_plugin)
    parser.block.ruler.before("table", "too_deep", _stop_too_deep)
    parser.add_render_rule("formula", _formula)
    parser.add_render_rule("fence", _code)
    parser.add_render_rule("image", _picture)
    parser.add_render_rule("em_open", _stress)
    parser.add_render_rule("softbreak", _end_of_line)
    return parser


def _stress(self: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    """Mark emphasized Chinese with a language, since it is not styled as italics."""
    stressed = tokens[index + 1].content if index + 1 < len(tokens) else ""
    return '<em lang="zh">' if _CHINESE.search(stressed) else "<em>"


def _end_of_line(self: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    """Models' line ends are intended, so they become <br>. A wrapped line continues, without a space in Chinese."""
    if not env["wrapped"]:
        return "<br>\n"
    before, after = tokens[index - 1].content[-1:], tokens[index + 1].content[:1]
    return "\n" if before.isascii() or after.isascii() else ""


def _picture(self: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    source = str(tokens[index].attrs.get("src", ""))
    return format_html('<a href="{}">{}</a>', source, tokens[index].content or source)


def _stop_too_deep(state: StateBlock, line: int, end_line: int, silent: bool) -> bool:
    """Raise _TooDeep before the parser's limit; each list uses two levels."""
    if state.level >= state.md.options.maxNesting - 2:
        raise _TooDeep
    return False


def _formula(self: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    """Render a formula as MathML, or as code if it can't be converted."""
    latex = tokens[index].content
    if not env["budget"].extras.take(FORMULA_COST + _cost(len(latex))):
        env["plain_parts"] = True
        return format_html("<code>{}</code>", latex)
    return mathml(latex, display=tokens[index].meta["display"]) or format_html("<code>{}</code>", latex)


def _code(self: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    code, language = tokens[index].content, (tokens[index].info.split() or [""])[0].lower()
    if language not in LANGUAGES:
        return format_html("<pre><code>{}</code></pre>\n", code)
    if not env["budget"].extras.take(_cost(len(code))):
        env["plain_parts"] = True
        return format_html("<pre><code>{}</code></pre>\n", code)
    return f"<pre><code>{_coloured(code, language)}</code></pre>\n"


def _cost(length: int) -> int:
    """The cost of code or a formula. Some lexers, and nested formulas, take quadratic time."""
    return length + length**2 // 500


def _coloured(code: str, language: str) -> str:
    """Highlight the code with CSS classes."""
    # Imported on first use, to keep startup fast.
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import get_lexer_by_name

    lexer = get_lexer_by_name(language, stripnl=False)
    return str(highlight(code, lexer, HtmlFormatter(nowrap=True, classprefix="t-")))
