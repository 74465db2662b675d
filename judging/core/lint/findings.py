"""What lint says about a template: codes and figures; the sentences are the shell's."""

from dataclasses import dataclass, field
from typing import Literal

Code = Literal[
    "syntax",
    "unknown_name",
    "render_error",
    "name_missing",
    "name_none",
    "name_falsy",
    "blank_render",
    "response_unused",
]
FIRST_ROWS = 10


@dataclass(frozen=True, slots=True)
class LintFinding:
    """One finding.

    ``name``: the dotted name, or ``preprocess`` where the script is at fault; ``line``: the template's (or the
    script's) own. ``rows``: how many rows it concerns, ``first_rows``: where the first of them start.
    ``message``: what Python or Jinja2 said, if they did.
    """

    code: Code
    name: str | None = None
    line: int | None = None
    rows: int = 0
    first_rows: tuple[int, ...] = ()
    suggestion: str | None = None
    message: str = ""


@dataclass(frozen=True, slots=True)
class Longest:
    """The longest render: its row's line, its characters, its estimated tokens."""

    line: int
    characters: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Lint:
    """``rows``: how many were looked at; ``without_reference``: how many of them have none, where the template looks
    for one. That is no finding: a template may do without."""

    errors: tuple[LintFinding, ...] = ()
    warnings: tuple[LintFinding, ...] = ()
    longest: Longest | None = None
    rows: int = 0
    without_reference: int = 0


@dataclass(slots=True)
class Rows:
    """Counts rows by their lines; several answers of one row, reported one after the other, count once."""

    count: int = 0
    first: list[int] = field(default_factory=list)
    _last: int | None = None

    def add(self, line: int) -> None:
        if line == self._last:
            return
        self._last = line
        self.count += 1
        if len(self.first) < FIRST_ROWS:
            self.first.append(line)


@dataclass(slots=True)
class Met:
    """Something met at a line of the template, in some rows."""

    line: int | None
    message: str = ""
    rows: Rows = field(default_factory=Rows)

    def finding(self, code: Code, name: str | None = None, suggestion: str | None = None) -> LintFinding:
        return LintFinding(
            code, name, self.line, self.rows.count, tuple(self.rows.first), suggestion, self.message
        )
