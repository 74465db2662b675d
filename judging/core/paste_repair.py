"""Offers repairs for scripts and rule programs copied through a document.

Doubled backslashes, lost indentation, bullets, a full-width @, and a postprocess called preprocess.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from datasets.core.texts import Text, gettext_noop
from judging.core.lost_indentation import with_indentation

PROBLEMS: dict[str, Text] = {
    "backslashes": gettext_noop(
        "The backslashes of a pattern are doubled, as after copying from a web page, so it matches nothing."
    ),
    "indentation": gettext_noop("The indentation is missing, as after copying from a web page."),
    "uncertain": gettext_noop(
        "Some lines could belong to more than one block (line %(lines)s): the repaired code marks them with "
        "“# indentation?”. Check where they belong, because it changes what the code does."
    ),
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


@dataclass(frozen=True, slots=True)
class PasteRepair:
    """The repaired source and the problems found, keys of PROBLEMS. `uncertain`: numbers (from 1) of the lines of which
    only a guess says to which block they belong."""

    source: str
    problems: tuple[str, ...]
    uncertain: tuple[int, ...] = ()


def repaired(source: str, kind: str = "") -> PasteRepair | None:
    """Undo the damage from copying a script through a document; None if there is no sign of it. `kind`: the function
    that the script should have, `preprocess` or `postprocess`."""
    single = _STRING.sub(_with_single_backslashes, source)
    indentation = with_indentation(single)
    indented = indentation.source
    named = _as_postprocess(indented) if kind == "postprocess" else indented
    steps = (
        ("backslashes", source, single),
        ("indentation", single, indented),
        ("name", indented, named),
    )
    repair = _repair(named, steps)
    if repair is None or not indentation.uncertain:
        return repair
    return replace(repair, problems=(*repair.problems, "uncertain"), uncertain=indentation.uncertain)


def repaired_program(source: str) -> PasteRepair | None:
    """The same for a rule program (# DSL): its header lines, and the Python in its blocks."""
    header, format_line, rest = _parted(source)
    without_bullets = _BULLET.sub("", header + format_line)
    narrow = _AT_SIGN.sub("@", without_bullets)
    blocks, problems, uncertain = _with_repaired_blocks(rest, (header + format_line).count("\n"))
    steps = (("bullets", header + format_line, without_bullets), ("at_sign", without_bullets, narrow))
    repair = _repair(narrow + blocks, steps)
    problems = (*(repair.problems if repair else ()), *problems)
    return PasteRepair(narrow + blocks, problems, uncertain) if problems else None


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


def _with_repaired_blocks(text: str, lines_before: int) -> tuple[str, tuple[str, ...], tuple[int, ...]]:
    """The text with its code blocks repaired, the problems found, and the uncertain lines of the program."""
    problems: dict[str, None] = {}
    uncertain: list[int] = []

    def repaired_block(block: re.Match[str]) -> str:
        repair = repaired(block["text"])
        if repair is None:
            return block[0]
        problems.update(dict.fromkeys(repair.problems))
        above = lines_before + text.count("\n", 0, block.start("text"))
        uncertain.extend(above + line for line in repair.uncertain)
        return f"<{block['label']}>\n{repair.source}\n</{block['label']}>"

    return _CODE_BLOCK.sub(repaired_block, text), tuple(problems), tuple(uncertain)


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
