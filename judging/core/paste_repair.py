"""Scripts as they come out of a document: backslashes doubled, indentation lost. What can be repaired is offered."""

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
# What is behind a doubled backslash of an expression. `\\b` and `\\(` could be meant: of LaTeX, for example.
_DOUBLED = re.compile(r"\\\\(?:[\[\].*+?|^$]|[dswDSW](?![A-Za-z]))")
_OTHER = re.compile(r"\\\\(?:[()\[\]{}.*+?|^$]|[dswDSWbB](?![A-Za-z]))")
_WITHOUT_MEANING = {tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT, token.ENDMARKER}


@dataclass(frozen=True, slots=True)
class PasteRepair:
    """The repaired source, and what was wrong with it: `backslashes`, `indentation`."""

    source: str
    found: tuple[str, ...]


def repaired(source: str) -> PasteRepair | None:
    """The script as it was before it was copied through a document; None if it does not look like that."""
    single = _STRING.sub(_with_single_backslashes, source)
    indented = with_indentation(single)
    found = [
        name
        for name, changed in (("backslashes", single != source), ("indentation", indented != single))
        if changed
    ]
    return PasteRepair(indented, tuple(found)) if found else None


def repaired_pattern(pattern: str) -> str | None:
    """The same of a regular expression on its own: with single backslashes, where all were doubled."""
    return _RUN.sub(_half, pattern) if _is_doubled(pattern, 2) else None


def _with_single_backslashes(string: re.Match[str]) -> str:
    width = 2 if "r" in string["prefix"].lower() else 4  # in a plain text a backslash is written as two
    if not _is_doubled(string["body"], width):
        return string[0]
    quote = string["quote"]
    return f"{string['prefix']}{quote}{_RUN.sub(_half, string['body'])}{quote}"


def _is_doubled(text: str, width: int) -> bool:
    """Whether all its backslashes are doubled, and are where an expression has single ones."""
    runs = [run[0] for run in _RUN.finditer(text)]
    if not runs or any(len(run) != width for run in runs):
        return False
    plain = text if width == 2 else text.replace("\\\\", "\\")
    return bool(_DOUBLED.search(plain)) and len(_OTHER.findall(plain)) == len(runs)


def _half(run: re.Match[str]) -> str:
    return run[0][: len(run[0]) // 2]


def with_indentation(source: str) -> str:
    """The source with the bodies of its functions indented, where no line is; as it is where that would be a guess."""
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
            return source  # where an `if` or a loop ends cannot be known
        if word in ("def", "class", "import", "from", "@"):
            inside = word == "def" and opens
        elif inside:
            lines[first - 1 : last] = ["    " + line if line else line for line in lines[first - 1 : last]]
    return "\n".join(lines)


def _statements(source: str) -> Iterator[tuple[int, int, str, bool]]:
    """First and last line, first word, and whether it ends with a colon, of each statement."""
    met: list[tokenize.TokenInfo] = []
    for one in tokenize.generate_tokens(io.StringIO(source).readline):
        if one.type == tokenize.NEWLINE:
            yield met[0].start[0], met[-1].end[0], met[0].string, met[-1].string == ":"
            met = []
        elif one.type not in _WITHOUT_MEANING:
            met.append(one)
