"""Clauses and sentences: where they end, and which words around a statement change what it means."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain, groupby

from judging.core.reading.words import CORRECTIONS, GUARD_WORDS, NEGATIONS, PROVISIONAL, REASON_WORDS

LOOK_BACK = 120
_LOOK_AHEAD = 24  # characters that decide whether a clause ends
_SHORT_CLAUSE = 4  # words
_CHARACTERS_OF_WORD = 2  # of Chinese


def alternatives(words: Iterable[str]) -> str:
    """An expression for any of the words, whole where their script separates words; longer ones first."""
    ordered = sorted(words, key=len, reverse=True)
    groups = groupby(ordered, key=lambda word: (_is_letter(word[0]), _is_letter(word[-1])))
    return f"(?:{'|'.join(_group(ends, group) for ends, group in groups)})"


def _group(ends: tuple[bool, bool], words: Iterable[str]) -> str:
    """An expression for any of the words, all of which begin and end alike; its look-arounds stand once."""
    before, after = rf"(?<!{_LETTER})" if ends[0] else "", rf"(?!{_LETTER})" if ends[1] else ""
    return f"{before}(?:{'|'.join(map(re.escape, words))}){after}"


_LETTER = r"(?-i:[0-9A-Za-z\u00c0-\u04ff])"  # of a script that puts blanks between words


def _is_letter(character: str) -> bool:
    return re.match(_LETTER, character) is not None


def search_of(words: Iterable[str]) -> re.Pattern[str]:
    return re.compile(alternatives(words), re.IGNORECASE)


_LONE_NUMBER = (
    r"[+-]?[0-9]+(?:\.[0-9]+)?\s?(?:分|点|points?|pts?|stars?)?(?:[,，、。；;|)\]】]|\.\s|\.?[ \t]*(?:\n|\Z))"
)
CLAUSE_END = re.compile(
    r"(?=[,，、.;:!。；！？|)\]】」\n–—bs因由理-])"  # most characters end no clause
    rf"(?:(?:,(?=\s|\Z)|[，、])(?!\s?(?:out of\b|{_LONE_NUMBER}))"
    rf"|[.;:!](?=\s|\Z)|[。；！？|)\]】」\n]"
    rf"|(?<=\s)[-–—]{{1,3}}+(?!\s?[0-9.]|>)|(?={alternatives(REASON_WORDS)}))",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"[.!?;](?=\s|\Z)|[。！？；\n]")

_GUARD = search_of(GUARD_WORDS)
_NEGATION = re.compile(rf"{alternatives(NEGATIONS)}|n['’]t\b", re.IGNORECASE)
_PROVISIONAL = search_of(PROVISIONAL)
_CORRECTION = search_of(CORRECTIONS)

has_guard_word = _GUARD.search
is_provisional = _PROVISIONAL.search
is_correction = _CORRECTION.search
is_negated = _NEGATION.search


def clause_start(text: str, position: int) -> int:
    """Where the clause that holds `position` begins, at most LOOK_BACK characters before."""
    start = max(0, position - LOOK_BACK)
    for end in CLAUSE_END.finditer(text, start, position + _LOOK_AHEAD):
        if end.end() > position:
            break
        start = end.end()
    return start


def clause_end(text: str, position: int, limit: int) -> int:
    """Where the clause that holds `position` ends, at most at `limit`."""
    end = CLAUSE_END.search(text, position, limit + _LOOK_AHEAD)
    return min(end.start(), limit) if end else min(len(text), limit)


def short_clause_before(text: str, start: int) -> str:
    """The clause before the one that begins at `start`, if it has few words; otherwise ''."""
    earliest = max(0, start - LOOK_BACK)
    at = earliest + len(text[earliest:start].rstrip(" \t\n,.;:!，。；：！"))
    clause = text[clause_start(text, at) : at]
    return clause if number_of_words(clause) <= _SHORT_CLAUSE else ""


def number_of_words(text: str) -> float:
    """How many words a text has; two Chinese characters count as one."""
    chinese = sum(1 for character in text if "\u2e80" <= character <= "\uffef")
    return len(text.split()) if not chinese else chinese / _CHARACTERS_OF_WORD


def last_sentence(text: str, most: int) -> tuple[int, int] | None:
    """Start and end of the last sentence, its stop included; None if it is longer than `most` characters."""
    end = len(text.rstrip())
    start = before = max(0, end - most - 2)
    for stop in _SENTENCE_END.finditer(text, start, end):
        if text[stop.end() : end].strip(" \t\n.。!！?？;；"):
            start = stop.end()
    if start == before and start > 0:
        return None
    return start, end


def first_line(text: str) -> tuple[int, int]:
    start = len(text) - len(text.lstrip())
    end = text.find("\n", start)
    return start, len(text) if end < 0 else end


def begins_line(text: str, position: int, since: int) -> bool:
    """Whether only blanks stand before `position` in its line, or from `since` on."""
    return not text[max(text.rfind("\n", 0, position) + 1, since) : position].strip()


def sentences(text: str) -> Iterator[tuple[int, int]]:
    """Start and end of each sentence, without blanks before it."""
    start = 0
    for stop in chain((end.end() for end in _SENTENCE_END.finditer(text)), [len(text)]):
        sentence = text[start:stop].lstrip()
        if sentence:
            yield stop - len(sentence), stop
        start = stop


def sentence_end(text: str, start: int, limit: int) -> int:
    """Where the sentence that begins at `start` ends, at most at `limit`."""
    end = _SENTENCE_END.search(text, start, limit)
    return end.end() if end else min(len(text), limit)
