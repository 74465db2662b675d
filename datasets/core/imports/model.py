"""Result types of an import: rows in the native shape, verdicts on their answers, and what was left out.

A source is a small pure module. It recognises its files by content (`recognise`, which reads only their beginnings) and
streams them (`read`). Consume all rows first, then all verdicts; `left_out` and `notes` are complete only then. The
n-th row becomes line n of the version's file, and verdicts refer to that number.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Literal

from datasets.core.decode import Unreadable, Upload
from datasets.core.limits import Limits
from datasets.core.texts import Text, gettext_noop

Becomes = Literal[
    "question",
    "messages",
    "outputs",
    "system",
    "reference",
    "rubric",
    "model",
    "answer",
    "field",
    "verdict",
    "comment",
    "left_out",
]

BECOMES: dict[str, Text] = {
    "question": gettext_noop("Question"),
    "messages": gettext_noop("Messages"),
    "reply": gettext_noop("Messages; last assistant message = answer of model"),
    "outputs": gettext_noop("Outputs of several models"),
    "system": gettext_noop("System prompt"),
    "reference": gettext_noop("Reference answer"),
    "rubric": gettext_noop("Rubric: a criterion a line"),
    "model": gettext_noop("Model name"),
    "answer": gettext_noop("Answer"),
    "verdict": gettext_noop("Score"),
    "comment": gettext_noop("Comment on the scores"),
    "field": gettext_noop("Custom field"),
    "left_out": gettext_noop("Not imported"),
}


class NotUsable(Exception):
    """The files cannot be read; `code` and `params` select the sentence in NOT_USABLE (reasons.py)."""

    def __init__(self, code: str, **params: str) -> None:
        super().__init__(code)
        self.code, self.params = code, params


@dataclass(frozen=True, slots=True)
class SourceFile:
    """An input file: its name without folders, size in bytes, and a function to open it.

    `open_file()` returns a new seekable binary file on each call; the caller closes it. `encoding` is the codec that a
    user named, '' to detect it.
    """

    name: str
    size: int
    open_file: Callable[[], BinaryIO]
    encoding: str = ""

    @classmethod
    def of(cls, path: Path, name: str = "", encoding: str = "") -> "SourceFile":
        return cls(name or path.name, path.stat().st_size, lambda: path.open("rb"), encoding)

    @contextmanager
    def upload(self, limits: Limits | None = None) -> Iterator[Upload]:
        """Open the file as an Upload, which handles gzip, encodings and lines. Raises NotUsable if it is damaged."""
        with self.open_file() as source:
            try:
                yield Upload(source, limits or Limits(), self.encoding)
            except Unreadable as stopped:
                raise NotUsable("unreadable", finding=stopped.finding.code, file=self.name) from None


@dataclass(frozen=True, slots=True)
class Place:
    """The location of something: file name, line or record number (from 1), and sheet, if any."""

    file: str
    line: int | None = None
    sheet: str = ""


@dataclass(frozen=True, slots=True)
class BrokenRecord:
    """A record that cannot be read; `code` is from LEFT_OUT (reasons.py)."""

    code: str
    detail: str = ""


class MendedRecord(dict[str, Any]):
    """A record that was read though it is not JSON, with the code and detail of a warning."""

    def __init__(self, value: dict[str, Any], code: str, detail: str) -> None:
        super().__init__(value)
        self.code, self.detail = code, detail


def with_warning_of(record: dict[str, Any], fields: dict[str, Any]) -> dict[str, Any]:
    """The fields made from a record, with its warning if it has one."""
    return MendedRecord(fields, record.code, record.detail) if isinstance(record, MendedRecord) else fields


@dataclass(frozen=True, slots=True)
class ImportedRow:
    """A row in the native shape: `messages`, also `model_outputs`, `ref_answer`, `id` and custom fields."""

    data: dict[str, Any]
    place: Place


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What was not imported, or only with a warning: where, a code from reasons.py, and a detail."""

    place: Place
    code: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Note:
    """What a part of the file becomes, by its name there, for example ("reference", "target")."""

    becomes: Becomes
    origin: str


@dataclass(slots=True)
class Imported:
    """Result of an import; `verdicts` have the fields of a results file record (`line` or `id`, `model`, …).

    Consume `rows` completely before `verdicts`. `left_out` grows meanwhile; `left_out_counts` (code → number) stays
    complete even after the list is cut at KEPT. `notes` are filled in at the start as far as possible.
    """

    rows: Iterable[ImportedRow]
    verdicts: Iterable[dict[str, Any]] = ()
    notes: list[Note] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    left_out_counts: dict[str, int] = field(default_factory=dict)

    def beside(self, earlier: "Imported") -> "Imported":
        """This import, after what was left out or warned of before its rows are read."""
        for entry in earlier.left_out:
            self.leave_out(entry.place, entry.code, entry.detail)
        return self

    def leave_out(self, place: Place, code: str, detail: str = "") -> None:
        self.left_out_counts[code] = self.left_out_counts.get(code, 0) + 1
        if self.left_out_counts[code] <= KEPT:
            self.left_out.append(LeftOut(place, code, detail))


KEPT = 1_000
"""How many places are stored per code."""


@dataclass(frozen=True, slots=True)
class Options:
    """Import settings.

    `columns` is a mapping as for `--columns` ("question=…,answer=…") and `sheet` a sheet name; '' means guess. Only the
    `table` source uses them. `first` limits the records read per file, for a preview. `progress` is called regularly
    while records are read.
    """

    columns: str = ""
    sheet: str = ""
    limits: Limits = field(default_factory=Limits)
    first: int | None = None
    progress: Callable[[], None] = lambda: None


@dataclass(frozen=True, slots=True)
class Source:
    """An import source. `recognise` never raises on content; `read` raises NotUsable, also during iteration."""

    name: str
    recognise: Callable[[Sequence[SourceFile]], bool]
    read: Callable[[Sequence[SourceFile], Options], Imported]
