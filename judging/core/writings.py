"""The script that a text is written in."""

from __future__ import annotations

import re

_WRITINGS = {
    "Chinese": re.compile("[\u3400-\u4dbf\u4e00-\u9fff]{1,2}"),
    "Japanese": re.compile("[\u3040-\u30ff]{1,2}"),
    "Korean": re.compile("[\uac00-\ud7af]{1,2}"),
    "Latin script": re.compile("[A-Za-z\u00c0-\u024f]+"),
    "Cyrillic script": re.compile("[\u0400-\u052f]+"),
    "Arabic script": re.compile("[\u0600-\u06ff]+"),
    "Devanagari": re.compile("[\u0900-\u097f]+"),
    "Thai": re.compile("[\u0e00-\u0e7f]{1,4}"),
}
"""What counts as a word in each script: a few characters if words are not separated. Languages that share a script are
not distinguished."""
OTHER = "other"


def language_of(text: str) -> str:
    """The script of most words of a text. Chinese characters among many Japanese ones count as Japanese."""
    words = {name: len(pattern.findall(text)) for name, pattern in _WRITINGS.items()}
    if 2 * words["Japanese"] > words["Chinese"]:
        words["Japanese"] += words.pop("Chinese")
    most = max(words, key=lambda name: words[name])
    return most if words[most] else OTHER
