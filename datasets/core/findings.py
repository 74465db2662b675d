"""Validation findings: the table of codes, the Finding class, and the log that counts all and stores some."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from datasets.core.limits import Limits
from datasets.core.line_set import Lines

Severity = Literal["error", "warning"]
Param = str | int


@dataclass(frozen=True, slots=True)
class FindingKind:
    """Severity and repairs of a finding code.

    `repair` fixes all findings of the code; each of `some` fixes only part of them.
    """

    severity: Severity
    repair: str | None = None
    some: tuple[str, ...] = ()

    @property
    def repairs(self) -> tuple[str, ...]:
        return (self.repair, *self.some) if self.repair else self.some


_ERROR = FindingKind("error")
_WARNING = FindingKind("warning")

CODES: dict[str, FindingKind] = {
    "file.empty": _ERROR,
    "file.encoding": _ERROR,
    "file.other_kind": _ERROR,
    "file.too_large": _ERROR,
    "file.too_many_rows": _ERROR,
    "file.converted": FindingKind("warning", "to_utf8"),
    "file.not_jsonl": FindingKind("error", "to_jsonl"),
    "file.unknown_format": _ERROR,
    "file.mixed_formats": _ERROR,
    "row.too_large": _ERROR,
    "json.invalid": FindingKind("error", some=("strip_comments", "strip_trailing_commas", "python_literal")),
    "json.not_object": _ERROR,
    "json.duplicate_key": _ERROR,
    "json.lone_surrogate": _ERROR,
    "json.nul": _ERROR,
    "messages.missing": _ERROR,
    "messages.not_list": _ERROR,
    "messages.empty": _ERROR,
    "message.not_object": _ERROR,
    "role.missing": _ERROR,
    "role.unknown": FindingKind("error", some=("fix_role",)),
    "content.missing": _ERROR,
    "content.not_text": _ERROR,
    "content.blank": _WARNING,
    "messages.no_user": _ERROR,
    "messages.system_not_first": _WARNING,
    "messages.same_role_twice": _WARNING,
    "model_outputs.missing": _ERROR,
    "model_outputs.not_list": _ERROR,
    "model_outputs.empty": _ERROR,
    "model_output.not_object": _ERROR,
    "model_name.missing": _ERROR,
    "model_name.not_text": _ERROR,
    "model_name.blank": _ERROR,
    "model_name.twice_in_row": FindingKind("error", some=("merge_models",)),
    "responses.missing": _ERROR,
    "responses.not_list": _ERROR,
    "responses.empty": _ERROR,
    "response.not_object": _ERROR,
    "response.content_missing": _ERROR,
    "response.content_not_text": _ERROR,
    "response.blank": _WARNING,
    "response.reasoning_not_text": _ERROR,
    "conversation.missing": _ERROR,
    "conversation.not_list": _ERROR,
    "conversation.empty": _ERROR,
    "turn.not_object": _ERROR,
    "prompt.missing": _ERROR,
    "prompt.not_text": _ERROR,
    "prompt.blank": _ERROR,
    "turn.response_missing": _ERROR,
    "turn.response_not_text": _ERROR,
    "system.not_text": _ERROR,
    "csv.header": _ERROR,
    "csv.columns": _ERROR,
    "csv.quote": _ERROR,
    "csv.extra_column": _WARNING,
    "model_name.alike": FindingKind("warning", "unify_model_names"),
    "model.coverage": _WARNING,
    "model.uneven_n": _WARNING,
    "ref_answer.some_missing": _WARNING,
    "field.shadowed": _WARNING,
    "field.type_varies": _WARNING,
    "field.misspelt": _WARNING,
    "id.duplicate": _WARNING,
    "row.duplicate": _WARNING,
}


ERRORS = frozenset(code for code, kind in CODES.items() if kind.severity == "error")
HEADER_CODES = frozenset(("csv.header", "csv.extra_column"))
"""Codes found in a CSV header, which is not a row."""
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
        self.kept: list[Finding] = []
        self.lines: dict[str, Lines] = {}
        self.full: set[str] = set() if kept_per_code else set(CODES)
        """Codes of which no more findings are stored."""
        self._limit = kept_per_code
        self._kept = Counter[str]()
        self._repairs: set[tuple[str, str]] = set()

    def add(self, found: Finding) -> None:
        self.count(found.code, 1, found.line)
        self.keep(found)

    def add_all(self, found: Iterable[Finding]) -> None:
        for one in found:
            self.add(one)

    def count(self, code: str, number: int, line: int | None) -> None:
        """Count findings of one code on one line."""
        self.counts[code] = self.counts.get(code, 0) + number
        if line is not None:
            if code not in self.lines:
                self.lines[code] = Lines()
            self.lines[code].add(line)

    def keep(self, found: Finding) -> None:
        """Store a counted finding if `is_kept` allows it."""
        if not self.is_kept(found):
            return
        self.kept.append(found)
        self._kept[found.code] += 1
        if self._kept[found.code] >= self._limit:
            self.full.add(found.code)
        if found.repair:
            self._repairs.add((found.code, found.repair))

    def is_kept(self, found: Finding) -> bool:
        """Whether this finding should be stored."""
        is_new_repair = found.repair is not None and (found.code, found.repair) not in self._repairs
        return found.code not in self.full or is_new_repair

    def in_order(self) -> tuple[Finding, ...]:
        """The stored findings: those on the whole version first, then by line and column."""
        return tuple(sorted(self.kept, key=lambda found: (found.line or 0, found.column or 0)))
