"""Names of values, and how strong they are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice

from judging.core.reading.clauses import alternatives
from judging.core.reading.gives import Gives
from judging.core.reading.words import ONLY_IN_JSON, PLAIN_NAMES, STRONG_NAMES, STRONG_WORDS, WEAK_NAMES

WEAK, PLAIN, STRONG = 1, 2, 3
MOST_NAMES = 200  # of one word


class Names:
    """The names of one kind and metric."""

    def __init__(self, kind: str, metric_name: str) -> None:
        plain = [*PLAIN_NAMES[kind], *([metric_name.strip()] if metric_name.strip() else [])]
        weak = WEAK_NAMES[kind]
        self._name = re.compile(_expression(plain, weak), re.IGNORECASE)
        self._of_json = re.compile(_expression([*plain, *ONLY_IN_JSON.get(kind, [])], weak), re.IGNORECASE)
        words = {re.split("[ _-]", name)[0] for name in (*plain, *weak, *STRONG_WORDS, *STRONG_NAMES)}
        self._first_words = {word: re.compile(re.escape(word)) for word in map(_lower, sorted(words))}

    def find(self, text: str) -> Iterator[re.Match[str]]:
        """The names in a text, in order, with the group of their strength."""
        # A search for each word is many times faster than one for the expression.
        lower = _lower(text)
        starts: set[int] = set()
        for word, pattern in self._first_words.items():
            if word in lower:
                starts.update(match.start() for match in islice(pattern.finditer(lower), MOST_NAMES))
        end = 0
        for start in sorted(starts):
            name = self._name.match(text, start) if start >= end else None
            if name is not None:
                end = name.end()
                yield name

    def strength_of_key(self, key: str) -> int:
        """The strength of a key of an object; 0 if it is no name."""
        name = self._of_json.fullmatch(key.strip())
        return strength(name) if name else 0


def _lower(text: str) -> str:
    """In lower case, of the same length: only İ becomes longer."""
    return text.replace("İ", "I").lower()


def strength(name: re.Match[str]) -> int:
    return STRONG if name["strong"] or name["alone"] else PLAIN if name["plain"] else WEAK


@lru_cache(maxsize=256)
def names_of(gives: Gives) -> Names:
    return Names(gives.kind, gives.name)


def _expression(plain: list[str], weak: list[str]) -> str:
    strong = _alternatives(STRONG_WORDS)
    any_plain = _alternatives(plain)
    alone = _alternatives(STRONG_NAMES)
    return (
        rf"(?P<strong>(?:{strong})[ _-]?(?:{any_plain})|{alone})|(?P<plain>{any_plain})"
        rf"|(?P<weak>{_alternatives(weak)})|(?P<alone>{strong})"
    )


def _alternatives(words: list[str]) -> str:
    """As `alternatives`; blanks, _ and - between words are equal."""
    return re.sub(r"\\ ", "[ _-]", alternatives(words))
