"""Matches answers generated later to the rows of a version and writes both to a new file.

Everything is streamed: the matching data is in a temporary database next to the target, so memory does not grow with
either file.
"""

import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from datasets.core.answer_file import (
    AnswerLine,
    Key,
    MatchBy,
    answer_lines,
    conversation_hash,
    id_hash,
    prompt_hash,
    questions_hash,
)
from datasets.core.findings import Finding, FindingLog, printable
from datasets.core.formats import LEGACY, Format, structural_keys
from datasets.core.limits import Limits
from datasets.core.reader import read
from datasets.core.rows import RawRow
from datasets.core.texts import Text, gettext_noop
from datasets.core.variables import (
    EARLIER,
    before_question,
    earlier_of,
    has_earlier_answers,
    messages_of,
)

KEPT_EXAMPLES = 5
EXCERPT = 300
_TABLES = """
PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA cache_size=-32000;
CREATE TABLE entry (number INTEGER PRIMARY KEY, line INTEGER, kind TEXT, key INTEGER, model INTEGER, responses TEXT,
                    problem TEXT, asked INTEGER, earlier TEXT, target INTEGER, found INTEGER);
CREATE TABLE given (line INTEGER PRIMARY KEY, text TEXT, finding TEXT);
CREATE TABLE base (line INTEGER PRIMARY KEY, valid INTEGER, id INTEGER, prompt INTEGER, asked INTEGER);
CREATE TABLE has (line INTEGER, model INTEGER, PRIMARY KEY (line, model)) WITHOUT ROWID;
"""
_ENTRY = (
    "INSERT INTO entry (line, kind, key, model, responses, problem, asked, earlier) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)
_ANSWER_LINE = "INSERT INTO given VALUES (?, ?, ?)"
_NOT_CARRIED = "INSERT INTO entry (line, problem, responses) VALUES (?, 'row_not_carried', ?)"
_UNMATCHED = """
SELECT line, problem, finding, model, found, text FROM entry JOIN given USING (line)
WHERE problem IS NOT NULL AND problem != 'row_not_carried' ORDER BY line, number
"""
_KINDS = "SELECT kind FROM entry UNION SELECT 'asked' FROM entry WHERE asked IS NOT NULL"
# Count the rows with the key and find the first one.
_FIND = """
UPDATE entry SET (found, target) = (SELECT COUNT(*), MIN(line) FROM base WHERE base.{kind} = entry.key)
WHERE kind = '{kind}' AND problem IS NULL
"""
_FIND_BY_QUESTIONS = """
UPDATE entry SET (found, target) = (SELECT COUNT(*), MIN(line) FROM base WHERE base.asked = entry.asked)
WHERE asked IS NOT NULL AND found = 0
"""
_JUDGE = (
    "UPDATE entry SET problem = 'unknown_' || kind WHERE problem IS NULL AND found = 0",
    "UPDATE entry SET problem = 'ambiguous_' || kind WHERE problem IS NULL AND found > 1",
    """UPDATE entry SET problem = 'bad_row' WHERE problem IS NULL
       AND (SELECT valid FROM base WHERE base.line = target) = 0""",
    """UPDATE entry SET problem = 'already_answered' WHERE problem IS NULL
       AND EXISTS (SELECT 1 FROM has WHERE has.line = target AND has.model = entry.model)""",
    "CREATE INDEX entry_target ON entry (target, model, number) WHERE problem IS NULL",
    """UPDATE entry SET problem = 'twice' WHERE problem IS NULL AND number > (
         SELECT MIN(number) FROM entry AS first
         WHERE first.problem IS NULL AND first.target = entry.target AND first.model = entry.model)""",
)
PROBLEMS: dict[str, Text] = {
    "no_key": gettext_noop("No row given: add “id”, “line” or “messages”."),
    "unknown_id": gettext_noop("No valid row has this “id” (a string never equals a number)."),
    "ambiguous_id": gettext_noop("Several rows have this “id”."),
    "unknown_line": gettext_noop("No row at this line."),
    "bad_row": gettext_noop("The row at this line is invalid."),
    "unknown_prompt": gettext_noop("No valid row has this prompt."),
    "ambiguous_prompt": gettext_noop("Several rows have this prompt."),
    "already_answered": gettext_noop("The row already has answers of this model. They are not replaced."),
    "twice": gettext_noop("Duplicate: an earlier line of the file answers this row for this model."),
    "bad_line": gettext_noop("The line is invalid."),
    "row_not_carried": gettext_noop(
        "An invalid CSV record cannot be written to the new JSONL file and is excluded."
    ),
}
"""Why an answer was not attached, or for `row_not_carried` why a row was dropped. `bad_line`: see the findings."""


@dataclass(frozen=True, slots=True)
class Example:
    """An answer with the question it was matched to."""

    line: int
    question: str
    model: str
    answer: str


@dataclass(slots=True)
class AttachReport:
    """Complete counts of what was matched and what was not.

    `lines`: non-blank lines of the file; `matched`: its matched answers, where all responses of one model to one row
    count as one answer; `problems`: {reason: number}; `models`: {name: rows answered}; `rows`: rows of the version;
    `good_rows`: the valid ones; `unanswered`: valid rows without an answer of any model; `counts` and `findings`: of
    the file. Of the matched answers, `own_turns` have earlier turns that differ from their row's, and `last_only` have
    none although the row has some.
    """

    lines: int = 0
    matched: int = 0
    problems: dict[str, int] = field(default_factory=dict)
    models: dict[str, int] = field(default_factory=dict)
    rows: int = 0
    good_rows: int = 0
    unanswered: int = 0
    own_turns: int = 0
    last_only: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    examples: list[Example] = field(default_factory=list)

    @property
    def unmatched(self) -> int:
        return sum(self.problems.values())


@dataclass(frozen=True, slots=True)
class AttachWork:
    """Input and output files. `target` and `unmatched` are written; a legacy file needs `model_name`."""

    base: Path
    format: Format
    answers: Path
    target: Path
    unmatched: Path
    model_name: str = ""
    match_by: MatchBy = ""
    limits: Limits = field(default_factory=Limits)


def attach(work: AttachWork, progress: Callable[[int, int], None] | None = None) -> AttachReport:
    """Match the answers; write the merged rows and the unmatched entries, both as JSONL.

    `progress(done, all)` counts bytes over all passes. Raises OSError, NoAnswers, ModelNameWanted, and then leaves both
    files incomplete.
    """
    with tempfile.TemporaryDirectory(dir=work.target.parent, prefix=".attach-") as folder:
        database = sqlite3.connect(Path(folder) / "work.sqlite3", isolation_level=None)
        try:
            return _Attaching(work, database, _Passes(work, progress)).run()
        finally:
            database.close()


class _Passes:
    """Progress over three passes: one over the answers, two over the version."""

    def __init__(self, work: AttachWork, progress: Callable[[int, int], None] | None) -> None:
        self.all = work.answers.stat().st_size + 2 * work.base.stat().st_size
        self.progress = progress
        self.done = 0
        self.before = 0

    def at(self, done: int, _all: int = 0) -> None:
        """Report that `done` bytes of this pass's file have been read."""
        self.done = done
        if self.progress:
            self.progress(min(self.before + done, self.all), self.all)

    def next_pass(self) -> None:
        self.before, self.done = self.before + self.done, 0


class _Attaching:
    def __init__(self, work: AttachWork, database: sqlite3.Connection, steps: _Passes) -> None:
        self.work = work
        self.database = database
        self.steps = steps
        self.report = AttachReport()
        self.models: dict[str, int] = {}
        self.names: list[str] = []

    def run(self) -> AttachReport:
        self.database.executescript(_TABLES)
        self.database.execute("BEGIN")
        self._take_answers()
        self._take_rows()
        self._match()
        self._write_rows()
        with self.work.unmatched.open("wb") as file:
            file.writelines(msgspec.json.encode(entry) + b"\n" for entry in self._unmatched())
        self._count()
        return self.report

    def _take_answers(self) -> None:
        work, log = self.work, FindingLog(kept_per_code=100)
        for answer_line in answer_lines(
            work.answers,
            model_name=work.model_name,
            match_by=work.match_by,
            limits=work.limits,
            progress=self.steps.at,
        ):
            self.report.lines += 1
            log.add_all(answer_line.findings)
            code = answer_line.error.code if answer_line.error else None
            self.database.execute(
                _ANSWER_LINE, [answer_line.line, printable(answer_line.text, 1_000_000), code]
            )
            self.database.executemany(_ENTRY, self._entries(answer_line))
        self.report.counts, self.report.findings = dict(log.counts), log.in_order()

    def _entries(self, answer_line: AnswerLine) -> list[tuple[Any, ...]]:
        if not answer_line.answers:
            return [(answer_line.line, None, None, None, None, "bad_line", None, None)]
        key, problem = (answer_line.key, None) if answer_line.key else (Key("line", 0), "no_key")
        place, turns = (
            (answer_line.line, key.kind, key.value),
            (problem, answer_line.questions_hash, answer_line.earlier),
        )
        return [(*place, self._model(name), responses, *turns) for name, responses in answer_line.answers]

    def _model(self, name: str) -> int:
        if name not in self.models:
            self.models[name] = len(self.names)
            self.names.append(name)
        return self.models[name]

    def _rows(self) -> Iterator[RawRow]:
        self.steps.next_pass()
        work = self.work
        with read(
            work.base, format=work.format, limits=work.limits, progress=self.steps.at, digest=False
        ) as reading:
            yield from reading

    def _take_rows(self) -> None:
        kinds = {kind for (kind,) in self.database.execute(_KINDS)}
        for row in self._rows():
            self.report.rows += 1
            self.report.good_rows += row.valid
            base = (row.line, row.valid, *self._keys(row, kinds))
            self.database.execute("INSERT INTO base VALUES (?, ?, ?, ?, ?)", base)
            names = {name for name, _, _ in row.responses}
            has = [(row.line, self.models[name]) for name in names if name in self.models]
            self.database.executemany("INSERT INTO has VALUES (?, ?)", has)

    def _keys(self, row: RawRow, kinds: set[str]) -> tuple[int | None, int | None, int | None]:
        """Hashes of the row's id, prompt and questions, each only if some answer needs it."""
        if not row.valid:
            return None, None, None
        identity = _decode_id(row.json).id if "id" in kinds else UNSET
        prompt = questions = None
        if "prompt" in kinds:
            messages = _messages(row, self.work.format)
            prompt = prompt_hash(messages)
            questions = questions_hash(messages) if "asked" in kinds else None
        return None if identity is UNSET else id_hash(bytes(identity)), prompt, questions

    def _match(self) -> None:
        for column in ("id", "prompt", "asked"):
            self.database.execute(f"CREATE INDEX base_{column} ON base ({column})")
        for statement in (
            *(_FIND.format(kind=kind) for kind in ("id", "prompt", "line")),
            _FIND_BY_QUESTIONS,
            *_JUDGE,
        ):
            self.database.execute(statement)

    def _write_rows(self) -> None:
        """Write the version's rows in order, each with the answers matched to it."""
        waiting = self.database.execute(
            "SELECT target, model, responses, earlier FROM entry WHERE problem IS NULL ORDER BY target, number"
        )
        ahead = waiting.fetchone()
        with self.work.target.open("wb") as file:
            for row in self._rows():
                answers = []
                while ahead and ahead[0] == row.line:
                    answers.append((self.names[ahead[1]], *ahead[2:]))
                    ahead = waiting.fetchone()
                added = self._with_own_turns(row, answers) if answers else []
                written = merged(row, self.work.format, added)
                if written is None:
                    self.database.execute(_NOT_CARRIED, [row.line, row.raw])
                    continue
                file.write(written + b"\n")
                self._report_row(row, added)

    def _with_own_turns(
        self, row: RawRow, answers: list[tuple[str, str, str | None]]
    ) -> list[tuple[str, str]]:
        """The answers to a row, each with its earlier turns if they differ from the row's."""
        messages = _messages(row, self.work.format)
        of_row, added = conversation_hash(before_question(messages)), []
        for name, responses, earlier in answers:
            if earlier and conversation_hash(msgspec.json.decode(earlier)) != of_row:
                responses = with_earlier(responses, earlier)
                self.report.own_turns += 1
            elif not earlier and has_earlier_answers(messages):
                complete = all(
                    earlier_of(response) is not None for response in msgspec.json.decode(responses)
                )
                self.report.own_turns += complete
                self.report.last_only += not complete
            added.append((name, responses))
        return added

    def _report_row(self, row: RawRow, added: list[tuple[str, str]]) -> None:
        if row.valid and not added and (self.work.format != "judge_only"):
            self.report.unanswered += 1
        if added and len(self.report.examples) < KEPT_EXAMPLES:
            questions = [m["content"] for m in _messages(row, self.work.format) if m["role"] == "user"]
            name, responses = added[0]
            answer = str(msgspec.json.decode(responses)[0].get("content") or "")
            self.report.examples.append(
                Example(
                    row.line,
                    printable(questions[-1] if questions else "", EXCERPT),
                    name,
                    printable(answer, EXCERPT),
                )
            )

    def _unmatched(self) -> Iterator[dict[str, Any]]:
        """Yield the unmatched lines of the file, then the rows that could not be carried over."""
        for line, problem, code, model, rows_found, text in self.database.execute(_UNMATCHED):
            yield {
                "line": line,
                "reason": problem,
                "finding": code,
                "model_name": None if model is None else self.names[model],
                "rows_found": rows_found,
                "text": text,
            }
        left = "SELECT line, responses FROM entry WHERE problem = 'row_not_carried' ORDER BY line"
        for line, text in self.database.execute(left):
            yield {"line": line, "reason": "row_not_carried", "text": text}

    def _count(self) -> None:
        counted = dict(self.database.execute("SELECT problem, COUNT(*) FROM entry GROUP BY problem"))
        self.report.matched = counted.pop(None, 0)
        self.report.problems = counted
        matched = "SELECT model, COUNT(*) FROM entry WHERE problem IS NULL GROUP BY model"
        self.report.models = {self.names[model]: rows for model, rows in self.database.execute(matched)}


class _Id(msgspec.Struct):
    id: Raw | UnsetType = UNSET


_decode_id = msgspec.json.Decoder(_Id).decode
_decode_list = msgspec.json.Decoder(list[Raw]).decode
_decode_top = msgspec.json.Decoder(dict[str, Raw]).decode


def _messages(row: RawRow, fmt: Format) -> list[dict[str, Any]]:
    return messages_of(msgspec.json.decode(row.json), fmt)


def merged(row: RawRow, fmt: Format, added: list[tuple[str, str]]) -> bytes | None:
    """Return the row as a `judge_only` line with (model, JSON list of responses) pairs added to its answers.

    Existing values keep their spelling. An invalid row is returned unchanged, or as None if it is CSV, which JSONL
    cannot hold.
    """
    if not row.valid:
        return None if fmt == "legacy_csv" else row.source.rstrip(b"\r\n")
    legacy = fmt in LEGACY
    if not added and not legacy:
        return row.json.strip()
    top: dict[str, Any] = _decode_top(row.json)
    if legacy:
        hidden = structural_keys(fmt)
        fields = {name: value for name, value in top.items() if name not in hidden}
        top = {"messages": _messages(row, fmt), **fields}
    if added:
        new = [{"model_name": name, "responses": Raw(responses.encode())} for name, responses in added]
        top["model_outputs"] = [*_decode_list(top.get("model_outputs", b"[]")), *new]
    return msgspec.json.encode(top)


def with_earlier(responses: str, earlier: str) -> str:
    """Add the messages before the last question to each response in a JSON list that does not have them yet."""
    decoded = map(_decode_top, _decode_list(responses))
    own = {EARLIER: Raw(earlier.encode())}
    return msgspec.json.encode(
        [response if EARLIER in response else response | own for response in decoded]
    ).decode()
