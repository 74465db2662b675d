"""The kinds of verdicts that judges, people, rules and scripts give."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

PASS_FAIL = "pass_fail"  # noqa: S105
SCORE = "score"
CATEGORY = "category"
COMPARISON = "comparison"
CHECKLIST = "checklist"
FREE_TEXT = "free_text"
RANK = "rank"
SPANS = "spans"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of verdict. `read_as`: the kind as which one reply is read; '' if only people give it. `stored_as`: the
    kind of the judgements made from it, if it is another one."""

    code: str
    read_as: str = ""
    stored_as: str = ""


KINDS: dict[str, Kind] = {
    kind.code: kind
    for kind in (
        Kind(PASS_FAIL, PASS_FAIL),  # True or False
        Kind(SCORE, SCORE),  # a number on the scale
        Kind(CATEGORY, CATEGORY),  # one of the labels
        Kind(COMPARISON, COMPARISON),  # A>>B, A>B, A=B, B>A, B>>A, or both_bad where offered
        Kind(CHECKLIST, PASS_FAIL),  # the share of points met; each reply is about one criterion
        Kind(FREE_TEXT),
        Kind(RANK, stored_as=COMPARISON),  # one for each pair of the ranked answers
        Kind(SPANS, stored_as=SCORE),  # the sum of their severities, without a declared scale
    )
}

COMPARISON_CODES = ("A>>B", "A>B", "A=B", "B>A", "B>>A")
TIE = "A=B"
BOTH_BAD = "both_bad"
STRONG = {"A>>B": "A>B", "B>>A": "B>A"}
"""The codes with a strength, and their directions without it."""
_TURNED = dict(zip(COMPARISON_CODES, reversed(COMPARISON_CODES), strict=True))


def weaker(code: str) -> str:
    """A comparison's direction without its strength."""
    return STRONG.get(code, code)


THREE_STEPS = tuple(dict.fromkeys(map(weaker, COMPARISON_CODES)))


def turned(value: Any) -> Any:
    """A comparison's verdict with the two sides exchanged; any other value unchanged."""
    return _TURNED.get(value, value) if isinstance(value, str) else value


READABLE_KINDS = tuple(kind.code for kind in KINDS.values() if kind.read_as)
