"""How wide words are without a font to measure, and how they break: a guess that errs to the wide side."""

import unicodedata

ELLIPSIS = "…"
_BREAK_AFTER = frozenset(" -_/.:@，。、；：")


def width(words: str) -> float:
    """In em: 1 for a full-width character, 0 for a combining one, else 0.58."""
    return sum(_character_width(character) for character in words)


def wrap(words: str, most: float, lines: int) -> list[str]:
    """At most `lines` lines of at most `most` em, broken after blanks and punctuation, and anywhere in Chinese.

    What doesn't fit ends in an ellipsis; a word longer than a line is cut. At least one line, of 2 em at least.
    """
    most = max(most, 2.0)
    rest = " ".join(words.split())
    wrapped: list[str] = []
    while rest and len(wrapped) < lines - 1 and width(rest) > most:
        place = _break(rest, most)
        wrapped.append(rest[:place].rstrip())
        rest = rest[place:].lstrip()
    return [*wrapped, shorten(rest, most)]


def shorten(words: str, most: float) -> str:
    """The words, cut with an ellipsis where they are wider than `most` em."""
    if width(words) <= most:
        return words
    return words[: _fitting(words, most - width(ELLIPSIS))].rstrip() + ELLIPSIS


def _break(words: str, most: float) -> int:
    """Where the first line ends: the last good place that fits, else as much as fits."""
    fitting = _fitting(words, most)
    for place in range(fitting, fitting // 2, -1):
        if words[place - 1] in _BREAK_AFTER or _is_wide(words[place - 1]) or words[place] == " ":
            return place
    return fitting


def _fitting(words: str, most: float) -> int:
    """How many characters fit into `most` em, a base with its combining marks kept together; at least one."""
    used = 0.0
    for place, character in enumerate(words):
        used += _character_width(character)
        if used > most and place:
            return place
    return len(words)


def _is_wide(character: str) -> bool:
    return unicodedata.east_asian_width(character) in "WF"


def _character_width(character: str) -> float:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0.0
    return 1.0 if _is_wide(character) else 0.58
