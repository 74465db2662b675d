"""Detects answers that try to vote: text that resembles a judge's verdict, however disguised.

Verdicts are read from the judge's own reply only, so this does not change scores; the findings are shown to reviewers.
It looks for the forms that `replies` parses, and for disguises that a judge model would still understand: full-width
and look-alike characters, invisible ones between letters, other brackets, escapes, markup, line breaks.
"""

from __future__ import annotations

import html
import re
import unicodedata

_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0]"
)
_LOOK_ALIKE = str.maketrans(
    {
        **dict.fromkeys("【〔〚⟦⟬〖「『［", "["),
        **dict.fromkeys("】〕〛⟧⟭〗」』］", "]"),
        **dict.fromkeys("≫»⟫》⪢", ">>"),
        **dict.fromkeys("〉›＞⟩", ">"),
        **dict.fromkeys("∶꞉ː：", ":"),
        **dict.fromkeys("／⁄∕", "/"),
        **dict(zip("асеоріѕԁɡАВСЕОРЅ", "aceopisdgABCEOPS", strict=True)),
        "評": "评",
        "數": "数",
        "滿": "满",
        "給": "给",
        "−": "-",
    }
)
_DOUBLED = str.maketrans({"⟦": "[[", "〚": "[[", "⟧": "]]", "〛": "]]"})
_TAG = re.compile(r"</?[a-z][^<>\n]{0,40}>", re.IGNORECASE)
_ESCAPE = re.compile(r"\\(?=[\[\]])")

_GAP = r"[\s*_`~\"']{0,20}"
_NUMBER = r"[+-]?(?:[0-9]{1,9}(?:\.[0-9]{1,9})?|\.[0-9]{1,9})"
_WORDS = "one|two|three|four|five|six|seven|eight|nine|ten|full marks|[一二三四五六七八九十]{1,3}|满\\s?分"
_VALUE = rf"(?:{_NUMBER}|(?:{_WORDS})(?![a-z一-鿿]))"
_LABEL = r"(?:评\s?分|得\s?分|打\s?分|分\s?数(?!\s?[为是])|(?<![a-z])(?:scor(?:e|ing)|rating))"
_VERDICT = r"(?:a\s*>\s*>\s*b|a\s*>\s*b|a\s*=\s*b|b\s*>\s*a|b\s*>\s*>\s*a|a\s*<\s*<?\s*b|b\s*<\s*<?\s*a)"
_OF = r"\s*(?:/|out of)\s*[0-9]"
_NO_SCORE = r"(?!\s?(?:分\s?)?[钟制之比岁]|[0-9]|\.[0-9]|\s?:\s?[0-9])"

_FORMS = {  # in lower case, with substrings that must be present for the pattern to be worth searching
    rf"\[\s*\[{_GAP}{_VALUE}\s?分?(?:\s*/\s*{_NUMBER})?{_GAP}\]\s*\]": ("[",),
    rf"\[\s*\[{_GAP}{_VERDICT}{_GAP}\]\s*\]": ("[",),
    rf"(?:verdict|winner|判定|裁决|结论){_GAP}(?::|=|为|是|is\b){_GAP}{_VERDICT}": (
        *("verdict", "winner", "判定"),
        *("裁决", "结论"),
    ),
    rf"[\"'](?:score|rating|评分|得分)[\"']\s*:\s*[\"']?{_NUMBER}": ("score", "rating", "评分", "得分"),
    rf"<(?:score|rating|评分|得分)>\s*{_NUMBER}": ("<score", "<rating", "<评", "<得"),
    rf"{_LABEL}{_GAP}(?:(?:[:为→]|->|-\s|是){_GAP}){{1,3}}(?:\[\s?){{0,2}}{_VALUE}{_NO_SCORE}": (
        "scor",
        "rating",
        "分",
    ),
    rf"{_LABEL}{_GAP}(?:is|of)\s{_GAP}{_NUMBER}{_OF}": ("score", "rating"),
    r"(?<![a-z])(?:rate|rated|give|grade|deserves?|earns?)\b(?!\s+(?:is|was|of)\b)"
    rf"[^\n0-9]{{0,40}}{_NUMBER}{_OF}": ("rate", "give", "grade", "deserve", "earn"),
    rf"(?:打|评|判|给|应得|值)(?!出)[^\n0-9]{{0,12}}{_NUMBER}\s?分{_NO_SCORE}(?!析)": ("分",),
    r"(?:打|评|判|给|应得)[^\n0-9。，,]{0,4}满\s?分": ("满",),
}
_PATTERNS = [(re.compile(form), needles) for form, needles in _FORMS.items()]
_IN_CAPITALS = [  # in lower case these would also match program code
    (
        re.compile(r"(?<![A-Za-z])(?:Score|SCORE|Rating|RATING)\s?=\s?[0-9]"),
        ("core", "CORE", "ating", "ATING"),
    ),
    (re.compile(r"(?<![A-Za-z0-9])(?:A\s?>>\s?B|B\s?>>\s?A)(?![A-Za-z0-9])"), (">>",)),
]


def holds_verdict(answer: str) -> bool:
    """Whether a judged answer contains text that resembles a verdict. This is a hint for reviewers, not proof."""
    text = without_disguise(answer)
    without_markup = _TAG.sub("", text) if "<" in text else text
    return any(
        _any_of(_PATTERNS, variant.lower()) or _any_of(_IN_CAPITALS, variant)
        for variant in {text, without_markup}
    )


def _any_of(patterns: list[tuple[re.Pattern[str], tuple[str, ...]]], text: str) -> bool:
    return any(
        any(needle in text for needle in needles) and pattern.search(text) for pattern, needles in patterns
    )


def without_disguise(text: str) -> str:
    """The text with look-alike characters unified, and without invisible characters and escapes."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text.translate(_DOUBLED)))
        text = text.translate(_LOOK_ALIKE)
    if "&" in text:
        text = html.unescape(text)
    return _ESCAPE.sub("", text) if "\\" in text else text
