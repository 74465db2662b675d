"""Reads a file of answers to attach to existing rows, line by line, into answers and findings.

A line is `{id | line | messages, model_name, responses}`, or has `model_outputs` in place of the last two. In a legacy
file, the last response of each row is the answer of one named model, and the row is found by its prompt.
"""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from datasets.core.decode import Unreadable, Upload, blocks
from datasets.core.detect import detect
from datasets.core.findings import Finding
from datasets.core.formats import LEGACY, Format
from datasets.core.limits import Limits
from datasets.core.reader import read
from datasets.core.rows import UNDECODED, decoded, explain, refusal
from datasets.core.rules import RowFindings, check_row, placed
from datasets.core.variables import before_question, has_earlier_answers, messages_of

MatchBy = Literal["", "id", "line", "prompt"]
MATCH_BY: tuple[MatchBy, ...] = ("", "id", "line", "prompt")
""""" decides per line: by `id` if present, else by `line`, else by `messages`."""
Kind = Literal["id", "line", "prompt"]

_BEFORE = {"messages": [{"role": "user", "content": "?"}]}


class ModelNameWanted(Exception):
    """The file has a legacy format and no model name was given for its answers."""


class NoAnswers(Exception):
    """The file as a whole cannot be read; `findings` say why."""

    def __init__(self, findings: tuple[Finding, ...]) -> None:
        super().__init__(findings[0].code)
        self.findings = findings


@dataclass(frozen=True, slots=True)
class Key:
    """Identifies a row: a physical line number, or a 64-bit hash of its id or prompt."""

    kind: Kind
    value: int


@dataclass(frozen=True, slots=True)
class AnswerLine:
    """One line of the file: its answers and the row they belong to. An invalid line has no answers.

    `answers` holds (model name, JSON list of responses). For a line matched by prompt, `questions_hash` is
    used for rows whose earlier answers differ. `earlier` is JSON of the messages before the last question, if the line
    contains earlier answers.
    """

    line: int
    text: str
    key: Key | None = None
    answers: tuple[tuple[str, str], ...] = ()
    findings: tuple[Finding, ...] = ()
    questions_hash: int | None = None
    earlier: str | None = None

    @property
    def error(self) -> Finding | None:
        """The first error on this line."""
        return next((finding for finding in self.findings if finding.severity == "error"), None)


class _LineKeys(Struct):
    id: Raw | UnsetType = UNSET
    line: Raw | UnsetType = UNSET
    messages: Raw | UnsetType = UNSET
    model_name: Raw | UnsetType = UNSET
    responses: Raw | UnsetType = UNSET
    model_outputs: list[Raw] | UnsetType = UNSET


class _Output(Struct):
    model_name: str
    responses: Raw


_decode_line = msgspec.json.Decoder(_LineKeys).decode
_decode_output = msgspec.json.Decoder(_Output).decode


def hashed(text: str | bytes) -> int:
    """A 64-bit hash that is the same in every process."""
    source = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    return int.from_bytes(hashlib.blake2b(source, digest_size=8).digest(), "big", signed=True)


def id_hash(raw: bytes) -> int | None:
    """Hash the JSON text of an `id`; None for null. A string never equals a number."""
    if raw.strip() == b"null":
        return None
    return hashed(b"s" + msgspec.json.decode(raw, type=str).encode() if raw[:1] == b'"' else b"j" + raw)


def prompt_hash(messages: list[dict[str, Any]]) -> int:
    """Hash a conversation, ignoring a final assistant message and white space around texts."""
    return conversation_hash(messages[:-1] if messages and messages[-1]["role"] == "assistant" else messages)


def conversation_hash(messages: list[dict[str, Any]]) -> int:
    """Hash messages, ignoring white space around their texts."""
    texts = [(message["role"], message["content"].replace("\r\n", "\n").strip()) for message in messages]
    return hashed(msgspec.json.encode(texts))


def questions_hash(messages: list[dict[str, Any]]) -> int:
    """Hash all messages except the assistant's: in legacy files these differ by model, the questions do not."""
    return prompt_hash([message for message in messages if message["role"] != "assistant"])


def answer_lines(
    path: Path,
    *,
    model_name: str,
    match_by: MatchBy,
    limits: Limits,
    progress: Callable[[int], None] | None = None,
) -> Iterator[AnswerLine]:
    """Yield the non-blank lines of an answer file. Raises OSError, NoAnswers, ModelNameWanted.

    `progress` receives the number of bytes read so far; a legacy file is read twice but reported as one pass.
    """
    with Upload(path, limits) as upload:
        seen = detect(upload)
        if seen.shape in ("spread", "none"):
            raise NoAnswers(tuple(finding for finding in seen.findings if finding.severity == "error"))
        if seen.format in LEGACY:
            yield from _legacy(path, seen.format, model_name, match_by, limits, progress)
            return
        try:
            for block in blocks(upload, seen.encoding, progress):
                for number, line, row in decoded(block, limits.row_values):
                    refused = (
                        None if row else refusal(number, line, limits, oversized=number in block.oversized)
                    )
                    if refused:
                        yield AnswerLine(number, line.decode("utf-8", "replace"), findings=(refused,))
                    elif line.strip():
                        yield _answer_line(number, line, row, match_by)
        except Unreadable as stopped:
            raise NoAnswers((stopped.finding,)) from None


def _legacy(
    path: Path,
    fmt: Format,
    model_name: str,
    match_by: MatchBy,
    limits: Limits,
    progress: Callable[[int], None] | None,
) -> Iterator[AnswerLine]:
    if not model_name.strip():
        raise ModelNameWanted

    def advance(done: int, _all: int) -> None:
        if progress:
            progress(done)

    with read(path, format=fmt, limits=limits, progress=advance, digest=False) as reading:
        for row in reading:
            if not row.valid:
                yield AnswerLine(row.line, row.raw)
                continue
            messages = messages_of(msgspec.json.decode(row.json), fmt)
            answer = msgspec.json.encode([{"content": messages[-1]["content"]}]).decode()
            by_prompt = match_by in ("", "prompt")
            key = (
                Key("prompt", prompt_hash(messages)) if by_prompt else _key(_decode_line(row.json), match_by)
            )
            yield _with_turns(AnswerLine(row.line, row.raw, key, ((model_name, answer),)), messages)


def _with_turns(answer_line: AnswerLine, messages: list[dict[str, Any]]) -> AnswerLine:
    """Add the hash of the questions and the earlier turns."""
    hash_of_questions = (
        questions_hash(messages) if answer_line.key and answer_line.key.kind == "prompt" else None
    )
    has_earlier = has_earlier_answers(messages)
    earlier = msgspec.json.encode(before_question(messages)).decode() if has_earlier else None
    return replace(answer_line, questions_hash=hash_of_questions, earlier=earlier)


def _answer_line(number: int, line: bytes, row: dict[str, Any] | None, match_by: MatchBy) -> AnswerLine:
    """`row` holds the line's values if it is a valid JSON object, else None."""
    text = line.decode().rstrip("\r")
    answer_line = AnswerLine(number, text, findings=_findings(number, text, row))
    if answer_line.error:
        return answer_line
    top = _decode_line(line)
    answers = tuple((output.model_name, bytes(output.responses).decode()) for output in _outputs(top))
    return _with_turns(replace(answer_line, key=_key(top, match_by), answers=answers), _messages(top))


def _findings(number: int, text: str, row: dict[str, Any] | None) -> tuple[Finding, ...]:
    """All findings of a line. Its answers are checked as if they were those of a `judge_only` row."""
    findings = RowFindings()
    if row is None:
        findings, row = explain(text, None)
    if row is not None:
        check_row({**_BEFORE, "model_outputs": row.get("model_outputs", [row])}, "judge_only", findings)
        if "model_outputs" not in row:
            findings.stored = [
                replace(finding, path=finding.path and finding.path.removeprefix("model_outputs[0]."))
                for finding in findings.stored
            ]
    return tuple(placed(findings.stored, number, text))


def _outputs(top: _LineKeys) -> list[_Output]:
    if top.model_outputs is not UNSET:
        return [_decode_output(output) for output in top.model_outputs]
    assert isinstance(top.model_name, Raw)  # check_row has reported lines that lack either
    assert isinstance(top.responses, Raw)
    return [_Output(msgspec.json.decode(top.model_name, type=str), top.responses)]


def _key(top: _LineKeys, match_by: MatchBy) -> Key | None:
    """The key that identifies the row; None if the line has none of the requested kind."""
    wanted: tuple[Kind, ...] = (match_by,) if match_by else ("id", "line", "prompt")
    for kind in wanted:
        value = None
        with suppress(*UNDECODED):
            if kind == "id" and top.id is not UNSET:
                value = id_hash(bytes(top.id))
            elif kind == "line" and top.line is not UNSET:
                value = _line_number(top.line)
            elif kind == "prompt" and (messages := _messages(top)):
                value = prompt_hash(messages)
        if value is not None:
            return Key(kind, value)
    return None


def _messages(top: _LineKeys) -> list[dict[str, Any]]:
    """The line's messages with their parts joined; an empty list if they are missing or invalid."""
    if top.messages is UNSET:
        return []
    try:
        messages = messages_of({"messages": msgspec.json.decode(top.messages)}, "judge_only")
        return [{"role": message["role"], "content": message["content"]} for message in messages]
    except (*UNDECODED, AttributeError, KeyError, TypeError):
        return []


def _line_number(raw: Raw) -> int | None:
    number = msgspec.json.decode(raw)
    is_line_number = isinstance(number, int) and not isinstance(number, bool) and 0 < number < 2**31
    return number if is_line_number else None
