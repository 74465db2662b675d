"""Elements as text, escaped in one place."""

import re
from html import escape

_NOT_XML = re.compile(r"[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_VIEW_BOX = re.compile(r'viewBox="0 0 (\S+) (\S+)"')
_PLAIN_ID = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")

Attribute = str | float


def text_of(value: str) -> str:
    """Escaped for content and attributes; what XML can't hold (controls, lone surrogates) becomes U+FFFD."""
    return escape(_NOT_XML.sub("\ufffd", value))


def number(value: float) -> str:
    """A coordinate: two decimals at most."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def element(name: str, *content: str, **attributes: Attribute) -> str:
    """`<name attribute="…">content</name>`; content is markup. `class_` is class, `_` in other names is `-`."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{number(value) if not isinstance(value, str) else text_of(value)}"'
        for key, value in attributes.items()
    )
    return f"<{name}{written}>{''.join(content)}</{name}>" if content else f"<{name}{written}/>"


def label(words: str, **attributes: Attribute) -> str:
    """A `<text>` with these words."""
    return element("text", text_of(words), **attributes)


def figure(chart_id: str, title: str, description: str, width: float, height: float, *content: str) -> str:
    """The whole `<svg>`: an image (with links in it a group) with a name and a description, as wide as its place.

    `chart_id` must be unique on the page. ValueError where it is no plain id.
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
    """A `figure` (or '') with a size of its own, which nothing around a file gives it."""
    return _VIEW_BOX.sub(r'\g<0> width="\1" height="\2"', svg, count=1).encode()
