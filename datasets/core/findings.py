"""Validation findings: the table of codes, the Finding class, and the log that counts all and stores some."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from datasets.core.limits import Limits
from datasets.core.line_set import Lines
from datasets.core.texts import Text, gettext_noop, ngettext_noop

Severity = Literal["error", "warning"]
Param = str | int


@dataclass(frozen=True, slots=True)
class FindingKind:
    """Severity, sentence and repairs of a finding code.

    `repair` fixes all findings of the code; each of `some` fixes only part of them.
    """

    severity: Severity
    sentence: Text
    repair: str | None = None
    some: tuple[str, ...] = ()

    @property
    def repairs(self) -> tuple[str, ...]:
        return (self.repair, *self.some) if self.repair else self.some


CODES: dict[str, FindingKind] = {
    "file.empty": FindingKind("error", gettext_noop("The file has no rows.")),
    "file.encoding": FindingKind(
        "error", gettext_noop("Invalid %(encoding)s: byte %(met)s. Save the file as UTF-8.")
    ),
    "file.other_kind": FindingKind("error", gettext_noop("This file is %(kind)s, not a dataset: %(advice)s")),
    "file.too_large": FindingKind(
        "error",
        gettext_noop(
            "The file is larger than %(limit)s bytes. Split it, or ask an administrator to raise UPLOAD_MAX_MB."
        ),
    ),
    "file.too_many_rows": FindingKind(
        "error",
        gettext_noop(
            "The file has more than %(limit)s rows. Split it, or ask an administrator to raise ROWS_MAX."
        ),
    ),
    "file.converted": FindingKind(
        "warning", gettext_noop("The file was converted from %(encoding)s. UTF-8 recommended."), "to_utf8"
    ),
    "file.not_jsonl": FindingKind(
        "error",
        gettext_noop(
            "The file is a JSON array, or its objects span several lines. Put one object on each line."
        ),
        "to_jsonl",
    ),
    "file.unknown_format": FindingKind(
        "error",
        gettext_noop(
            "Unknown format: the file begins with “%(met)s”. Rows need “messages” or “conversation”; a CSV "
            "needs a header with “prompt” and “response”."
        ),
        some=("rename_key",),
    ),
    "file.mixed_formats": FindingKind(
        "error",
        gettext_noop(
            "This row has “%(path)s”, but the file's format is %(format)s. All rows of a file must have the "
            "same format."
        ),
    ),
    "row.too_large": FindingKind(
        "error",
        gettext_noop(
            "The row is longer than %(limit)s bytes. Shorten it, or ask an administrator to raise ROW_MAX_KB."
        ),
    ),
    "json.invalid": FindingKind(
        "error",
        gettext_noop("Invalid JSON: %(problem)s"),
        some=("strip_comments", "strip_trailing_commas", "python_literal", "nan_to_null"),
    ),
    "json.not_object": FindingKind("error", gettext_noop("The line is %(met)s, not an object in braces.")),
    "json.duplicate_key": FindingKind(
        "error", gettext_noop("Duplicate key “%(name)s” in one object: keep one of them.")
    ),
    "json.lone_surrogate": FindingKind(
        "error", gettext_noop("%(name)s is half of a surrogate pair: add the other half or remove it.")
    ),
    "json.nul": FindingKind("error", gettext_noop("A string contains the character U+0000: remove it.")),
    "messages.missing": FindingKind(
        "error", gettext_noop("“messages” is missing: add a list of messages."), some=("rename_key",)
    ),
    "messages.not_list": FindingKind(
        "error", gettext_noop("“messages” is %(met)s, not a list of messages."), some=("messages_to_list",)
    ),
    "messages.empty": FindingKind("error", gettext_noop("“messages” is empty: add at least one message.")),
    "message.not_object": FindingKind(
        "error", gettext_noop("The message is %(met)s, not an object with “role” and “content”.")
    ),
    "role.missing": FindingKind(
        "error", gettext_noop("“role” is missing: use system, user, assistant or tool."), some=("rename_key",)
    ),
    "role.unknown": FindingKind(
        "error", gettext_noop("The role is %(met)s: use system, user, assistant or tool."), some=("fix_role",)
    ),
    "content.missing": FindingKind(
        "error", gettext_noop("“content” is missing: add a string."), some=("rename_key",)
    ),
    "content.not_text": FindingKind(
        "error", gettext_noop("“content” is %(met)s, not a string or a list of text parts.")
    ),
    "content.blank": FindingKind("warning", gettext_noop("“content” is blank.")),
    "messages.no_user": FindingKind("error", gettext_noop("No message has the role user: add one.")),
    "messages.system_not_first": FindingKind(
        "warning", gettext_noop("The system message is not the first message: move it to the start.")
    ),
    "messages.same_role_twice": FindingKind(
        "warning", gettext_noop("Two consecutive messages have the role %(role)s: roles should alternate.")
    ),
    "model_outputs.missing": FindingKind(
        "error",
        gettext_noop("“model_outputs” is missing, unlike in most rows: add a list."),
        some=("rename_key",),
    ),
    "model_outputs.not_list": FindingKind(
        "error", gettext_noop("“model_outputs” is %(met)s, not a list."), some=("model_outputs_to_list",)
    ),
    "model_outputs.empty": FindingKind(
        "error", gettext_noop("“model_outputs” is empty: add the answers of at least one model.")
    ),
    "model_output.not_object": FindingKind(
        "error", gettext_noop("The entry is %(met)s, not an object with “model_name” and “responses”.")
    ),
    "model_name.missing": FindingKind(
        "error", gettext_noop("“model_name” is missing: add the model's name."), some=("rename_key",)
    ),
    "model_name.not_text": FindingKind("error", gettext_noop("“model_name” is %(met)s, not a string.")),
    "model_name.blank": FindingKind("error", gettext_noop("“model_name” is blank: add the model's name.")),
    "model_name.twice_in_row": FindingKind(
        "error",
        gettext_noop("“%(model)s” has two entries in this row: merge them into one."),
        some=("merge_models",),
    ),
    "responses.missing": FindingKind(
        "error", gettext_noop("“responses” is missing: add a list of answers."), some=("rename_key",)
    ),
    "responses.not_list": FindingKind(
        "error", gettext_noop("“responses” is %(met)s, not a list of answers.")
    ),
    "responses.empty": FindingKind("error", gettext_noop("“responses” is empty: add at least one answer.")),
    "response.not_object": FindingKind(
        "error", gettext_noop("The answer is %(met)s, not an object with “content”.")
    ),
    "response.content_missing": FindingKind(
        "error", gettext_noop("The answer has no “content”: add a string."), some=("rename_key",)
    ),
    "response.content_not_text": FindingKind(
        "error", gettext_noop("The answer's “content” is %(met)s, not a string.")
    ),
    "response.blank": FindingKind("warning", gettext_noop("The answer is blank.")),
    "response.reasoning_not_text": FindingKind(
        "error", gettext_noop("“reasoning_content” is %(met)s, not a string or null.")
    ),
    "rubric.not_list": FindingKind(
        "warning",
        gettext_noop("“rubric” is %(met)s, not a list of criteria: no checklist can be judged by it."),
        some=("rubric_from_text",),
    ),
    "rubric.points_not_number": FindingKind(
        "warning", gettext_noop("The points are %(met)s, not a number."), some=("rubric_points",)
    ),
    "rubric.duplicate": FindingKind(
        "warning", gettext_noop("“%(met)s” stands twice in the rubric: it is judged and counted twice.")
    ),
    "rubric.nothing_positive": FindingKind(
        "warning", gettext_noop("No criterion here has positive points, so the rubric gives no value.")
    ),
    "rubric.criterion_blank": FindingKind("warning", gettext_noop("The criterion is blank, or not a text.")),
    "conversation.missing": FindingKind(
        "error", gettext_noop("“conversation” is missing: add a list of turns."), some=("rename_key",)
    ),
    "conversation.not_list": FindingKind(
        "error", gettext_noop("“conversation” is %(met)s, not a list of turns.")
    ),
    "conversation.empty": FindingKind(
        "error", gettext_noop("“conversation” is empty: add at least one turn.")
    ),
    "turn.not_object": FindingKind(
        "error", gettext_noop("The turn is %(met)s, not an object with “prompt” and “response”.")
    ),
    "prompt.missing": FindingKind(
        "error", gettext_noop("The turn has no “prompt”: add a string."), some=("rename_key",)
    ),
    "prompt.not_text": FindingKind("error", gettext_noop("“prompt” is %(met)s, not a string.")),
    "prompt.blank": FindingKind("error", gettext_noop("The prompt is blank.")),
    "turn.response_missing": FindingKind(
        "error", gettext_noop("The turn has no “response”: add a string."), some=("rename_key",)
    ),
    "turn.response_not_text": FindingKind("error", gettext_noop("“response” is %(met)s, not a string.")),
    "system.not_text": FindingKind(
        "error", gettext_noop("“system” is %(met)s, not a string: use a string or remove “system”.")
    ),
    "csv.header": FindingKind(
        "error",
        gettext_noop(
            "CSV header %(met)s: the column “%(name)s” %(problem)s. Each column must appear exactly once."
        ),
    ),
    "csv.columns": FindingKind(
        "error",
        ngettext_noop(
            "The record has %(met)s field, but the header has %(wanted)s.",
            "The record has %(met)s fields, but the header has %(wanted)s.",
            "met",
        ),
    ),
    "csv.quote": FindingKind(
        "error", gettext_noop("Unclosed quote: add a closing quote to the field that starts here.")
    ),
    "csv.extra_column": FindingKind(
        "warning", gettext_noop("Extra column “%(name)s”: kept as a custom field.")
    ),
    "csv.title": FindingKind("warning", gettext_noop("“%(text)s” stands above the header and is left out.")),
    "model_name.alike": FindingKind(
        "warning",
        gettext_noop(
            "These names differ only in case, spaces or punctuation: %(names)s (rows in parentheses). Use "
            "one name if they are the same model."
        ),
        "unify_model_names",
    ),
    "model.coverage": FindingKind(
        "warning", gettext_noop("“%(model)s” has no answers in %(absent)s of %(rows)s rows.")
    ),
    "model.uneven_n": FindingKind(
        "warning",
        gettext_noop(
            "“%(model)s” has between %(fewest)s and %(most)s answers per row. The same number in every row "
            "is recommended."
        ),
    ),
    "ref_answer.some_missing": FindingKind(
        "warning",
        ngettext_noop(
            "%(missing)s of %(rows)s rows has no “ref_answer”.",
            "%(missing)s of %(rows)s rows have no “ref_answer”.",
            "missing",
        ),
        some=("rename_key",),
    ),
    "field.shadowed": FindingKind(
        "warning",
        ngettext_noop(
            "The field “%(name)s” in %(rows)s row is replaced by the computed value. Rename it to keep it.",
            "The field “%(name)s” in %(rows)s rows is replaced by the computed value. Rename it to keep it.",
            "rows",
        ),
    ),
    "field.type_varies": FindingKind(
        "warning", gettext_noop("The field “%(name)s” has values of several types: %(types)s.")
    ),
    "field.misspelt": FindingKind(
        "warning",
        ngettext_noop(
            "%(rows)s row has a field “%(near)s”, and none has “%(meant)s”: did you mean “%(meant)s”?",
            "%(rows)s rows have a field “%(near)s”, and none has “%(meant)s”: did you mean “%(meant)s”?",
            "rows",
        ),
        some=("rename_key",),
    ),
    "id.duplicate": FindingKind("warning", gettext_noop("Duplicate “id”: also used in line %(first)s.")),
    "row.duplicate": FindingKind("warning", gettext_noop("Duplicate prompt: same as line %(first)s.")),
}


ERRORS = frozenset(code for code, kind in CODES.items() if kind.severity == "error")
HEADER_CODES = frozenset(("csv.header", "csv.extra_column", "csv.title"))
"""Codes found in or above a CSV header, which is not a row."""
LONGEST_PATH = 500


@dataclass(frozen=True, slots=True)
class Finding:
    """One validation finding.

    `line` counts physical lines from 1 (None: the whole version), `column` counts characters from 1, `path` is like
    `messages[2].role`; `params` fill the message that the user interface shows for `code`.
    """

    line: int | None
    column: int | None
    path: str | None
    code: str
    severity: Severity
    repair: str | None
    params: dict[str, Param] = field(default_factory=dict)


def finding(
    code: str,
    *,
    line: int | None = None,
    column: int | None = None,
    path: str | None = None,
    repair: str | None = None,
    **params: Param,
) -> Finding:
    """Create a finding with severity and default repair from the table; strings are made printable."""
    kind = CODES[code]
    clean = {name: printable(value) if isinstance(value, str) else value for name, value in params.items()}
    shown = path if path is None else printable(path, LONGEST_PATH)
    return Finding(line, column, shown, code, kind.severity, repair or kind.repair, clean)


def broken_byte(raw: bytes) -> tuple[int, str] | None:
    """The column of the first byte that is not UTF-8, and the byte as `0xFF`; None if all are valid."""
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as error:
        return len(raw[: error.start].decode("utf-8", "replace")) + 1, f"0x{raw[error.start]:02X}"
    return None


def not_utf8(line: int, broken: tuple[int, str]) -> Finding:
    """The finding for a text whose first invalid byte is known: its column, and the byte as `0xFF`."""
    column, met = broken
    return finding("file.encoding", line=line, column=column, met=met)


def too_large(line: int, limits: Limits) -> Finding:
    """The finding for a row that is too long to be checked."""
    return finding("row.too_large", line=line, limit=limits.row_bytes)


def too_many_values(line: int, limits: Limits) -> Finding:
    """The finding for a row with too many values, which would need many times its size in memory."""
    return finding("row.too_large", line=line, limit=limits.row_values, of="values")


def printable(text: str, limit: int = 1000) -> str:
    """Return `text` as strict UTF-8 without NUL, truncated to `limit` characters, safe to store and send as JSON."""
    if len(text) <= limit and text.isprintable():
        return text
    shown = text if len(text) <= limit else text[: limit - 1] + "…"
    return shown.encode("utf-8", "backslashreplace").decode("utf-8").replace("\0", "\\u0000")


class FindingLog:
    """Counts every finding and its line; stores the first `kept_per_code` of each code to bound memory.

    The first finding with each repair is always stored, so that every repair is known.
    """

    def __init__(self, kept_per_code: int) -> None:
        self.counts: dict[str, int] = {}
        self.stored: list[Finding] = []
        self.lines: dict[str, Lines] = {}
        self.full: set[str] = set() if kept_per_code else set(CODES)
        """Codes of which no more findings are stored."""
        self._limit = kept_per_code
        self._stored_by_code = Counter[str]()
        self._repairs: set[tuple[str, str]] = set()

    def add(self, finding: Finding) -> None:
        self.count(finding.code, 1, finding.line)
        self.store(finding)

    def add_all(self, findings: Iterable[Finding]) -> None:
        for finding in findings:
            self.add(finding)

    def count(self, code: str, number: int, line: int | None) -> None:
        """Count findings of one code on one line."""
        self.counts[code] = self.counts.get(code, 0) + number
        if line is not None:
            if code not in self.lines:
                self.lines[code] = Lines()
            self.lines[code].add(line)

    def store(self, finding: Finding) -> None:
        """Store a counted finding if `has_room_for` allows it."""
        if not self.has_room_for(finding):
            return
        self.stored.append(finding)
        self._stored_by_code[finding.code] += 1
        if self._stored_by_code[finding.code] >= self._limit:
            self.full.add(finding.code)
        if finding.repair:
            self._repairs.add((finding.code, finding.repair))

    def has_room_for(self, finding: Finding) -> bool:
        """Whether this finding should be stored."""
        is_new_repair = finding.repair is not None and (finding.code, finding.repair) not in self._repairs
        return finding.code not in self.full or is_new_repair

    def in_order(self) -> tuple[Finding, ...]:
        """The stored findings: those on the whole version first, then by line and column."""
        return tuple(sorted(self.stored, key=lambda finding: (finding.line or 0, finding.column or 0)))
