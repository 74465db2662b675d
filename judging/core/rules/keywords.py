"""The language's keywords, each in Chinese and English; a program may mix them."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice


@dataclass(frozen=True, slots=True)
class Keyword:
    """A keyword in both languages."""

    zh: str
    en: str

    def __contains__(self, word: str) -> bool:
        return word in (self.zh, self.en)

    def both(self) -> tuple[str, str]:
        return self.zh, self.en

    def in_language(self, language: str) -> str:
        return self.zh if language == "zh" else self.en


HEADER = "# DSL"
ALL = Keyword("@全部字段", "@all")
WHOLE = Keyword("@单个字段", "@whole")
AGGREGATE = Keyword("@聚合方式", "@aggregate")
FORMAT = Keyword("@格式限制", "@format")
OWN_NAMES = (ALL, WHOLE, AGGREGATE, FORMAT)

JSON, XML = "JSON", "XML"
TEXT = Keyword("字符串", "text")
FORMATS = (JSON, XML, *TEXT.both())

AGGREGATES = ("min", "max", "mean", "median", "mode")
# Every word for an aggregate → the aggregate.
AGGREGATE_WORDS = dict(
    zip((*AGGREGATES, "最小值", "最大值", "平均数", "中位数", "众数"), AGGREGATES * 2, strict=True)
)

RULE_LABEL = Keyword("规则", "rule")
CODE_LABEL = Keyword("代码", "code")


def language_of(written: Iterable[tuple[str, Iterable[Keyword]]]) -> str:
    """The language (`zh` or `en`) that most of the words are written in.

    Decided by the characters if no word is known or both are equally frequent; '' if that is undecided too. `written`:
    each word with the keywords that it may be.
    """
    words = [(word, list(pairs)) for word, pairs in written]
    chinese = sum(any(word == pair.zh for pair in pairs) for word, pairs in words)
    english = sum(any(word == pair.en for pair in pairs) for word, pairs in words)
    if chinese != english:
        return "zh" if chinese > english else "en"
    text = "".join(word for word, _pairs in words)
    if any("\u4e00" <= sign <= "\u9fff" for sign in text):
        return "zh"
    return "en" if any(sign.isalpha() for sign in text) else ""


_MOST_KNOWN = 200


def near(word: str, words: Iterable[str]) -> str:
    """The known word closest to `word`, or ''. Character width and case are ignored."""
    by_plain = {_plain(candidate): candidate for candidate in islice(words, _MOST_KNOWN)}
    matches = difflib.get_close_matches(_plain(word)[:80], by_plain, n=1, cutoff=0.6)
    return by_plain[matches[0]] if matches else ""


def _plain(word: str) -> str:
    return unicodedata.normalize("NFKC", word).casefold().replace(" ", "_")
