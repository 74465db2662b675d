"""What a file of another tool becomes: rows in the native shape, verdicts on their answers, and what is left out.

A source is one small pure module. It recognises its files by their content (`recognise`, which looks at beginnings
only) and reads them (`read`), streamed. What it gives is taken in this order: all rows, then all verdicts; `left_out`
and `notes` are complete only after that. The n-th row that is given becomes line n of the version's file, and verdicts
name it so.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Literal

from datasets.core.decode import Upload
from datasets.core.limits import Limits

Becomes = Literal[
    "question",
    "messages",
    "system",
    "reference",
    "model",
    "answer",
    "field",
    "verdict",
    "comment",
    "left_out",
]


class NotUsable(Exception):
    """The files cannot be read as this source; a code of datasets/import_messages.py, and what its sentence names."""

    def __init__(self, code: str, **params: str) -> None:
        super().__init__(code)
        self.code, self.params = code, params


class _OwnUpload(Upload):
    """Closes the file that was opened for it."""

    def close(self) -> None:
        super().close()
        if self._opened:
            self._opened.close()


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file as it was given: the name without folders, its size in bytes, and how to open it from the start.

    `open_file()` gives a seekable binary file, a new one at each call; who calls closes it.
    """

    name: str
    size: int
    open_file: Callable[[], BinaryIO]

    @classmethod
    def of(cls, path: Path, name: str = "") -> "SourceFile":
        return cls(name or path.name, path.stat().st_size, lambda: path.open("rb"))

    def upload(self, limits: Limits | None = None) -> Upload:
        """The file for decode.py, which unpacks gzip, knows encodings and gives lines; close it."""
        return _OwnUpload(self.open_file(), limits or Limits())


@dataclass(frozen=True, slots=True)
class Place:
    """Where something was: the file's name, the line or record in it (from 1), and the sheet, if it has any."""

    file: str
    line: int | None = None
    sheet: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """A row in the native shape: `messages`, also `model_outputs`, `ref_answer`, `id` and custom fields."""

    data: dict[str, Any]
    place: Place


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something that becomes nothing: where, a code of datasets/import_messages.py, and a detail such as a column."""

    place: Place
    code: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Note:
    """What a part of the file, by the name that the file gives it, becomes: ("reference", "target")."""

    becomes: Becomes
    origin: str


@dataclass(slots=True)
class Imported:
    """`verdicts` are records of a results file: `line` (or `id`), `model`, `metric`, `value`, `judge` or `rater`, ….

    Take `rows` to their end before `verdicts`. `left_out` grows meanwhile; `left_out_counts` (code → number) is
    complete even where the list is cut after KEPT. `notes` are known at once as far as they can be.
    """

    rows: Iterable[Row]
    verdicts: Iterable[dict[str, Any]] = ()
    notes: list[Note] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    left_out_counts: dict[str, int] = field(default_factory=dict)

    def leave_out(self, place: Place, code: str, detail: str = "") -> None:
        self.left_out_counts[code] = self.left_out_counts.get(code, 0) + 1
        if self.left_out_counts[code] <= KEPT:
            self.left_out.append(LeftOut(place, code, detail))


KEPT = 1_000
"""So many places of one code are kept."""


@dataclass(frozen=True, slots=True)
class Options:
    """What a person chose: `columns` as `--columns` spells them ("question=…,answer=…"), a sheet by its name, for both
    '' where the guess is to be taken. Sources other than `table` need neither. `first`: so many records of each file
    are enough, for a look at what they become. `progress` is called now and then while records are taken."""

    columns: str = ""
    sheet: str = ""
    limits: Limits = field(default_factory=Limits)
    first: int | None = None
    extra: Mapping[str, str] = field(default_factory=dict)
    progress: Callable[[], None] = lambda: None


@dataclass(frozen=True, slots=True)
class Source:
    """`recognise` never raises on content and reads little; `read` raises NotUsable, also while rows are taken."""

    name: str
    recognise: Callable[[Sequence[SourceFile]], bool]
    read: Callable[[Sequence[SourceFile], Options], Imported]
