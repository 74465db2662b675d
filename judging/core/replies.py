"""Parses a judge model's reply into a score, or the reason why there is none. Scores are never made up.

Only the reply's `content` is parsed, without its thinking. A parser is one of `score` and `comparison`, which are read
by `judging.core.reading`, {"regex": …}, {"json_path": …}; see `make_parser`.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from datasets.core.kinds import COMPARISON, COMPARISON_CODES, PASS_FAIL, SCORE, TIE, weaker
from datasets.core.texts import Text, gettext_noop
from datasets.core.variables import reference_in
from judging.core.reading.clean import plain_characters
from judging.core.reading.gives import Gives
from judging.core.reading.gives import Value as ReadText
from judging.core.reading.labels import read_word
from judging.core.reading.numbers import on_scale
from judging.core.reading.reader import Reading, read_reply
from judging.core.reading.reasons import EMPTY, NOTHING_OFFERED
from judging.core.reading.thinking import without_thinking
from judging.core.values import Value

ParserSpec = str | Mapping[str, str]
Place = tuple[int, int]
"""Start and end of words in a reply's content, in characters."""

VERDICTS = {code: number for number, code in enumerate(COMPARISON_CODES, start=1)}
_TIE = VERDICTS[TIE]

MAX_PATTERN = 2000


@dataclass(frozen=True, slots=True)
class Parsed:
    """A value and the text it was parsed from, or a reason without a value and what stood there (`detail`).

    `form`: how the value was stated. `place`: start and end of the text in the reply; `statements`: those of everything
    that states a value, at most MOST_CANDIDATES.
    """

    value: Value | None
    reason: str = ""
    evidence: str = ""
    detail: str = ""
    form: str = ""
    place: Place | None = None
    statements: tuple[Place, ...] = ()

    @property
    def marked(self) -> tuple[Place, ...]:
        """What is shown marked in the reply: the words that were read, or all that state something."""
        return (self.place,) if self.place and self.value is not None else self.statements


PARSER_PROBLEMS: dict[str, Text] = {
    "unknown_parser": gettext_noop(
        "“parse” must be score, comparison, {regex: …} or {json_path: …}, not %(detail)s."
    ),
    "bad_regex": gettext_noop("Invalid regular expression: %(detail)s."),
    "bad_json_path": gettext_noop(
        "Invalid JSON path: %(detail)s. Separate names with dots, for example a.b."
    ),
}


class ParserError(ValueError):
    """A parser that cannot be created, with a code of PARSER_PROBLEMS and its detail."""

    def __init__(self, code: str, detail: str = "") -> None:
        super().__init__(code, detail)
        self.code = code
        self.detail = detail


# --- comparisons -----------------------------------------------------------------------------------------------


def with_sides_swapped(
    data: Mapping[str, Any], response: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """The template data of a comparison with reference and response exchanged.

    None if either is missing, because there is no other order then.
    """
    reference, content = reference_in(data), response.get("content")
    if reference is None or not content:
        return None
    return {**data, "ref_answer": content, "gt": content}, {**response, "content": reference}


def turned_back(value: int) -> int:
    """Convert a verdict given with A and B swapped to the normal order."""
    return 6 - value


def combine_orders(first: int, swapped_turned_back: int) -> int:
    """Combine the verdicts of both orders: the weaker one if they favour the same side, otherwise a tie.

    This includes a tie combined with a verdict for one side.
    """
    low, high = sorted((first, swapped_turned_back))
    if high < _TIE:
        return high
    return low if low > _TIE else _TIE


def is_flip(first: int, swapped_turned_back: int) -> bool:
    """Whether the winner changed with the order in which the two were shown."""
    return (first - _TIE) * (swapped_turned_back - _TIE) < 0


# --- configured parsers ----------------------------------------------------------------------------------------

_REGEX_SCRIPT = """\
import re
PATTERN = re.compile({pattern!r})
def preprocess(data, resp, **kwargs):
    last = None
    for last in PATTERN.finditer(resp["content"]):
        pass
    if last is None:
        return None
    found = [group for group in last.groups() if group is not None]
    return (found[0] if found else last[0])[:400]
"""


@dataclass(frozen=True, slots=True)
class Parser:
    """Parses one metric's replies.

    A user's regular expression can take forever, so it never runs here: if `sandbox_script` is set, run it as a
    preprocess script in the sandbox on {"content": parser.readable(content)}, and pass its result to `conclude`.
    """

    read: Callable[[str, str | None], Parsed]  # content, finish_reason
    conclude: Callable[[str | None], Parsed]
    sandbox_script: str = field(default="", repr=False)

    @staticmethod
    def readable(content: str) -> str:
        return without_thinking(content).strip()


def make_parser(spec: ParserSpec, gives: Gives) -> Parser:
    """The parser for a judge's `parse` setting; `score` and `comparison` read what `gives` says. Raises ParserError."""

    def conclude(match: str | None) -> Parsed:
        return _stated(match, match or "", gives)

    if spec in (SCORE, COMPARISON):
        return Parser(lambda content, finish_reason: _parsed(content, gives, finish_reason), conclude)
    if isinstance(spec, Mapping) and set(spec) == {"json_path"}:
        path = _checked_path(spec["json_path"])
        return Parser(lambda content, _finish_reason: parse_json_path(content, path, gives), conclude)
    if isinstance(spec, Mapping) and set(spec) == {"regex"}:
        return Parser(
            _only_in_sandbox, conclude, _REGEX_SCRIPT.format(pattern=_checked_pattern(spec["regex"]))
        )
    raise ParserError("unknown_parser", str(spec)[:100])


def _parsed(content: str, gives: Gives, finish_reason: str | None) -> Parsed:
    reading = read_reply(content, gives, finish_reason)
    return Parsed(
        _as_score(reading.value, gives),
        reading.reason,
        _evidence(content, reading),
        reading.detail,
        reading.form or "",
        reading.evidence,
        tuple(candidate.evidence for candidate in reading.candidates),
    )


def _evidence(content: str, reading: Reading) -> str:
    return content[slice(*reading.evidence)].strip()[:200] if reading.evidence else ""


def parse_json_path(content: str, path: tuple[str, ...], gives: Gives) -> Parsed:
    """The value at `path` in a reply that is one JSON document; list indices start at 0."""
    answer = without_thinking(content).strip()
    if not answer:
        return Parsed(None, EMPTY)
    value = _json_value(answer)
    for step in path:
        value = _member(value, step)
    parsed = _stated(value, f"{'.'.join(path)}: {value}", gives)
    return Parsed(None, NOTHING_OFFERED) if parsed.reason == NOTHING_OFFERED else replace(parsed, form="json")


def _member(value: Any, step: str) -> Any:
    if isinstance(value, dict):
        return value.get(step)
    if isinstance(value, list) and step.isdecimal() and len(step) < 9 and int(step) < len(value):
        return value[int(step)]
    return None


def _stated(value: Any, evidence: str, gives: Gives) -> Parsed:
    """The verdict that a matched text or a JSON value states as a whole."""
    if gives.kind == SCORE:
        number = _number_of(value)
        fit = None if number is None else on_scale(number, evidence, gives)
    elif gives.kind == PASS_FAIL and isinstance(value, bool):
        fit = ReadText(value)
    else:
        fit = read_word(value, gives) if isinstance(value, str) else None
    if fit is None:
        return Parsed(None, NOTHING_OFFERED, evidence[:200])
    return Parsed(_as_score(fit.value, gives), fit.reason, evidence[:200], fit.detail)


def _as_score(value: Value | None, gives: Gives) -> Value | None:
    """A comparison with the reference as its number, one of candidates as its code; any other value unchanged."""
    if gives.kind != COMPARISON or not isinstance(value, str):
        return value
    code = weaker(value) if gives.three_steps else value
    return code if gives.of_candidates else VERDICTS.get(code, code)


_FENCE = re.compile(r"```[\w-]*[ \t]*\n(.*?)\n?[ \t]*```", re.DOTALL)


def _json_value(answer: str) -> Any:
    """The JSON document that makes up the whole text, fenced or not; otherwise None."""
    fenced = _FENCE.fullmatch(answer)
    document = (fenced[1] if fenced else answer).strip()
    if document[:1] not in ("{", "["):
        return None
    try:
        return json.loads(document, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        return None


_NUMBER = re.compile(r"[+-]?(?:[0-9]{1,300}(?:\.[0-9]{1,300})?|\.[0-9]{1,300})")


def _number_of(value: Any) -> int | float | None:
    """A JSON number, or a string that contains only a number."""
    if isinstance(value, str):
        text = plain_characters(value).strip()
        if not _NUMBER.fullmatch(text):
            return None
        return float(text) if "." in text else int(text)
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _only_in_sandbox(content: str, finish_reason: str | None) -> Parsed:
    raise TypeError("a regular expression runs in the sandbox: see Parser.sandbox_script")


def _checked_path(path: Any) -> tuple[str, ...]:
    steps = tuple(path.split(".")) if isinstance(path, str) else ()
    if not steps or not all(steps):
        raise ParserError("bad_json_path", str(path)[:100])
    return steps


def _checked_pattern(pattern: Any) -> str:
    if not isinstance(pattern, str) or not 0 < len(pattern) <= MAX_PATTERN:
        raise ParserError("bad_regex", str(pattern)[:100])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise ParserError("bad_regex", str(error)) from error
    return pattern
