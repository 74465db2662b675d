"""Recognises our own tables in CSV by their header; in them, an apostrophe precedes texts that look like formulas.

evalsite/cells.py writes it. It is removed only from our own tables: in another file it belongs to the text.
"""

import re
from collections.abc import Sequence

ROW_COLUMNS = ("line", "question", "gt", "ref_answer", "history", "messages")
"""How the header of a version's table begins."""
EXCLUDED_ROWS = "bad_rows"
"""How its last column begins: the number of excluded rows, for readers who have only this file."""
JUDGEMENT_COLUMNS = ("line", "model", "response", "metric", "attempt", "state", "value", "reason")
"""How the header of a table of judgements begins."""
RATING_COLUMNS = (
    *("key", "item", "row", "candidate", "answer", "other", "other_answer", "rater", "at", "shown_first"),
    *("seconds", "attempt", "current", "extra", "gold", "repeat_of", "drawn_with", "comment"),
)
"""How the header of a table of ratings begins."""
FINDINGS_COLUMN = "evalsite_findings"
"""The first column of invalid rows, before those of their file; `evalsite_findings_2` where the file is such a table
itself. Other files may have a column `findings`."""
_GUARDED = re.compile(r"''*(?:[\t\r]|\s*[=+\-@＝＋－＠])")


def is_own_table(names: Sequence[str]) -> bool:
    """Whether a table with these columns is one of our exports."""
    if _begins_with(names, ROW_COLUMNS):
        return names[-1].startswith(EXCLUDED_ROWS)
    return _begins_with(names, JUDGEMENT_COLUMNS) or _begins_with(names, RATING_COLUMNS)


def is_own_invalid_rows(names: Sequence[str]) -> bool:
    """Whether a legacy CSV with these columns is our file of invalid rows."""
    return bool(names) and re.fullmatch(rf"{FINDINGS_COLUMN}(_\d+)?", names[0]) is not None


def _begins_with(names: Sequence[str], beginning: Sequence[str]) -> bool:
    return tuple(names[: len(beginning)]) == tuple(beginning)


def text_of_cell(text: str) -> str:
    """The text of a cell of one of our tables, without the apostrophe that was put before it."""
    return text[1:] if _GUARDED.match(text) else text
