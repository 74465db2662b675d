"""Changes the first figure of a text by a tenth to a half, in the same form."""

from __future__ import annotations

import random
import re

from judging.core.drill.prose import matches_in_prose, replaced

_MONTHS = (
    "Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?"
    r"|Nov(?:ember)?|Dec(?:ember)?"
)
_NOT_CHANGED = "|".join(
    (
        r"^[ \t>#*_(（-]*[0-9]+(?:\.[0-9]+)*[.)、．）:：](?![0-9])",  # list marks
        r"[0-9]{1,4}[-/.][0-9]{1,2}[-/.][0-9]{1,4}",  # dates, and versions such as 1.2.3
        r"[0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?",
        r"[0-9]{4}\s?年|[0-9]{1,2}\s?[月日号]",
        rf"(?:{_MONTHS})\.? [0-9]{{1,2}}(?:st|nd|rd|th)?(?:,? [0-9]{{4}})?(?![0-9])",
        rf"(?:[0-9]{{1,2}}(?:st|nd|rd|th)? )?(?:{_MONTHS})\.?,? [0-9]{{4}}(?![0-9])",
        rf"[0-9]{{1,2}}(?:st|nd|rd|th)? (?:{_MONTHS})\b",
        r"\b(?i:in|since|by|from|until|till|during|before|after|of|year|early|late|mid-?) (?:1[5-9]|20)[0-9]{2}s?"
        r"(?![0-9,.]?[0-9])",
        r"[(（](?:1[5-9]|20)[0-9]{2}(?:\s?[-–—]\s?[0-9]{2,4})?[)）]",
        r"[A-Za-z_][0-9][\w.]*",  # names such as GPT4
    )
)
_FIGURE = re.compile(
    rf"(?:{_NOT_CHANGED})|(?P<figure>[0-9]{{1,3}}(?:,[0-9]{{3}})+(?:\.[0-9]+)?|[0-9]+(?:\.[0-9]+)?)",
    re.MULTILINE,
)


def changed_figure(text: str, draws: random.Random) -> str:
    """The text with the first figure outside list marks and dates changed by a drawn 10 to 50 %, with as many decimals
    and separators as before; unchanged if it has none. 0 and 1 cannot be changed so little and are passed over."""
    for match in matches_in_prose(_FIGURE, text):
        if match["figure"] and (figure := _changed(match["figure"], draws)):
            return replaced(text, match, figure)
    return text


def _changed(figure: str, draws: random.Random) -> str:
    """Another figure of the same form; '' if there is none within 10 to 50 %."""
    whole, point, decimals = figure.partition(".")
    number = int(whole.replace(",", "") + decimals)
    higher = range(-(-11 * number // 10), 15 * number // 10 + 1)
    lower = range(-(-number // 2), 9 * number // 10 + 1)
    choices = [values for values in (higher, lower) if len(values) and number not in values]
    if not choices:
        return ""
    values = draws.choice(choices)
    digits = str(values.start + draws.randrange(len(values))).zfill(len(decimals) + 1)
    split = len(digits) - len(decimals)
    new_whole = f"{int(digits[:split]):,}" if "," in whole else digits[:split].zfill(_padding(whole))
    return new_whole + point + digits[split:]


def _padding(whole: str) -> int:
    return len(whole) if whole.startswith("0") else 0
