"""Values at the end of a reply that holds no form: alone on a line, or stated by the last sentence."""

from __future__ import annotations

import re
from itertools import islice

from datasets.core.kinds import PASS_FAIL, SCORE
from judging.core.reading.clauses import (
    alternatives,
    clause_end,
    first_line,
    has_guard_word,
    last_sentence,
    search_of,
    sentence_end,
    sentences,
)
from judging.core.reading.edits import EditedText
from judging.core.reading.gives import Value, unfit
from judging.core.reading.labels import fold, read_word
from judging.core.reading.names import WEAK, strength
from judging.core.reading.numbers import (
    ANY_NUMBER,
    NUMBER_AT_END,
    RANGE_OF_NUMBERS,
    has_unit,
    rates_on_other_scale,
    value_of,
    whole_number,
)
from judging.core.reading.reasons import RANGE
from judging.core.reading.statements import (
    Reader,
    Statement,
    Written,
    further_values,
    statement,
    written_from,
)
from judging.core.reading.words import (
    ANSWERS,
    CONTRASTS,
    GETTING_WORDS,
    JUDGED,
    JUDGING_WORDS,
    KNOWN_WORDS,
    SAYING_WORDS,
)

_MOST_CHARACTERS = 400
_MOST_BARE = 160
_MOST_SENTENCES = 200

_CONTRAST = search_of(CONTRASTS)
_SPEAKER_JUDGES = re.compile(
    rf"(?:{alternatives(['I', 'we'])}.*{alternatives([*JUDGING_WORDS, *SAYING_WORDS])}|我.*[给給打评評])(?P<rest>.*)",
    re.IGNORECASE,
)
_ANSWER_GETS = re.compile(
    rf"(?:\A\s*{alternatives(JUDGING_WORDS)}|(?:(?<!like\s)\b(?:it|this)|(?:\b(?:the|this)|['’]s)\s{alternatives(JUDGED)})"
    rf"\s(?:[a-z]+ly\s)?{alternatives(GETTING_WORDS)})(?P<rest>.*)",
    re.IGNORECASE,
)
_KNOWN = search_of(KNOWN_WORDS)
_AFTER_SCORE = re.compile(
    r"(?:\A|(?<![A-Za-z])(?:the|my|this|its|final|overall|total))\s{0,2}(?:score|rating)(?:\srating)?"
    r"(?:\sfor\sthis\s(?:answer|response|reply))?(?:\sis)?\s\Z",
    re.IGNORECASE,
)
_IS = re.compile(r"\sis\s", re.IGNORECASE)


def read_prose(text: EditedText, reader: Reader) -> list[Statement]:
    source = text.text
    first = first_line(source)
    of_line = bare_value(source[slice(*first)], reader)
    statements = statement(text, first, of_line, "bare")
    if of_line is not None and not source[first[1] :].strip():
        return statements
    return [*_bare(text, first[0], statements, reader), *_last_sentence(text, reader)]


# --- nothing but a value -----------------------------------------------------------------------------------------


def _bare(text: EditedText, first: int, of_line: list[Statement], reader: Reader) -> list[Statement]:
    """The first line, the last sentence and the first clause that are nothing but a value. If one of them is, what
    other sentences begin with counts too."""
    source, kind = text.text, reader.gives.kind
    statements = of_line
    skips_answers = False
    last = last_sentence(source, _MOST_CHARACTERS)
    if last is not None and last[0] > first:
        of_last = bare_value(source[slice(*last)], reader, needs_unit=kind == SCORE and not of_line)
        skips_answers = of_last is not None and fold(source[slice(*last)]) not in ANSWERS  # Errors? No. PASS
        statements = statements + statement(text, last, of_last, "bare")
    if kind not in (PASS_FAIL, SCORE):
        return statements
    limit = sentence_end(source, first, first + _MOST_CHARACTERS)
    if not of_line and not (kind == PASS_FAIL and _CONTRAST.search(source, first, limit)):
        statements = statements + _beginning(text, first, limit, reader)
    if not statements:
        return []
    return statements + [
        stated
        for start, end in islice(sentences(source), 1, _MOST_SENTENCES)
        if not (skips_answers and source[max(0, start - 3) : start].rstrip().endswith(("?", "？")))
        for stated in _beginning(text, start, end, reader)
    ]


def _beginning(text: EditedText, start: int, limit: int, reader: Reader) -> list[Statement]:
    """The value that is all of a sentence's first clause, and others of its clauses that are nothing but one."""
    source = text.text
    end = clause_end(source, start, min(start + _MOST_BARE, limit))
    value = bare_value(source[start:end], reader, needs_unit=True)
    if value is None:
        return []
    if source[end : end + 1] == ":":
        following = source[end + 1 : clause_end(source, end + 1, limit)].strip()
        stated = bare_value(following, reader, needs_unit=True)
        if following[:1].isdigit() or (stated is not None and not (stated == value and value.value is True)):
            return []  # Pass: no, Correct: 3 of 4
    return [*statement(text, (start, end), value, "bare"), *further_values(text, end, limit, reader, "bare")]


def bare_value(written: str, reader: Reader, needs_unit: bool = False) -> Value | None:
    """The value if nothing else is written. `needs_unit`: a number needs a unit or a scale."""
    if len(written) > _MOST_BARE or "](" in written:  # a link
        return None
    written = _without_stop(written)
    content = written_from(written, 0, len(written), whole=True)
    if reader.gives.kind != SCORE:
        return reader.read(content, in_form=False) if written[:1] != "(" else None
    number = whole_number(content.text)
    if number is None:
        return unfit(RANGE, content.text) if RANGE_OF_NUMBERS.fullmatch(content.text) else None
    if needs_unit and not has_unit(number) and not content.notes:
        return None
    return value_of(number, content.notes, reader.gives, reader.other_scale)


def _without_stop(written: str) -> str:
    """Without blanks and one mark at the end; of a number without unit, not without its !."""
    written = written.strip()
    if written.endswith("!") and not written[-2:-1].isdigit():
        written = written[:-1]
    return (written[:-1] if written[-1:] in ".。！;；,，" else written).rstrip()


# --- the last sentence -------------------------------------------------------------------------------------------


def _last_sentence(text: EditedText, reader: Reader) -> list[Statement]:
    """What its clauses say; with one of them, what others state again."""
    source = text.text
    at, limit = last_sentence(source, _MOST_CHARACTERS) or (0, 0)
    sentence = source[at:limit]
    if "?" in sentence or "？" in sentence or has_guard_word(sentence):
        return []
    other_scale = reader.other_scale or rates_on_other_scale(sentence, reader.gives.max_score)
    statements: list[Statement] = []
    further: list[Statement] = []
    while at < limit:
        clause = written_from(source, at, limit)
        is_score = reader.gives.kind == SCORE
        said = _number_of(clause, other_scale, reader) if is_score else _word_of(clause, reader)
        if said is not None and source[clause.end : clause.end + 1] != ":":  # as in a rubric
            start = source.rfind(said[0], at, clause.end)
            statements += statement(text, (start, clause.end), said[1], "prose")
            further = further or further_values(text, clause.end, limit, reader, "prose")
        at = clause.end + 1
    return statements + further


def _number_of(clause: Written, other_scale: bool, reader: Reader) -> tuple[str, Value] | None:
    """The number that ends the clause, and its value, if the words before say that it is the score."""
    number = NUMBER_AT_END.search(clause.text.rstrip(".。"))
    if number is None or not _is_said(clause.text[: number.start()], has_unit(number)):
        return None
    return number[0], value_of(number, clause.notes, reader.gives, other_scale)


def _word_of(clause: Written, reader: Reader) -> tuple[str, Value] | None:
    """`NAME is VALUE`, and the value."""
    for name in reader.names.find(clause.text):
        verb = _IS.match(clause.text, name.end())
        if verb is None or name["alone"] or strength(name) == WEAK:
            continue
        value = read_word(clause.text[verb.end() :], reader.gives, in_form=False)
        if value is not None:
            return name[0], value
    return None


def _is_said(before: str, unit: bool) -> bool:
    """Whether the words before a number say that it is the score of the judged answer."""
    if _AFTER_SCORE.search(before):
        return True
    said = _SPEAKER_JUDGES.search(before) or (unit and _ANSWER_GETS.search(before))
    if said:
        return ANY_NUMBER.search(said["rest"]) is None
    return unit and before.strip() != "" and not _KNOWN.sub("", before).strip()
