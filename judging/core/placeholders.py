"""Finds placeholders that other tools write and Jinja2 doesn't fill in, or fills in wrongly, and says what to write.

`${question}`, `{question}`, `｛｛ data.question ｝｝`, `{{output}}`, `{{ data.my-field }}`, JSON in the doubled braces
of Python's format strings, and `'\\\\n'` with the backslash that a web page doubled.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from datasets.core.texts import Text, gettext_noop

KINDS: dict[str, Text] = {
    "placeholder": gettext_noop("“%(name)s” stays as it is in the prompt. Write “%(suggestion)s”."),
    "other_name": gettext_noop("Write “%(suggestion)s” instead of “%(name)s”."),
    "full_width": gettext_noop("“%(name)s” has full-width braces. Write “%(suggestion)s”."),
    "dashed": gettext_noop("“%(name)s” is read as a subtraction. Write “%(suggestion)s”."),
    "doubled_braces": gettext_noop(
        "“%(name)s” is JSON in doubled braces. Write single braces: “%(suggestion)s”."
    ),
    "doubled_backslash": gettext_noop(
        "%(name)s gives a backslash and a letter, as after copying from a web page. Write %(suggestion)s."
    ),
}
"""`other_name`: braces that Jinja2 reads, around a name that other tools use."""

QUESTION, ANSWER, REFERENCE = "data.question", "response.content", "data.ref_answer"
# The names of other tools for what every row has.
NAMES = {
    **dict.fromkeys(
        ("input", "inputs", "question", "query", "prompt", "instruction", "user_input"), QUESTION
    ),
    **dict.fromkeys(("output", "outputs", "answer", "response", "completion", "prediction"), ANSWER),
    **dict.fromkeys(("actual_output", "model_output", "model_answer", "model_response"), ANSWER),
    "generated_answer": ANSWER,
    **dict.fromkeys(
        ("expected_output", "expected", "reference", "reference_answer", "ref_answer"), REFERENCE
    ),
    **dict.fromkeys(("reference_output", "reference_outputs", "ground_truth", "ideal", "target"), REFERENCE),
    "history": "data.history",
}
ROOTS = (
    *("data", "response", "preprocess_result", "min_score", "max_score", "answer_format"),
    *("judge_resps", "judge_reqs", "criterion", "criteria"),
)
MOST = 50  # hints for one template

_UNREAD_BEGINS = re.compile(r"(?P<comment>\{#)|\{%[-+]?\s*raw\s*[-+]?%\}")
_COMMENT_ENDS, _RAW_ENDS = re.compile(r"#\}"), re.compile(r"\{%[-+]?\s*endraw\s*[-+]?%\}")
_NAME = r"\s*(?P<name>[A-Za-z_][A-Za-z0-9_]*)\s*"
_DOUBLED = re.compile(r"(?<!\{)\{\{" + _NAME + r"\}\}(?!\})")
_PLACEHOLDERS = (
    re.compile(r"\$\{" + _NAME + r"\}(?!\})"),
    re.compile(r"(?<![{$])\{" + _NAME + r"\}(?!\})"),
    _DOUBLED,
)
_FULL_WIDTH = re.compile(r"｛｛(?P<inside>[^{}｛｝]{1,200})｝｝")
_SETS_NAMES = re.compile(r"\{%[-+]?\s*(?:set|for|with|macro)\s([^%]{1,1000})%\}")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_EXPRESSION = re.compile(r"\{\{[^{}]{1,1000}\}\}|\{%[^{}%]{1,1000}%\}")
_DASHED = re.compile(r"\b(?P<root>data|response)\.(?P<name>[A-Za-z_]\w*(?:-\w+)+)")
_TEXT = re.compile(r"""'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*\"""")
_BACKSLASHES = re.compile(r"\\+")
_DOUBLED_BACKSLASH = re.compile(r"\\\\[ntr]")
_BRACES = re.compile(r"\{\{|\}\}")
_JSON_BEGINS = re.compile(r"""\{\{\s*(?:"[^"\n]{0,200}"|'[^'\n]{0,200}')\s*:""")


@dataclass(frozen=True, slots=True)
class Hint:
    """A piece of a template at `start` (an index), in `line` (from 1), that was probably meant as `suggestion`."""

    kind: str
    start: int
    line: int
    text: str
    suggestion: str

    @property
    def sentence(self) -> Text:
        """The untranslated sentence; its parameters are `name`, which is the text, and `suggestion`."""
        return KINDS[self.kind]


def hints(template: str, fields: Collection[str] = ()) -> list[Hint]:
    """What to write instead, in the order of the template. `fields`: names of the rows' own fields."""
    pieces = [
        *_placeholders(template, fields),
        *_full_width(template),
        *_dashed(template, fields),
        *_doubled_braces(template),
        *_doubled_backslashes(template),
    ]
    apart: list[tuple[str, int, str, str]] = []
    for piece in sorted(_outside(_unread(template), pieces), key=lambda piece: piece[1]):
        if not apart or piece[1] >= apart[-1][1] + len(apart[-1][2]):
            apart.append(piece)
    return [
        Hint(kind, start, template.count("\n", 0, start) + 1, text, suggestion)
        for kind, start, text, suggestion in apart[:MOST]
    ]


def with_suggestions(template: str, hints: Iterable[Hint]) -> str:
    """The template with every hint's suggestion in place of its text."""
    for hint in sorted(hints, key=lambda hint: -hint.start):
        end = hint.start + len(hint.text)
        template = template[: hint.start] + hint.suggestion + template[end:]
    return template


def expression_for(name: str, fields: Collection[str] = ()) -> str | None:
    """The expression for another tool's name: that of a row's own field first; None if it is unknown."""
    return f"data.{name}" if name in fields else NAMES.get(name)


Found = tuple[str, int, str, str]


def _unread(template: str) -> list[tuple[int, int]]:
    """The comments and raw blocks, in order; one without an end takes the rest."""
    spans: list[tuple[int, int]] = []
    at = 0
    while begin := _UNREAD_BEGINS.search(template, at):
        end = (_COMMENT_ENDS if begin["comment"] else _RAW_ENDS).search(template, begin.end())
        at = end.end() if end else len(template)
        spans.append((begin.start(), at))
    return spans


def _outside(spans: list[tuple[int, int]], pieces: Iterable[Found]) -> Iterator[Found]:
    for piece in pieces:
        before = bisect_right(spans, piece[1], key=lambda span: span[0]) - 1
        if before < 0 or piece[1] >= spans[before][1]:
            yield piece


def _placeholders(template: str, fields: Collection[str]) -> Iterator[Found]:
    set_here = set(_own_names(template))
    for pattern in _PLACEHOLDERS:
        doubled = pattern is _DOUBLED
        kind: str = "other_name" if doubled else "placeholder"
        own = {*set_here, *ROOTS} if doubled else set_here
        for match in pattern.finditer(template):
            expression = expression_for(match["name"], fields)
            if expression and match["name"] not in own:
                yield kind, match.start(), match[0], "{{ " + expression + " }}"


def _own_names(template: str) -> Iterator[str]:
    """The words of tags that may set a variable."""
    for tag in _SETS_NAMES.finditer(template):
        yield from _WORD.findall(tag[1])


def _full_width(template: str) -> Iterator[Found]:
    for match in _FULL_WIDTH.finditer(template):
        yield "full_width", match.start(), match[0], "{{ " + match["inside"].strip() + " }}"


def _dashed(template: str, fields: Collection[str]) -> Iterator[Found]:
    """`data.my-field`, which Jinja2 reads as a subtraction, unless the rows have a field `my` and none `my-field`."""
    for expression in _EXPRESSION.finditer(template):
        for match in _DASHED.finditer(expression[0]):
            name = match["name"]
            if name in fields or name.partition("-")[0] not in fields:
                start = expression.start() + match.start()
                yield "dashed", start, match[0], f"{match['root']}[{name!r}]"


def _doubled_braces(template: str) -> Iterator[Found]:
    """JSON in doubled braces; the braces of expressions inside it stay doubled."""
    opened: list[re.Match[str]] = []  # not closed yet, outermost first
    doubled: list[int] = []  # starts of braces to make single
    for brace in _BRACES.finditer(template):
        if brace[0] == "{{":
            opened.append(brace)
            continue
        if not opened:
            continue
        begin = opened.pop()
        if _JSON_BEGINS.match(template, begin.start()):
            doubled += [begin.start(), brace.start()]
        if not opened and doubled:
            first = min(doubled)
            yield (
                "doubled_braces",
                first,
                template[first : brace.end()],
                _single(template, doubled, brace.end()),
            )
            doubled = []


def _doubled_backslashes(template: str) -> Iterator[Found]:
    """Texts within expressions whose backslashes are all doubled and stand before n, t or r."""
    for expression in _EXPRESSION.finditer(template):
        for text in _TEXT.finditer(expression[0]):
            runs = _BACKSLASHES.findall(text[0])
            if runs and set(runs) == {"\\\\"} and len(_DOUBLED_BACKSLASH.findall(text[0])) == len(runs):
                start = expression.start() + text.start()
                yield "doubled_backslash", start, text[0], text[0].replace("\\\\", "\\")


def _single(template: str, starts: list[int], end: int) -> str:
    """The template from the first of the doubled braces to `end`, with these made single."""
    first, *rest = sorted(starts)
    pieces = [template[at + 1 : after] for at, after in zip((first, *rest), (*rest, end), strict=True)]
    return "".join(pieces)
