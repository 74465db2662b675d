"""Taking comments and trailing commas out of lines that are nearly JSON, without touching any text in them."""

import re

_SIGN = re.compile(
    r"""(?P<string>"(?:[^"\\]|\\.)*+")
    | (?P<comment>//.*|\#.*)
    | (?P<odd>["'`“”„‟＂「」‘’＇])
    | (?P<open>[{\[])
    | (?P<close>[}\]])
    | (?P<comma>,)
    | (?P<other>[^\s"'`“”„‟＂「」‘’＇{}\[\],/#]+|/)
    """,
    re.VERBOSE,
)


def without_comment(line: str) -> str | None:
    """The line (no line end) less its comment; None if nothing else was on it.

    A line with a quote that this cannot pair is left as it is: what looks like a comment may be text.
    """
    if "//" not in line and "#" not in line:
        return line
    for sign in _SIGN.finditer(line):
        if sign.lastgroup == "odd":
            return line
        if sign.lastgroup == "comment":
            return line[: sign.start()].rstrip() or None
    return line


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
                if self.rows:
                    self._held = ""
                    return line
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
        """White space, or what cannot be told apart: held back with a comma, else written."""
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
