"""Removes comments and trailing commas from lines that are nearly JSON, without changing any strings."""

import re

_SIGN = re.compile(
    r"""(?P<string>"(?:[^"\\]|\\.)*+")
    | (?P<comment>//.*|\#.*|/\*.*?\*/)
    | (?P<odd>["'`“”„‟＂「」‘’＇]|/\*)
    | (?P<open>[{\[])
    | (?P<close>[}\]])
    | (?P<comma>,)
    | (?P<other>[^\s"'`“”„‟＂「」‘’＇{}\[\],/#]+|/)
    """,
    re.VERBOSE,
)

MOST_IN_A_COMMENT = 65_536


def without_comment(line: str) -> str | None:
    """Remove the comments from a line (no line end); None if nothing else was on it.

    From an unpaired quote on, the line stays unchanged, since what looks like a comment may be text; so does a line
    with a comment that continues on the next line.
    """
    text, beyond = _without_comments(line)
    return line if beyond else text


def _without_comments(line: str) -> tuple[str | None, bool]:
    """The line without comments, and whether one of them continues on the next line."""
    if not any(mark in line for mark in ("//", "#", "/*")):
        return line, False
    kept, at = "", 0
    for sign in _SIGN.finditer(line):
        beyond = sign.group() == "/*"
        if sign.lastgroup == "odd" and not beyond:
            break
        if sign.lastgroup == "comment" or beyond:
            kept += line[at : sign.start()]
            at = len(line) if beyond else sign.end()
            apart = kept[-1:].strip() and line[at : at + 1].strip()
            kept += " " if apart else ""  # keeps the tokens around a comment apart
        if beyond:
            return kept.rstrip() or None, True
    return ((kept + line[at:]).rstrip() or None) if at else line, False


class CommentStripper:
    """Removes comments that may span lines; takes lines (no line end), returns the remaining lines.

    A comment that does not end within `MOST_IN_A_COMMENT` characters is kept as text.
    """

    def __init__(self) -> None:
        self._held: list[str] = []
        self._before: str | None = None

    @property
    def inside(self) -> bool:
        return bool(self._held)

    def feed(self, line: str) -> list[str]:
        if not self._held:
            return self._begin(line)
        end = line.find("*/") + 2
        if end >= 2:
            before, self._held = self._before, []
            rest = self._begin(line[end:]) if line[end:].strip() else []
            return rest if before is None else [before, *rest]
        self._held.append(line)
        return self.rest() if sum(map(len, self._held)) > MOST_IN_A_COMMENT else []

    def rest(self) -> list[str]:
        """Return the buffered lines: a comment still open at the end of the file is kept as text."""
        held, self._held = self._held, []
        return held

    def _begin(self, line: str) -> list[str]:
        text, beyond = _without_comments(line)
        if beyond:
            self._held, self._before = [line], text
            return []
        return [] if text is None else [text]


class CommaStripper:
    """Removes commas before closing brackets; a comma is buffered until the next token is known.

    With `rows`, every line is a separate row, and a comma after a complete row is removed too.
    """

    def __init__(self, rows: bool) -> None:
        self.rows = rows
        self._depth = 0
        self._held = ""
        self._before = ""

    def feed(self, line: str) -> str:
        """The text that can be written after this line (with its line end)."""
        if self.rows:
            self._depth, self._before = 0, ""
            if "," not in line:
                return line
        written: list[str] = []
        position = 0
        for sign in _SIGN.finditer(line):
            if sign.lastgroup == "odd":
                written.append(self._held + line[position : sign.start()])
                position, self._held, self._before = sign.start(), "", "other"
                break
            self._gap(line[position : sign.start()], written)
            self._take(str(sign.lastgroup), sign.group(), written)
            position = sign.end()
        self._gap(line[position:], written)
        return "".join(written) + (self._end_of_row() if self.rows else "")

    def rest(self) -> str:
        """The text still buffered at the end of the file."""
        held, self._held = self._held, ""
        return held

    def _gap(self, text: str, written: list[str]) -> None:
        """Buffer white space or ambiguous text after a comma; else write it."""
        if self._held:
            self._held += text
        else:
            written.append(text)

    def _take(self, kind: str, text: str, written: list[str]) -> None:
        if kind == "comment":
            self._gap(text, written)
            return
        if kind == "close" and self._held:
            self._held = self._held[1:]
        written.append(self._held)
        self._held = ""
        removable = kind == "comma" and self._before not in ("", "comma", "open")
        if removable:
            self._held = text
        else:
            written.append(text)
        self._depth += {"open": 1, "close": -1}.get(kind, 0)
        self._before = kind

    def _end_of_row(self) -> str:
        held, self._held = self._held, ""
        return held[1:] if held and self._depth == 0 else held
