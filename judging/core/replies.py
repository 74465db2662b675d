"""Parses a judge model's reply into a score, or the reason why there is none. Scores are never made up.

Only the reply's `content` is parsed, without its `<think>` parts. A parser is one of `score`, `comparison`, {"regex":
…}, {"json_path": …}; see `make_parser`.
"""

from __future__ import annotations

import json
import re
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from datasets.core.variables import reference_in

ParserSpec = str | Mapping[str, str]

# Why a reply gave no score.
EMPTY = "empty"  # nothing is left apart from the thinking
NOTHING_OFFERED = "nothing_offered"  # no verdict in any recognised form
OUT_OF_RANGE = "out_of_range"  # the last verdict is outside the scale
CUT_OFF = "cut_off"  # no verdict before the token limit

VERDICTS = {"A>>B": 1, "A>B": 2, "A=B": 3, "B>A": 4, "B>>A": 5}
_TIE = VERDICTS["A=B"]

MAX_PATTERN = 2000


@dataclass(frozen=True, slots=True)
class Parsed:
    """A value and the text it was parsed from, or a reason without a value."""

    value: int | float | None
    reason: str = ""
    evidence: str = ""


class ParserError(ValueError):
    """A parser that cannot be created; `code` is unknown_parser, bad_regex or bad_json_path."""

    def __init__(self, code: str, detail: str = "") -> None:
        super().__init__(code, detail)
        self.code = code
        self.detail = detail


# --- what is parsed --------------------------------------------------------------------------------------------

_THINK_TAG = re.compile(r"<(/?)think>", re.IGNORECASE)


def why_unread(reason: str, finish_reason: str | None) -> str:
    """The reason why a reply gave no score, which may be that it reached its token limit first."""
    return CUT_OFF if finish_reason == "length" and reason in (EMPTY, NOTHING_OFFERED) else reason


def without_thinking(content: str) -> str:
    """The reply without `<think>…</think>`.

    Templates of reasoning models put the opening tag into the prompt, so everything before a lone `</think>` is
    thinking; a reply cut off while thinking lacks the closing tag. A tag mentioned within a line ("has a <think> tag")
    is ignored unless it is closed.
    """
    kept: list[str] = []
    position = 0
    opened: int | None = None
    for tag in _THINK_TAG.finditer(content):
        if not tag[1]:
            opened = tag.start() if opened is None else opened
            continue
        if opened is None:
            kept.clear()
        else:
            kept.append(content[position:opened])
        position, opened = tag.end(), None
    if opened is not None and _begins_line(content, opened):
        return "".join([*kept, content[position:opened]])
    return "".join([*kept, content[position:]])


def _begins_line(text: str, position: int) -> bool:
    return not text[text.rfind("\n", 0, position) + 1 : position].strip()


# Full-width signs, digits and brackets, the ideographic space and the minus sign; lengths do not change.
_NARROW = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {0x3000: 0x20, 0x2212: 0x2D}


def narrowed(text: str) -> str:
    return text if text.isascii() else text.translate(_NARROW)


# --- scores ----------------------------------------------------------------------------------------------------

_NUMBER = r"(?:[0-9]{1,300}(?:\.[0-9]{1,300})?|\.[0-9]{1,300})"
_SIGNED = rf"[+-]?{_NUMBER}"
_MARKS = r"[\s*_]{0,20}"  # white space and bold marks

_BRACKETED = re.compile(rf"\[\[\s*({_SIGNED})\s*\]\]")
_LABELLED = re.compile(
    rf"(?:评分|得分|分数|打分|(?<![a-z])(?:score|rating)){_MARKS}(?:[:=为]{_MARKS}){{1,3}}"
    rf"(?:({_SIGNED})(?!\.?[0-9])|\[{_MARKS}({_SIGNED}){_MARKS}\]|(?:【{_MARKS}){{1,2}}({_SIGNED})(?:{_MARKS}】){{1,2}})",
    re.IGNORECASE,
)
_UNIT = re.compile(
    rf"(?<![0-9./])((?:(?<!\w)[+-])?{_NUMBER})"
    rf"(?:\s*分?\s*/\s*({_NUMBER})(?![0-9/]|\.[0-9])|[\s*_]{{0,10}}分)"
)
_BARE = re.compile(rf"[\s*_]*({_SIGNED})[\s*_]*[.。]?[\s*_]*")
# 满分10分 is about a scale; 10分制, 5分钟 and 3分之一 are a scale, a time and a fraction.
_BEFORE_NO_SCORE = re.compile(r"(?:满分|总分|共)[\s:=为是有计*_(【\[]{0,10}\Z")
_AFTER_NO_SCORE = re.compile(r"[ *_】\]]{0,6}分?[ *_]{0,6}[钟制之]")
_LOOK_BACK = 14

_SCORE_KEYS = ("score", "rating", "评分", "得分")
_FENCE = re.compile(r"```[\w-]*[ \t]*\n(.*?)\n?[ \t]*```", re.DOTALL)


def parse_score(content: str, min_score: float, max_score: float) -> Parsed:
    """Parse the score that a reply gives on the scale: an int as int, a decimal as float.

    Uses the first of these that is present: the last `[[n]]`; the whole reply as a JSON object; the last labelled
    number; the last `n分` or `n/max`; the whole reply as a number. The others are not tried if it is off the scale.
    """
    answer = without_thinking(content).strip()
    if not answer:
        return Parsed(None, EMPTY)
    text = narrowed(answer)
    for offered in _scores_offered(answer, text, max_score):
        if offered is not None:
            return _on_scale(*offered, min_score, max_score)
    return Parsed(None, NOTHING_OFFERED)


def _scores_offered(answer: str, text: str, max_score: float) -> Iterator[tuple[int | float, str] | None]:
    """The candidates for a score, lazily, because the first is usually enough."""
    yield _last(_BRACKETED.finditer(text))  # the judge's explicit verdict, whatever surrounds it
    yield _json_score(answer)
    yield _last(_matches_of_scores(text, _LABELLED))
    yield _last(number for number in _matches_of_scores(text, _UNIT) if _is_of_scale(number, max_score))
    bare = _BARE.fullmatch(text)
    yield (_as_number(bare[1]), bare[0].strip()) if bare else None


def _last(matches: Iterator[re.Match[str]]) -> tuple[int | float, str] | None:
    last = next(iter(deque(matches, maxlen=1)), None)
    return (_as_number(_number_in(last)), last[0].strip()) if last is not None else None


def _matches_of_scores(text: str, form: re.Pattern[str]) -> Iterator[re.Match[str]]:
    return (match for match in form.finditer(text) if not _names_no_score(text, match))


def _number_in(match: re.Match[str]) -> str:
    """The number from the alternative that matched."""
    return next(group for group in match.groups() if group is not None)


def _names_no_score(text: str, match: re.Match[str]) -> bool:
    """Whether the number comes after 满分, 共 or 总分, or before 钟, 制 or 之."""
    start = match.start(match.groups().index(_number_in(match)) + 1)
    before = _BEFORE_NO_SCORE.search(text[max(0, start - _LOOK_BACK) : start])
    return before is not None or _AFTER_NO_SCORE.match(text, match.end()) is not None


def _is_of_scale(number: re.Match[str], max_score: float) -> bool:
    """Whether it is `n分`, or `n/max` on this scale: 3/4 of something else is not a score."""
    return number[2] is None or float(number[2]) == max_score


def _json_score(answer: str) -> tuple[int | float, str] | None:
    """The score in a reply that is one JSON object, fenced or not."""
    value = _json_value(answer)
    if not isinstance(value, dict):
        return None
    folded = {str(key).strip().lower(): member for key, member in value.items()}
    for key in _SCORE_KEYS:
        number = _number_of(folded.get(key))
        if number is not None:
            return number, f"{key}: {folded[key]}"
    return None


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


def _number_of(value: Any) -> int | float | None:
    """A JSON number, or a string that contains only a number."""
    if isinstance(value, str):
        text = narrowed(value).strip()
        return _as_number(text) if re.fullmatch(_SIGNED, text) else None
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _as_number(digits: str) -> int | float:
    return float(digits) if "." in digits else int(digits)


def _on_scale(number: int | float, evidence: str, min_score: float, max_score: float) -> Parsed:
    if min_score <= number <= max_score:
        return Parsed(number, evidence=evidence[:200])
    return Parsed(None, OUT_OF_RANGE, evidence[:200])


# --- comparisons -----------------------------------------------------------------------------------------------

_VERDICT = re.compile(r"\[\[\s*(A\s*>\s*>\s*B|A\s*>\s*B|A\s*=\s*B|B\s*>\s*A|B\s*>\s*>\s*A)\s*\]\]")


def parse_comparison(content: str) -> Parsed:
    """The last `[[verdict]]` as 1 (A>>B) to 5 (B>>A), where A is the reference and B the response."""
    answer = without_thinking(content).strip()
    if not answer:
        return Parsed(None, EMPTY)
    verdicts = _VERDICT.findall(narrowed(answer))
    if not verdicts:
        return Parsed(None, NOTHING_OFFERED)
    verdict = "".join(verdicts[-1].split())
    return Parsed(VERDICTS[verdict], evidence=f"[[{verdict}]]")


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

    read: Callable[[str], Parsed]
    conclude: Callable[[str | None], Parsed]
    sandbox_script: str = field(default="", repr=False)

    @staticmethod
    def readable(content: str) -> str:
        return without_thinking(content).strip()


def make_parser(spec: ParserSpec, min_score: float, max_score: float) -> Parser:
    """The parser for a metric's `parse` setting. Raises ParserError."""

    def conclude(found: str | None) -> Parsed:
        return _found_number(found, min_score, max_score)

    if spec == "score":
        return Parser(lambda content: parse_score(content, min_score, max_score), conclude)
    if spec == "comparison":
        return Parser(parse_comparison, conclude)
    if isinstance(spec, Mapping) and set(spec) == {"json_path"}:
        path = _checked_path(spec["json_path"])
        return Parser(lambda content: parse_json_path(content, path, min_score, max_score), conclude)
    if isinstance(spec, Mapping) and set(spec) == {"regex"}:
        return Parser(
            _only_in_sandbox, conclude, _REGEX_SCRIPT.format(pattern=_checked_pattern(spec["regex"]))
        )
    raise ParserError("unknown_parser", str(spec)[:100])


def parse_json_path(content: str, path: tuple[str, ...], min_score: float, max_score: float) -> Parsed:
    """The number at `path` in a reply that is one JSON document; list indices start at 0."""
    answer = without_thinking(content).strip()
    if not answer:
        return Parsed(None, EMPTY)
    value = _json_value(answer)
    for step in path:
        value = _member(value, step)
    number = _number_of(value)
    if number is None:
        return Parsed(None, NOTHING_OFFERED)
    return _on_scale(number, f"{'.'.join(path)}: {value}", min_score, max_score)


def _member(value: Any, step: str) -> Any:
    if isinstance(value, dict):
        return value.get(step)
    if isinstance(value, list) and step.isdecimal() and len(step) < 9 and int(step) < len(value):
        return value[int(step)]
    return None


def _found_number(found: str | None, min_score: float, max_score: float) -> Parsed:
    number = _number_of(found)
    if number is None:
        return Parsed(None, NOTHING_OFFERED, (found or "")[:200])
    return _on_scale(number, found or "", min_score, max_score)


def _only_in_sandbox(content: str) -> Parsed:
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
