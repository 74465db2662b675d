"""Formulas in Markdown: $…$, $$…$$, \\(…\\) and \\[…\\] become `formula` tokens; $$…$$ and \\[…\\] also as blocks.

Delimiters are found in one pass over a text, so that many of them don't make parsing slower.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.ruler import RuleOptionsType
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline

MOST_LINES = 200  # of a block formula, whose lines are checked again for every opener

LONGEST = 2_000  # characters; longer formulas are not converted
_DEFINITION = re.compile(r"\\(?:(?:re)?new(?:command|environment)|def|DeclareMathOperator)(?![a-zA-Z])")

_CLOSERS = {"$$": "$$", "$": "$", "\\(": "\\)", "\\[": "\\]"}  # `$$` before `$`
_MARK = re.compile(r"\\.|\$", re.DOTALL)  # an escaped character is not a delimiter
_BLANK_TO_LINE_END = re.compile(r"[ \t]*(?:\n|\Z)")


def formulas_plugin(parser: MarkdownIt) -> None:
    """Add `formula` tokens to the parser. `meta["display"]` is true for display formulas."""
    parser.inline.ruler.before("escape", "formula", _inline)
    interrupts: RuleOptionsType = {"alt": ["paragraph", "reference", "blockquote", "list"]}
    parser.block.ruler.before("fence", "formula", _block, interrupts)


def _inline(state: StateInline, silent: bool) -> bool:
    opener = _opener(state.src, state.pos)
    if opener is None:
        return False
    begin = state.pos + len(opener)
    end = _closing(state.src, state.env, begin, _CLOSERS[opener])
    if end is None or end + len(opener) > state.posMax or not state.src[begin:end].strip():
        return False
    if opener.startswith("$") and _is_money(state.src, opener, state.pos, end):
        return False
    if not silent:
        token = state.push("formula", "math", 0)
        token.content = state.src[begin:end].strip()
        token.meta = {"display": opener in ("$$", "\\[")}
    state.pos = end + len(opener)
    return True


def _block(state: StateBlock, line: int, end_line: int, silent: bool) -> bool:
    """Parse a formula whose closing delimiter ends a line within the block (list item, quote) that it starts in."""
    start = state.bMarks[line] + state.tShift[line]
    if state.is_code_block(line) or (opener := _opener(state.src, start)) not in ("$$", "\\["):
        return False
    end = _closing(state.src, state.env, start + 2, _CLOSERS[opener])
    if end is None or end >= state.eMarks[end_line - 1] or not _BLANK_TO_LINE_END.match(state.src, end + 2):
        return False
    last = bisect_right(state.bMarks, end, line, end_line) - 1
    if last - line > MOST_LINES or any(_is_outside(state, number) for number in range(line + 1, last + 1)):
        return False
    lines = [state.src[state.bMarks[number] : state.eMarks[number]] for number in range(line, last)]
    content = "\n".join([*lines, state.src[state.bMarks[last] : end]])[
        start - state.bMarks[line] + 2 :
    ].strip()
    if not content:
        return False
    state.line = last + 1
    if not silent:
        token = state.push("formula", "math", 0)
        token.content, token.block, token.map = content, True, [line, last + 1]
        token.meta = {"display": True}
    return True


def _is_outside(state: StateBlock, line: int) -> bool:
    return state.sCount[line] < state.blkIndent and not state.isEmpty(line)


def _opener(text: str, at: int) -> str | None:
    if at >= len(text) or text[at] not in "$\\":
        return None
    return next((opener for opener in _CLOSERS if text.startswith(opener, at)), None)


def _is_money(text: str, opener: str, at: int, end: int) -> bool:
    """Whether dollar signs mean money, by Pandoc's rules: a digit before or after them, or a space inside."""
    before, behind = text[at - 1 : at], text[end + len(opener) : end + len(opener) + 1]
    spaced = opener == "$" and (text[at + 1].isspace() or text[end - 1].isspace())
    return spaced or before.isdigit() or behind.isdigit()


def _closing(text: str, env: Any, begin: int, closer: str) -> int | None:
    """The position of the next closing delimiter; None if there is none."""
    places = _places(text, env)[closer]
    index = bisect_left(places, begin)
    return places[index] if index < len(places) else None


def _places(text: str, env: Any) -> dict[str, list[int]]:
    """The positions of all closing delimiters in a text, cached in the parser's environment."""
    cache: dict[str, dict[str, list[int]]] = env.setdefault("formula_places", {})
    if text not in cache:
        places: dict[str, list[int]] = {closer: [] for closer in _CLOSERS.values()}
        for mark in _MARK.finditer(text):
            if mark[0] in places:
                places[mark[0]].append(mark.start())
            if text.startswith("$$", mark.start()):
                places["$$"].append(mark.start())
        cache[text] = places
    return cache[text]


def mathml(latex: str, *, display: bool) -> str | None:
    """Convert to a `<math>` element, not yet sanitized (commands like \\href reach its attributes); None if not
    possible.

    The converter does not validate its input: invalid LaTeX may raise any exception.
    """
    if len(latex) > LONGEST or not latex.strip() or _DEFINITION.search(latex):
        return None  # recursive definitions could grow indefinitely
    from latex2mathml.converter import convert  # slow to import

    try:
        return convert(latex, display="block" if display else "inline")
    except (Exception, RecursionError):
        return None
