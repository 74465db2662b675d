"""Taking comments and trailing commas out of lines that are nearly JSON, without touching any text in them."""

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
    """The line (no line end) less its comments; None if nothing else was on it.

    From a quote on that this cannot pair the line is left as it is, since what looks like a comment may be text; so is
    a line with a comment that continues beyond it.
    """
    text, beyond = _without_comments(line)
    return line if beyond else text


def _without_comments(line: str) -> tuple[str | None, bool]:
    """The line less its comments, and whether one of them continues in the next line."""
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
            kept += " " if apart else ""  # so that what was next to a comment does not become one word
        if beyond:
            return kept.rstrip() or None, True
    return ((kept + line[at:]).rstrip() or None) if at else line, False


class CommentStripper:
    """Takes out comments that may cover several lines; lines in (no line end), the lines that remain out.

    What starts like a comment and does not end within `MOST_IN_A_COMMENT` characters is none.
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
        """What is held back: at the end of the file a comment that was not closed was none."""
        held, self._held = self._held, []
        return held

    def _begin(self, line: str) -> list[str]:
        text, beyond = _without_comments(line)
        if beyond:
            self._held, self._before = [line], text
            return []
        return [] if text is None else [text]


class CommaStripper:
    """Takes out commas before a closing bracket; lines in, text out, a comma held back until what follows is known.

    With `rows` every line is a row of its own, and a comma after the whole row goes too.
    """

    def __init__(self, rows: bool) -> None:
        self.rows = rows
        self._depth = 0
        self._held = ""
        self._before = ""

    def feed(self, line: str) -> str:
        """What can be written after this line (with its line end)."""
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
        """What is still held back at the end of the file."""
        held, self._held = self._held, ""
        return held

    def _gap(self, text: str, written: list[str]) -> None:
        """White space, or text that is ambiguous: held back with a comma, else written."""
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
