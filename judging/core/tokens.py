"""How many tokens a text may be, without any model's own tokenizer."""

from __future__ import annotations

import math
import re

# Chinese characters, kana, hangul and full-width forms: tokenizers of today take 0.6 to 1 token for one.
_WIDE = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]")
_TOKENS_PER_WIDE = 0.75
_CHARACTERS_PER_TOKEN = 4.0  # of everything else, as in English prose


def estimated_tokens(text: str) -> int:
    """A rough guess, good to about a quarter; 0 for an empty text only."""
    wide = sum(1 for _ in _WIDE.finditer(text))
    return math.ceil(wide * _TOKENS_PER_WIDE + (len(text) - wide) / _CHARACTERS_PER_TOKEN)
