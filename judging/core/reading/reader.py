"""Reads a judge's reply: thinking → cleaning → forms, otherwise prose → several."""

from __future__ import annotations

from dataclasses import dataclass, replace

from datasets.core.kinds import KINDS, SCORE
from judging.core.judges.reply import REFUSED
from judging.core.reading.clean import (
    plain_characters,
    without_format_characters,
    without_marks,
    without_quoted_parts,
    without_scale_end,
)
from judging.core.reading.edits import EditedText
from judging.core.reading.gives import Gives, ReadValue
from judging.core.reading.names import WEAK
from judging.core.reading.numbers import names_other_scale
from judging.core.reading.prose import read_prose
from judging.core.reading.reasons import AMBIGUOUS, CUT_OFF, EMPTY, NOTHING_OFFERED, REFUSAL
from judging.core.reading.statements import (
    Form,
    Reader,
    Statement,
    read_brackets,
    read_names,
    read_objects,
    strongest,
)
from judging.core.reading.thinking import without_last_word, without_thinking_parts

MOST_CANDIDATES = 20


@dataclass(frozen=True, slots=True)
class Reading:
    """The value that a reply states, or the reason why there is none.

    `detail`: what stood there instead. `evidence`: start and end of the words that were read, in the reply.
    `candidates`: the statements that were considered, at most MOST_CANDIDATES.
    """

    value: ReadValue | None
    reason: str = ""
    detail: str = ""
    evidence: tuple[int, int] | None = None
    form: Form | None = None
    candidates: tuple[Statement, ...] = ()


def why_unread(reason: str, finish_reason: str | None) -> str:
    """The reason why a reply gave no value, which may be that it reached its token limit first."""
    return CUT_OFF if finish_reason == "length" and reason in (EMPTY, NOTHING_OFFERED) else reason


def read_reply(content: str, gives: Gives, finish_reason: str | None = None) -> Reading:
    """Read a reply's content as what the judge gives."""
    kind = KINDS[gives.kind].read_as
    gives = gives if kind == gives.kind else replace(gives, kind=kind)
    if finish_reason in REFUSED:
        return Reading(None, REFUSAL, content.strip()[:100])
    reply = without_thinking_parts(without_format_characters(EditedText(content)))
    if not reply.text.strip():
        return Reading(None, why_unread(EMPTY, finish_reason))
    if finish_reason == "length":
        reply = without_last_word(reply)
    statements = _statements(reply.same_length(plain_characters(reply.text)), gives)
    if not statements:
        return Reading(None, why_unread(NOTHING_OFFERED, finish_reason))
    return _conclude(statements, content)


def _statements(reply: EditedText, gives: Gives) -> list[Statement]:
    """What the first form that is present states; otherwise what the prose states."""
    quoted = without_quoted_parts(reply)
    other_scale = gives.kind == SCORE and names_other_scale(quoted.text, gives.max_score)
    reader = Reader(gives, other_scale)
    text, of_objects = read_objects(quoted, reader)
    explicit = [stated for stated in of_objects if stated.strength > WEAK]
    if (of_objects and not text.text.strip()) or (explicit and "[" not in text.text):
        return explicit or of_objects
    text = without_marks(text)
    if gives.kind == SCORE and "分" in text.text:
        text = without_scale_end(text, gives.max_score)
    explicit += read_brackets(text, reader)
    if explicit:
        return explicit
    return strongest([*of_objects, *read_names(text, reader)]) or read_prose(text, reader)


def _conclude(statements: list[Statement], content: str) -> Reading:
    """The value on which the statements agree, or why there is none."""
    ordered = sorted(statements, key=lambda stated: stated.evidence)
    counted = _settled(ordered)
    last = counted[-1]
    candidates = tuple(dict.fromkeys(ordered))[:MOST_CANDIDATES]
    if len({(stated.value, stated.reason) for stated in counted}) == 1:
        return Reading(last.value, last.reason, last.detail, last.evidence, last.form, candidates)
    several = " | ".join(dict.fromkeys(content[slice(*stated.evidence)].strip()[:40] for stated in counted))
    return Reading(None, AMBIGUOUS, several[:200], last.evidence, last.form, candidates)


def _settled(statements: list[Statement]) -> list[Statement]:
    """The statements without those that others replace."""
    lasting = [stated for stated in statements if not stated.provisional] or statements
    return [stated for stated in lasting if stated.correction] if lasting[-1].correction else lasting
