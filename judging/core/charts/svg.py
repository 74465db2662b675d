"""SVG elements as escaped text; estimates of text width without a font, and line wrapping."""

import re
import unicodedata
from html import escape

_NOT_XML = re.compile(r"[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_VIEW_BOX = re.compile(r'viewBox="0 0 (\S+) (\S+)"')
_PLAIN_ID = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")

Attribute = str | float


def text_of(value: str) -> str:
    """Text escaped for content and attributes; characters invalid in XML (controls, lone surrogates) become U+FFFD."""
    return escape(_NOT_XML.sub("\ufffd", value))


def number(value: float) -> str:
    """A coordinate, with at most two decimals."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def element(name: str, *content: str, **attributes: Attribute) -> str:
    """`<name attribute="…">content</name>`; content is markup. `class_` becomes class, `_` in other names `-`."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{number(value) if not isinstance(value, str) else text_of(value)}"'
        for key, value in attributes.items()
    )
    return f"<{name}{written}>{''.join(content)}</{name}>" if content else f"<{name}{written}/>"


def label(words: str, **attributes: Attribute) -> str:
    """A `<text>` element with this text."""
    return element("text", text_of(words), **attributes)


def figure(chart_id: str, title: str, description: str, width: float, height: float, *content: str) -> str:
    """The whole `<svg>`: an image (or a group if it has links) with a name and a description, as wide as its container.

    `chart_id` must be unique on the page. Raises ValueError if it is not a plain id.
    """
    if not _PLAIN_ID.fullmatch(chart_id):
        raise ValueError(f"not an id: {chart_id!r}")
    role = "group" if any("<a " in part for part in content) else "img"
    title_id, description_id = f"{chart_id}-title", f"{chart_id}-desc"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" id="{chart_id}" role="{role}" '
        f'viewBox="0 0 {number(width)} {number(height)}" font-family="sans-serif" '
        f'aria-labelledby="{title_id}" aria-describedby="{description_id}">'
        f'<title id="{title_id}">{text_of(title)}</title><desc id="{description_id}">{text_of(description)}</desc>'
        f"{''.join(content)}</svg>"
    )


def as_file(svg: str) -> bytes:
    """A `figure` (or '') as a file, with explicit dimensions, because nothing around it sets them."""
    return _VIEW_BOX.sub(r'\g<0> width="\1" height="\2"', svg, count=1).encode()


ELLIPSIS = "…"
_BREAK_AFTER = frozenset(" -_/.:@，。、；：")


def width(words: str) -> float:
    """Estimated width in em: 1 for a full-width character, 0 for a combining one, otherwise 0.58."""
    return sum(_character_width(character) for character in words)


def wrap(words: str, most: float, lines: int) -> list[str]:
    """Wrap to at most `lines` lines of at most `most` em, after spaces and punctuation, and anywhere in Chinese.

    Text that does not fit ends in an ellipsis; a word longer than a line is broken. At least one line of at least 2 em.
    """
    most = max(most, 2.0)
    rest = " ".join(words.split())
    wrapped: list[str] = []
    while rest and len(wrapped) < lines - 1 and width(rest) > most:
        place = _break(rest, most)
        wrapped.append(rest[:place].rstrip())
        rest = rest[place:].lstrip()
    return [*wrapped, shorten(rest, most)]


def shorten(words: str, most: float) -> str:
    """The text, cut with an ellipsis if it is wider than `most` em."""
    if width(words) <= most:
        return words
    return words[: _fitting(words, most - width(ELLIPSIS))].rstrip() + ELLIPSIS


def _break(words: str, most: float) -> int:
    """Where the first line ends: the last good break that fits, otherwise as much as fits."""
    fitting = _fitting(words, most)
    for place in range(fitting, fitting // 2, -1):
        if words[place - 1] in _BREAK_AFTER or _is_wide(words[place - 1]) or words[place] == " ":
            return place
    return fitting


def _fitting(words: str, most: float) -> int:
    """How many characters fit into `most` em, without separating combining marks from their base; at least one."""
    used = 0.0
    for place, character in enumerate(words):
        used += _character_width(character)
        if used > most and place:
            return place
    return len(words)


def _is_wide(character: str) -> bool:
    return unicodedata.east_asian_width(character) in "WF"


def _character_width(character: str) -> float:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0.0
    return 1.0 if _is_wide(character) else 0.58
