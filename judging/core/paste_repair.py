"""Offers repairs for scripts and rule programs copied through a document.

Doubled backslashes, lost indentation, bullets, a full-width @, and a postprocess called preprocess.
"""

from __future__ import annotations

import io
import re
import token
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from datasets.core.texts import Text, gettext_noop

PROBLEMS: dict[str, Text] = {
    "backslashes": gettext_noop(
        "The backslashes of a pattern are doubled, as after copying from a web page, so it matches nothing."
    ),
    "indentation": gettext_noop("The indentation is missing, as after copying from a web page."),
    "name": gettext_noop(
        "The script takes the parameters of postprocess, but its function is called preprocess, so it is never called."
    ),
    "bullets": gettext_noop("Lines begin with a bullet, as after copying from a web page."),
    "at_sign": gettext_noop("The @ of a line is full-width (＠), so it is read as part of a field's name."),
}
"""What happened to a text on its way, by problem."""

_STRING = re.compile(
    r"""(?P<prefix>\b[rRbBuUfF]{1,2}|)(?P<quote>\"\"\"|'''|"|')(?P<body>(?:\\.|(?!(?P=quote))[^\\\n])*)(?P=quote)""",
    re.S,
)
_RUN = re.compile(r"\\+")
_BULLET = re.compile(r"^[ \t]*[•·●◦▪‣∙○■][ \t\u3000]*", re.M)
_AT_SIGN = re.compile(r"^＠", re.M)
_FORMAT_LINE = re.compile(r"^[ \t•·●◦▪‣∙○■\u3000]*[@＠](?:格式限制|format)[ \t]*[:：].*$", re.M)
_CODE_BLOCK = re.compile(r"^<(?P<label>(?:代码|code)[^<>/\n]*)>\n(?P<text>.*?)\n</(?P=label)>", re.M | re.S)
_MISNAMED = re.compile(r"^def\s+(?P<name>preprocess)\s*\(\s*judge_(?:reqs|resps|models)\b", re.M)
_POSTPROCESS = re.compile(r"^(?:def\s+postprocess\b|postprocess\s*=)", re.M)
# What may follow a doubled backslash in a regular expression. `\\b` and `\\(` could be intended, e.g. in LaTeX.
_DOUBLED = re.compile(r"\\\\(?:[\[\].*+?|^$]|[dswDSW](?![A-Za-z]))")
_OTHER = re.compile(r"\\\\(?:[()\[\]{}.*+?|^$]|[dswDSWbB](?![A-Za-z]))")
_WITHOUT_MEANING = {tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT, token.ENDMARKER}


@dataclass(frozen=True, slots=True)
class PasteRepair:
    """The repaired source and the problems found, keys of PROBLEMS."""

    source: str
    problems: tuple[str, ...]


def repaired(source: str, kind: str = "") -> PasteRepair | None:
    """Undo the damage from copying a script through a document; None if there is no sign of it. `kind`: the function
    that the script should have, `preprocess` or `postprocess`."""
    single = _STRING.sub(_with_single_backslashes, source)
    indented = with_indentation(single)
    named = _as_postprocess(indented) if kind == "postprocess" else indented
    steps = (("backslashes", source, single), ("indentation", single, indented), ("name", indented, named))
    return _repair(named, steps)


def repaired_program(source: str) -> PasteRepair | None:
    """The same for a rule program (# DSL): its header lines, and the Python in its blocks."""
    header, format_line, rest = _parted(source)
    without_bullets = _BULLET.sub("", header + format_line)
    narrow = _AT_SIGN.sub("@", without_bullets)
    blocks, problems = _with_repaired_blocks(rest)
    steps = (("bullets", header + format_line, without_bullets), ("at_sign", without_bullets, narrow))
    repair = _repair(narrow + blocks, steps)
    problems = (*(repair.problems if repair else ()), *problems)
    return PasteRepair(narrow + blocks, problems) if problems else None


def bullet_of(name: str) -> str:
    """The bullet that a field's name begins with, with the blanks after it; '' if there is none."""
    match = _BULLET.match(name)
    return match[0] if match else ""


def _repair(result: str, steps: Iterable[tuple[str, str, str]]) -> PasteRepair | None:
    problems = tuple(name for name, before, after in steps if before != after)
    return PasteRepair(result, problems) if problems else None


def _as_postprocess(source: str) -> str:
    """The script with its function called postprocess, if it has that one's parameters under the other name."""
    function = _MISNAMED.search(source)
    if function is None or _POSTPROCESS.search(source):
        return source
    return f"{source[: function.start('name')]}postprocess{source[function.end('name') :]}"


def _parted(source: str) -> tuple[str, str, str]:
    """A program's lines before the format line, that line, and the blocks after it."""
    line = _FORMAT_LINE.search(source)
    if line is None:
        return source, "", ""
    return source[: line.start()], line[0], source[line.end() :]


def _with_repaired_blocks(text: str) -> tuple[str, tuple[str, ...]]:
    problems: dict[str, None] = {}

    def repaired_block(block: re.Match[str]) -> str:
        repair = repaired(block["text"])
        if repair is None:
            return block[0]
        problems.update(dict.fromkeys(repair.problems))
        return f"<{block['label']}>\n{repair.source}\n</{block['label']}>"

    return _CODE_BLOCK.sub(repaired_block, text), tuple(problems)


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
