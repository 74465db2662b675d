"""Findings of template lint: codes and counts; the messages are composed elsewhere."""

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

    ``name``: the dotted name, or ``preprocess`` for an error in the script; ``line``: in the template (or the script).
    ``rows``: the number of affected rows, ``first_rows``: the lines of the first of them. ``message``: the error
    message of Python or Jinja2, if any.
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
    """The longest render: the row's line, its characters and its estimated tokens."""

    line: int
    characters: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Lint:
    """The result of linting a template.

    ``rows``: how many were checked; ``without_reference``: how many of them have no reference although the template
    uses one, which is not a finding, because a template may handle that.
    """

    errors: tuple[LintFinding, ...] = ()
    warnings: tuple[LintFinding, ...] = ()
    longest: Longest | None = None
    rows: int = 0
    without_reference: int = 0


@dataclass(slots=True)
class Rows:
    """Counts rows by line; consecutive answers of one row count once."""

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
    """A problem at a line of the template, in some rows."""

    line: int | None
    message: str = ""
    rows: Rows = field(default_factory=Rows)

    def finding(self, code: Code, name: str | None = None, suggestion: str | None = None) -> LintFinding:
        return LintFinding(
            code, name, self.line, self.rows.count, tuple(self.rows.first), suggestion, self.message
        )
