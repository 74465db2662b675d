"""Offers repairs for scripts copied through a document: doubled backslashes, lost indentation."""

from __future__ import annotations

import io
import re
import token
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass

_STRING = re.compile(
    r"""(?P<prefix>\b[rRbBuUfF]{1,2}|)(?P<quote>\"\"\"|'''|"|')(?P<body>(?:\\.|(?!(?P=quote))[^\\\n])*)(?P=quote)""",
    re.S,
)
_RUN = re.compile(r"\\+")
# What may follow a doubled backslash in a regular expression. `\\b` and `\\(` could be intended, e.g. in LaTeX.
_DOUBLED = re.compile(r"\\\\(?:[\[\].*+?|^$]|[dswDSW](?![A-Za-z]))")
_OTHER = re.compile(r"\\\\(?:[()\[\]{}.*+?|^$]|[dswDSWbB](?![A-Za-z]))")
_WITHOUT_MEANING = {tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT, token.ENDMARKER}


@dataclass(frozen=True, slots=True)
class PasteRepair:
    """The repaired source and the problems found: `backslashes`, `indentation`."""

    source: str
    problems: tuple[str, ...]


def repaired(source: str) -> PasteRepair | None:
    """Undo the damage from copying a script through a document; None if there is no sign of it."""
    single = _STRING.sub(_with_single_backslashes, source)
    indented = with_indentation(single)
    problems = [
        name
        for name, changed in (("backslashes", single != source), ("indentation", indented != single))
        if changed
    ]
    return PasteRepair(indented, tuple(problems)) if problems else None


def repaired_pattern(pattern: str) -> str | None:
    """The same for a regular expression: with single backslashes if all were doubled, otherwise None."""
    return _RUN.sub(_half, pattern) if _is_doubled(pattern, 2) else None


def _with_single_backslashes(string: re.Match[str]) -> str:
    width = 2 if "r" in string["prefix"].lower() else 4  # a plain string literal needs two per backslash
    if not _is_doubled(string["body"], width):
        return string[0]
    quote = string["quote"]
    return f"{string['prefix']}{quote}{_RUN.sub(_half, string['body'])}{quote}"


def _is_doubled(text: str, width: int) -> bool:
    """Whether all backslashes are doubled, and in places where a regular expression has single ones."""
    runs = [run[0] for run in _RUN.finditer(text)]
    if not runs or any(len(run) != width for run in runs):
        return False
    plain = text if width == 2 else text.replace("\\\\", "\\")
    return bool(_DOUBLED.search(plain)) and len(_OTHER.findall(plain)) == len(runs)


def _half(run: re.Match[str]) -> str:
    return run[0][: len(run[0]) // 2]


def with_indentation(source: str) -> str:
    """Indent the bodies of functions if no line is indented; unchanged if that would require guessing."""
    lines = source.split("\n")
    if any(line[:1] in (" ", "\t") and line.strip() for line in lines):
        return source
    try:
        statements = list(_statements(source))
    except (tokenize.TokenError, SyntaxError):
        return source
    inside = False
    for first, last, word, opens in statements:
        if opens and word != "def":
            return source  # the end of an `if` or a loop cannot be known
        if word in ("def", "class", "import", "from", "@"):
            inside = word == "def" and opens
        elif inside:
            lines[first - 1 : last] = ["    " + line if line else line for line in lines[first - 1 : last]]
    return "\n".join(lines)


def _statements(source: str) -> Iterator[tuple[int, int, str, bool]]:
    """For each statement: first and last line, first word, and whether it ends with a colon."""
    tokens: list[tokenize.TokenInfo] = []
    for info in tokenize.generate_tokens(io.StringIO(source).readline):
        if info.type == tokenize.NEWLINE:
            yield tokens[0].start[0], tokens[-1].end[0], tokens[0].string, tokens[-1].string == ":"
            tokens = []
        elif info.type not in _WITHOUT_MEANING:
            tokens.append(info)
