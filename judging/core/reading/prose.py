"""Values at the end of a reply that holds no form: alone on a line, or stated by the last sentence."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from itertools import islice

from datasets.core.kinds import PASS_FAIL, SCORE
from judging.core.reading.clauses import (
    CLAUSE_END,
    alternatives,
    clause_end,
    first_line,
    has_guard_word,
    last_sentence,
    search_of,
    sentence_end,
)
from judging.core.reading.edits import EditedText
from judging.core.reading.gives import Value, unfit
from judging.core.reading.labels import read_word
from judging.core.reading.names import WEAK, strength
from judging.core.reading.numbers import (
    ANY_NUMBER,
    NUMBER_AT_END,
    has_unit,
    is_range,
    rates_on_other_scale,
    value_of,
    whole_number,
)
from judging.core.reading.reasons import RANGE
from judging.core.reading.statements import Reader, Statement, statement, written_from
from judging.core.reading.words import CONTRASTS, JUDGING_WORDS

MOST_CHARACTERS = 400
_MOST_BARE = 160

_STOPS = " \t\n.。！;；,，"
_BRACKETED = re.compile(r"\([^()]*\)|\[[^\[\]]*\]|【[^【】]*】|「[^「」]*」")
_BLANK = "\0"

_CONTRAST = search_of(CONTRASTS)
_JUDGING = re.compile(rf"{alternatives(JUDGING_WORDS)}|[给給打评評得]", re.IGNORECASE)
_JUDGING_OR_SAYING = re.compile(rf"{alternatives([*JUDGING_WORDS, 'say', 'says', 'said'])}", re.IGNORECASE)
_SPEAKER = search_of(["I", "we"])
_JUDGING_OF_SPEAKER = re.compile(r"[给給打评評]")
_AFTER_SCORE = re.compile(
    r"(?:\A|(?<![A-Za-z])(?:the|my|this|final))\s{0,2}(?:score|rating)(?:\srating)?"
    r"(?:\sfor\sthis\s(?:answer|response|reply))?(?:\sis)?\s\Z",
    re.IGNORECASE,
)
_SOMEBODY_ELSE = re.compile(
    r"\b(?:users?|others?|people|graders?|reviewers?|critics?|films?|movies?|books?|an?\s(?:\w{1,20}\s)?"
    r"(?:answer|response|reply))\s(?:\w{1,20}\s){0,2}\Z|(?:用户|模型|作者|学生|别人|他人|有人|其他.{0,4})给(?!出)"
    r"|[中里](?:说|称|提到|写道)|(?:满分|一般|普通|完美|理想)的?(?:回答|答案)|后[就便才]?[可能]",
    re.IGNORECASE,
)
"""Before a word of judging: what others, or answers that are not this one, get."""
_OBJECT = re.compile(r"\s(?:this|the|it|its|that|them|an?\s[a-z]{2,})\b", re.IGNORECASE)
_OTHER_OBJECT = re.compile(r"\s(?:the|its|that|them|an?\s[a-z]{2,})\b", re.IGNORECASE)
_COUNTERFACTUAL = re.compile(r"\s{0,3}(?:had|were)\s", re.IGNORECASE)
_YES_OR_NO = re.compile(
    r"(?:\A|(?<=[.!?。！？\n]))\s{0,3}(yes|no|是|否)(?=\s{0,2}(?:[.,!。，！\n]|\Z))", re.IGNORECASE
)
_RIGHT_AFTER = re.compile(r"(?:最终|综合|总分)\s{0,2}\Z")
_IS = re.compile(r"\sis\s", re.IGNORECASE)
_LINE_LABEL = re.compile(r"^[ \t]{0,9}([^\n:]{1,40}):", re.MULTILINE)
_SHORT_LINE = re.compile(r"^[ \t]{0,9}([^\n:]{1,40})$", re.MULTILINE)
_MOST_LINES = 200


def read_prose(text: EditedText, reader: Reader) -> list[Statement]:
    if not text.text.strip():
        return []
    first, end = first_line(text.text)
    of_line = statement(text, (first, end), bare_value(text.text[first:end], reader), "bare")
    if of_line is not None and not text.text[end:].strip():
        return [of_line]
    return [stated for stated in (*_bare(text, reader), *_last_sentence(text, reader)) if stated is not None]


# --- nothing but a value -----------------------------------------------------------------------------------------


def _bare(text: EditedText, reader: Reader) -> Iterator[Statement | None]:
    source = text.text
    first, end = first_line(source)
    is_score = reader.gives.kind == SCORE
    of_line = bare_value(source[first:end], reader)
    yield statement(text, (first, end), of_line, "bare")
    last = last_sentence(source, MOST_CHARACTERS)
    if last is not None and last[0] > first:
        value = bare_value(source[slice(*last)], reader, needs_unit=is_score and of_line is None)
        yield statement(text, last, value, "bare")
    if of_line is None and reader.gives.kind in (PASS_FAIL, SCORE):
        of_clause = _first_clause(text, first, reader)
        yield of_clause
        if of_clause is not None and reader.gives.kind == PASS_FAIL:
            yield from _lines_of_words(text, reader)
    if reader.gives.kind == PASS_FAIL and last is not None:
        yield from _answers_that_differ(text, last, reader)


def _lines_of_words(text: EditedText, reader: Reader) -> Iterator[Statement | None]:
    """Values that are whole lines, wherever they stand; beside another in the first clause neither is read."""
    for line in islice(_SHORT_LINE.finditer(text.text), _MOST_LINES):
        yield statement(text, line.span(1), bare_value(line[1], reader), "bare")


def _answers_that_differ(
    text: EditedText, last: tuple[int, int], reader: Reader
) -> Iterator[Statement | None]:
    """Yes and no to several questions, where the first or the last is what would be read."""
    final = bare_value(text.text[slice(*last)], reader)
    if final is not None and not _YES_OR_NO.match(text.text[slice(*last)]):
        return
    answers = list(islice(_YES_OR_NO.finditer(text.text), _MOST_LINES))
    values = [read_word(answer[1], reader.gives, in_form=False) for answer in answers]
    if len({value.value for value in values if value is not None}) > 1:
        for answer, value in zip(answers, values, strict=True):
            yield statement(text, answer.span(1), value, "bare")


def _first_clause(text: EditedText, first: int, reader: Reader) -> Statement | None:
    end = clause_end(text.text, first, first + _MOST_BARE)
    value = bare_value(text.text[first:end], reader, needs_unit=True)
    if value is not None and _is_taken_back(value, text.text, end, reader):
        return None
    if value is None or _echoes_rubric(text.text, reader):
        return None
    sentence = text.text[first : sentence_end(text.text, first, first + MOST_CHARACTERS)]
    if reader.gives.kind == PASS_FAIL and _CONTRAST.search(sentence):
        return None
    return statement(text, (first, end), value, "bare")


def _is_taken_back(value: Value, text: str, end: int, reader: Reader) -> bool:
    """Whether the clause after `end` answers the first one (Pass: no, Correct: 3 of 4) or states another value."""
    mark = text[end : end + 1]
    following = text[end + 1 : clause_end(text, end + 1, end + _MOST_BARE)].strip()
    if mark == ":" and following[:1].isdigit():
        return True
    stated = bare_value(following, reader, needs_unit=True)
    is_denied = mark == ":" and value.value is False  # Fail: no
    return stated is not None and (is_denied or stated != value)


def _echoes_rubric(text: str, reader: Reader) -> bool:
    """Whether lines begin with different values and a colon."""
    values: set[object] = set()
    for label in islice(_LINE_LABEL.finditer(text), _MOST_LINES):
        value = bare_value(label[1], reader, needs_unit=True)
        if value is not None:
            values.add(value.value)
        if len(values) > 1:
            break
    return len(values) > 1


def bare_value(written: str, reader: Reader, needs_unit: bool = False) -> Value | None:
    """The value if nothing else is written. `needs_unit`: a number needs a unit or a scale."""
    if len(written) > _MOST_BARE:
        return None
    written = _without_stop(written)
    if reader.gives.kind != SCORE:
        return read_word(written, reader.gives, in_form=False) if written else None
    if "](" in written:
        return None  # a link
    content = written_from(written, 0, len(written), whole=True)
    number = whole_number(content.text)
    if number is not None:
        if needs_unit and not has_unit(number) and not content.notes:
            return None
        return value_of(number, content.notes, reader.gives, reader.other_scale)
    return unfit(RANGE, content.text) if not needs_unit and is_range(content.text) else None


def _without_stop(written: str) -> str:
    """Without blanks and one mark at the end; of a number without unit, not without its !."""
    written = written.strip()
    if written.endswith("!") and not written[-2:-1].isdigit():
        written = written[:-1]
    return (written[:-1] if written[-1:] in ".。！;；,，" else written).rstrip()


# --- the last sentence -------------------------------------------------------------------------------------------


def _last_sentence(text: EditedText, reader: Reader) -> Iterator[Statement | None]:
    span = last_sentence(text.text, MOST_CHARACTERS)
    if span is None:
        return
    sentence = text.text[slice(*span)]
    if "?" in sentence or "？" in sentence or has_guard_word(sentence) or _COUNTERFACTUAL.match(sentence):
        return
    plain = _BRACKETED.sub(lambda bracket: _BLANK * len(bracket[0]), sentence)
    other_scale = rates_on_other_scale(sentence, reader.gives.max_score)
    start = 0
    for end in (*CLAUSE_END.finditer(plain), None):
        stop = end.start() if end else len(plain)
        clause, offset = plain[start:stop], span[0] + start
        if reader.gives.kind != SCORE:
            stated = _word_of(clause, reader)
        elif end is not None and end[0] == ":":
            stated = None  # the name of a score that is explained, as in a rubric
        else:
            stated = _number_of(clause, sentence[start:stop], reader, other_scale)
        if stated is not None:
            at, value = stated
            yield statement(text, (offset + at, span[0] + stop), value, "prose")
        start = end.end() if end else stop


def _number_of(clause: str, written: str, reader: Reader, other_scale: bool) -> tuple[int, Value] | None:
    """Where the number that ends the clause begins, and its value, if the words before say that it is the score."""
    number = NUMBER_AT_END.search(clause.rstrip(".。"))
    if number is None or not _is_said(clause[: number.start()], has_unit(number)):
        return None
    notes = tuple(note[0][1:-1] for note in _BRACKETED.finditer(written, number.start()))
    return number.start(), value_of(number, notes, reader.gives, reader.other_scale or other_scale)


_DONE_TO = ("rated", "gave", "awarded", "assigned", "scored")
"""With an object they say what somebody did; without, what was done to the answer."""
_DOES_TO = ("rates", "gives", "awards", "assigns")
"""With an object other than the answer itself (this, it) they say what the answer or somebody else does."""


_WOULD_HAVE = re.compile(r"\bwould(?:\shave|['’]ve)\b|本可|(?:本来|原本)[可能会]", re.IGNORECASE)


def _is_said(before: str, unit: bool) -> bool:
    if _WOULD_HAVE.search(before):
        return False
    if _AFTER_SCORE.search(before) or (unit and _RIGHT_AFTER.search(before)):
        return True
    said = _last(_JUDGING_OR_SAYING, before)
    if said is not None and _SPEAKER.search(before, 0, said.start()):
        return ANY_NUMBER.search(before, said.end()) is None
    said = _last(_JUDGING_OF_SPEAKER, before)
    if said is not None and "我" in before[: said.start()]:
        return ANY_NUMBER.search(before, said.end()) is None
    said = _last(_JUDGING, before) if unit else None
    if said is None or ANY_NUMBER.search(before, said.end()) is not None:
        return False
    by_others = _SOMEBODY_ELSE.search(
        before[: said.end()] if said[0] in "给給打评評得" else before[: said.start()]
    )
    word = said[0].lower()
    of_others = (word in _DONE_TO and _OBJECT.match(before, said.end())) or (
        word in _DOES_TO and _OTHER_OBJECT.match(before, said.end())
    )
    return by_others is None and not of_others


def _last(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    matches = deque(pattern.finditer(text), maxlen=1)
    return matches.pop() if matches else None


def _word_of(clause: str, reader: Reader) -> tuple[int, Value] | None:
    """Where `NAME is VALUE` begins, and the value."""
    for name in reader.names.find(clause):
        verb = _IS.match(clause, name.end())
        if verb is None or name["alone"] or strength(name) == WEAK:
            continue
        value = read_word(clause[verb.end() :].replace(_BLANK, " "), reader.gives, in_form=False)
        if value is not None:
            return name.start(), value
    return None
